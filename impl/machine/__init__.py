"""What executed entries make: the key-value store, partitions of messages, and their snapshots."""
