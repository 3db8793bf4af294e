"""
The Rubies of other distributions, in roots of their own (harness/roots.py): every frame of every target, looked at from
outside, into a chroot and into a container, and by an rbdump that was built there. The tests are those of other files.
"""

import os

import pytest
from harness.dump import dump
from harness.roots import find_rubies_in_roots
from harness.target import needs
from test_dump import (  # noqa: F401  (pytest finds them here)
    SCRIPTS,
    Case,
    target,
    test_frames,
    test_frames_unpaused,
    test_last_runner_has_ended,
    test_names_by_the_rules,
    test_operators,
)
from test_fibers import check_busy_ractors, look_at_rest, start_ractors
from test_fibers import test_fibers_that_do_not_rest, test_who_resumed_whom  # noqa: F401
from test_record_stacks import test_recorded_stacks_are_legal  # noqa: F401
from test_states import (  # noqa: F401
    test_at_rest,
    test_busy_threads_take_turns,
    test_crowd,
    test_kernel_threads,
    test_kernel_threads_after_fork,
)

ALL = find_rubies_in_roots()
# On these a test with the fixture `ruby` runs. In a container all targets of `case` are run, and those with fibers.
RUBIES = [ruby for ruby in ALL if ruby.place != "container"]


@pytest.fixture(scope="module", params=[Case(r, s) for r in ALL for s in SCRIPTS if r.series >= needs(s)], ids=str)
def case(request):
    return request.param


@pytest.fixture
def rbdump(request, rbdump):
    """That of the place."""
    values = request.node.callspec.params
    ruby = values["case"].ruby if "case" in values else values.get("any_ruby", values.get("ruby"))
    return ruby.root.rbdump(ruby.place, rbdump)


def test_layout(ruby, start, rbdump):
    """It is one that is shipped: the distribution has stripped its Ruby."""
    layout = dump(rbdump, start(ruby, "oldest.rb").pid)["layout"]
    assert (layout["source"], os.path.basename(os.path.dirname(layout["file"]))) == ("version", "offsets.d")


@pytest.mark.target("ractors_busy.rb")
def test_busy_ractors(ruby, start, rbdump, tmp_path):
    check_busy_ractors(start_ractors(ruby, start), rbdump, "paused", tmp_path, ruby)


@pytest.mark.parametrize("mode", ["paused", "unpaused"])
@pytest.mark.parametrize("script", ["fibers_suspended.rb", "fiber_scheduler.rb"])
@pytest.mark.parametrize("any_ruby", ALL, ids=lambda ruby: ruby.id)
def test_suspended_fibers(any_ruby, script, start, rbdump, tmp_path, mode):
    if any_ruby.series < needs(script):
        return
    started = start(any_ruby, script)
    look_at_rest(rbdump, started, mode, tmp_path, any_ruby)
    assert started.release() == 0
