"""Ctrl-C and SIGTERM: one exception, `KeyboardInterrupt`, at a moment when it does no harm.

Imports and the start of processes are not interrupted: half an import is an error about the module, not about the
signal. A signal that comes meanwhile is kept, and raised when they are through.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_held = 0
_kept = False


def install() -> None:
    """From now on SIGINT and SIGTERM raise `KeyboardInterrupt` in the main thread, but not inside `held`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def reinstall() -> None:
    """Take the signals back from a library that has set its own handlers, if `install` was called before."""
    if signal.getsignal(signal.SIGTERM) is _interrupt:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _kept
    if not _held:
        raise KeyboardInterrupt
    if not _kept:
        os.write(2, b"stopping\n")
    _kept = True


@contextmanager
def held() -> Iterator[None]:
    """For the time of a `with`, signals are kept; one that came raises `KeyboardInterrupt` at its end."""
    global _held, _kept
    _held += 1
    try:
        yield
    finally:
        _held -= 1
    if _kept and not _held:
        _kept = False
        raise KeyboardInterrupt


@contextmanager
def left_to_asyncio() -> Iterator[None]:
    """For the time of a `with`, Ctrl-C cancels what `asyncio.run` runs, which may keep what it has and end."""
    before = signal.getsignal(signal.SIGINT)
    if before is not _interrupt:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def shielded_children() -> Iterator[None]:
    """Processes started inside do not get SIGINT: a terminal sends it to them too, and only their parent stops them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_interrupts() -> None:
    """First thing in a worker process: the parent stops it by SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
