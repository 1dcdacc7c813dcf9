"""Viewstamped Replication, written once: a specification, a replica, and an audit that holds traces against it."""
