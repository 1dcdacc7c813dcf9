"""For all tests: processes that they start can be interrupted, also where the tests run in the background."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it to a job in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
