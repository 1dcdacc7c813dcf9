"""Durable storage of one replica: files, append-only journal, superblock copies, and the data file that holds both."""
