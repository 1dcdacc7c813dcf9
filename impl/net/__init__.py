"""The real cluster: TCP server around the sans-IO replica, client, process control, recording and history check."""
