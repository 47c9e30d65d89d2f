"""Ctrl-C during a run of the main thread: cancels the run, whose caller then gets KeyboardInterrupt.

Python handles signals between its instructions, not while the main thread is in the library. But its C handler writes
the signal's number to a pipe at once (signal.set_wakeup_fd), and a thread that waits for it cancels the run. Nothing is
changed if the program uses the wakeup file itself, or handles SIGINT itself."""
import os
import signal
import threading
import time

main = threading.main_thread().ident
running = []  # for each call that the main thread is in: a list of its own, with an object that has cancel()
_installed = False


def install():
    """Called by the main thread before its first run."""
    global _installed
    _installed = True
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    except ValueError:  # not the main thread of the main interpreter
        before = None
    if before != -1:
        if before is not None:
            signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
        return
    threading.Thread(target=_watch, args=(reader,), name="millrace-interrupt", daemon=True).start()


def is_installed():
    return _installed


def _watch(reader):
    while signals := os.read(reader, 64):
        if signal.SIGINT not in signals or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            continue
        # Repeated, because the run may be about to begin.
        interrupted = running[-1:]
        while interrupted and any(run is interrupted[0] for run in running[-1:]):
            interrupted[0][0].cancel()
            time.sleep(0.01)


def _after_fork():
    """The thread does not exist in the child, where the pipe is still shared with the parent."""
    global _installed
    if _installed:
        signal.set_wakeup_fd(-1)
    _installed = False
    running.clear()


os.register_at_fork(after_in_child=_after_fork)
