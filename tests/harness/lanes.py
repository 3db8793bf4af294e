"""
Tests run side by side (pytest-xdist), but those that measure the machine, which are marked `alone`: while one of them runs, no
other does. They come last, so that nobody waits for them before.
"""

import contextlib
import fcntl
import pathlib


def is_alone(item):
    return item.get_closest_marker("alone") is not None


def put_last(items):
    """Sorts the tests of a session; nothing else about their order is changed."""
    items.sort(key=is_alone)


@contextlib.contextmanager
def lane(item):
    """What a test runs in: beside others, or alone. Waits until it may. Does nothing if there are no other workers."""
    if not hasattr(item.config, "workerinput"):
        yield
        return
    # A worker's folder for temporary files is in that of the session.
    with open(pathlib.Path(item.config.option.basetemp).parent / "lanes.lock", "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if is_alone(item) else fcntl.LOCK_SH)
        yield
