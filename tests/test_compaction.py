"""The middle of a compaction: objects have been moved, and what refers to them still says where they were."""

import os
import signal

import pytest
from conftest import RUBIES, note_not_applicable
from harness.dump import difference, dump, rubys_frames, rbdumps_frames, thread_of
from harness.process import task_states
from harness.under_gdb import stop_in


def names_from(frames, label):
    """(name, path) of the frames from the innermost with that label outwards."""
    first = next(i for i, frame in enumerate(frames) if frame["label"].endswith(label))
    return [(frame["name"], frame["path"]) for frame in frames[first:]]


@pytest.mark.parametrize("compactor", RUBIES, ids=lambda ruby: ruby.id)
def test_names_in_the_middle_of_a_compaction(compactor, start, rbdump):
    """gdb lets the target run to where Ruby begins to ask where things are by now, and leaves it stopped there."""
    if compactor.series < (2, 7):
        note_not_applicable(f"compacted.rb on {compactor.id}: needs Ruby 2.7")
        return
    target = start(compactor, "compacted.rb")
    (main,) = target.ready["threads"]
    before = thread_of(dump(rbdump, target.pid), main)
    assert not difference(rbdumps_frames(before), rubys_frames(main))
    stop_in(target.pid, "rb_gc_location", lambda: target.tell("compact"))

    for arguments in ([], ["--no-stop"]):
        during = thread_of(dump(rbdump, target.pid, *arguments), main)
        assert during["verdict"] == "complete"
        assert names_from(during["frames"], "here") == names_from(before["frames"], "here")
        # As Ruby itself showed it before, below the C function that it was in.
        assert not difference(rbdumps_frames(during)[-len(main["frames"]) + 1 :], rubys_frames(main)[1:])

    assert task_states(target.pid) == {"T"}
    os.kill(target.pid, signal.SIGCONT)
    assert target.line() == b"compacted"
    assert target.release() == 0
