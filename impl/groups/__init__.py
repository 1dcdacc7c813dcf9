"""Consensus groups: several replicas of different groups in one process, each with its own journal."""
