"""For all tests: processes that they start can be interrupted, also where the tests run in the background; and the
collector looks less often at all that is compiled and kept meanwhile, which took a sixth of the time.
"""

from __future__ import annotations

import gc
import signal

gc.set_threshold(50_000, 20, 50)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it to a job in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
