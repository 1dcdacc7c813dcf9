"""Engines: each answers one kind of question about a recorded specification and knows no protocol."""
