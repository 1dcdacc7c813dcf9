steps = [
    ("on_request", {"r": 0, "c": 1, "s": 1}),
    ("on_prepare", {"r": 1, "o": 1}),
    ("append", {"r": 1, "o": 1}),
    ("start_view_change", {"r": 1, "v": 1}),
    ("start_view_change", {"r": 2, "v": 1}),
    ("do_view_change", {"r": 1}),
    ("do_view_change", {"r": 2}),
    ("start_view", {"r": 1, "b": 1}),  # the new primary acknowledges its own log
    ("on_start_view", {"r": 2, "v": 1, "n": 1}),  # replica 2 takes it, and acknowledges it
    ("commit", {"r": 1, "o": 1}),
    ("execute", {"r": 1}),
]
