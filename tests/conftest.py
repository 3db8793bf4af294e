"""The Rubies, rbdump, and targets that are ready to be dumped."""

import os
import pathlib
import signal
import stat
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))

from harness.browser import browser  # noqa: E402
from harness.core import copy_of_targets  # noqa: E402
from harness.flamegraph import PROBE, SPANS, THREADS, profile, write_page  # noqa: E402
from harness.lanes import is_alone, lane, put_last  # noqa: E402
from harness.layouts import generate_layout  # noqa: E402
from harness.page import Page  # noqa: E402
from harness.recording import Running, record  # noqa: E402
from harness.rubies import Ruby, find_rubies  # noqa: E402
from harness.target import Target, needs  # noqa: E402

RUBIES = find_rubies()
not_applicable = []  # what is not there to be tested, and why


def note_not_applicable(what):
    if what not in not_applicable:
        not_applicable.append(what)


def note_too_old(what, ruby, oldest):
    note_not_applicable(f"{what} on {ruby.id}: needs Ruby {'.'.join(map(str, oldest))}, this is {ruby.version}")


# Roots of other distributions are there only if somebody has made them.
collect_ignore = [] if "RBDUMP_TEST_ROOTS" in os.environ else ["test_roots.py"]
if collect_ignore:
    note_not_applicable("test_roots.py: $RBDUMP_TEST_ROOTS names no folder of roots; tests/roots/build makes one")


def pytest_addoption(parser):
    group = parser.getgroup("rbdump")
    group.addoption("--fast", action="store_true", help="run only tests that take about two minutes together: on the newest Ruby, none that are marked alone or long")
    group.addoption("--soak", action="store_true", help="run all tests on all Rubies, also those that usually run only on some")


def pytest_configure(config):
    config.addinivalue_line("markers", "target(script): the test runs on the Rubies on which this target runs")
    config.addinivalue_line("markers", "since(series, what): the test runs on Rubies of this series and later; they have what the test needs")
    config.addinivalue_line("markers", "any_ruby: the test does not depend on the Ruby, and runs on the last one that it is for")
    config.addinivalue_line("markers", "outer_rubies: the test runs on the oldest and the newest Ruby that it is for; if it has cases of its own, also on Debian's")
    config.addinivalue_line("markers", "three_rubies: the test runs on the oldest, the newest, and one Ruby between them (Debian's, if the test is for it)")
    config.addinivalue_line("markers", "newest_ruby: the test runs on the newest Ruby that it is for; a single value can have this mark")
    config.addinivalue_line("markers", "in_soak: the test runs only with --soak; a single value can have this mark")
    config.addinivalue_line("markers", "long: the test takes three seconds or more, or has many parts; it does not run with --fast")
    config.addinivalue_line("markers", "alone: the test measures the machine, so no other test runs meanwhile")
    # A process group whose last link to its session goes gets SIGHUP if one of it is stopped, as tests have targets be. A
    # group of its own keeps a worker linked to the session, by its parent.
    if hasattr(config, "workerinput"):
        os.setpgid(0, 0)
    else:
        # A shell starts what is to run in the background with this one ignored, and so would be all that is tested. Workers
        # inherit what is set here; execnet does not always run them in their main thread, which alone can set it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # And nohup this one.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if not RUBIES:
        raise pytest.UsageError("there is no Ruby to test against: run tests/rubies/build, or install ruby")


def rubies_of(item):
    """The Rubies among the parameters of a test."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    values = [one for value in parameters for one in (value if isinstance(value, tuple) else (value,))]
    rubies = [value if isinstance(value, Ruby) else getattr(value, "ruby", None) for value in values]
    return [ruby for ruby in rubies if isinstance(ruby, Ruby)]


def in_order_of_age(rubies):
    return sorted(rubies, key=lambda ruby: ruby.series)


def between(by_age):
    """The one of three_rubies that is neither the oldest nor the newest, if there are so many."""
    return next((ruby for ruby in by_age[1:-1] if ruby.id == "debian"), by_age[len(by_age) // 2])


def is_of_inner_ruby(item):
    """Whether a test with cases of its own is for the outer Rubies, for three or for the newest, but this one is of another."""
    by_age = in_order_of_age(RUBIES)
    if "ruby" in item.fixturenames:
        # chosen(), but for a mark of another parameter's value.
        of_values = {mark.name for mark in item.callspec.marks} if hasattr(item, "callspec") else set()
        return "newest_ruby" in of_values and item.callspec.params["ruby"].series != by_age[-1].series
    if item.get_closest_marker("newest_ruby"):
        return any(ruby.series != by_age[-1].series for ruby in rubies_of(item))
    wanted = {ruby.series for ruby in by_age[:1] + by_age[-1:]}
    if item.get_closest_marker("three_rubies"):
        wanted.add(between(by_age).series)
    elif not item.get_closest_marker("outer_rubies"):
        return False
    return any(ruby.series not in wanted and ruby.id != "debian" for ruby in rubies_of(item))


def is_usual(item):
    """Whether a test is one of those that are run without options."""
    return not (item.get_closest_marker("in_soak") or is_of_inner_ruby(item))


def is_fast(item):
    """Whether a test is one of --fast: of the newest Ruby, or of none; neither long nor alone."""
    newest = max(ruby.series for ruby in RUBIES)
    return not (
        is_alone(item)
        or item.get_closest_marker("in_soak")
        or item.get_closest_marker("long")
        or item.get_closest_marker("outer_rubies")
        or (
            not item.get_closest_marker("any_ruby")
            and any(ruby.series != newest for ruby in rubies_of(item))
        )
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    wanted = is_fast if config.option.fast else (lambda item: config.option.soak or is_usual(item))
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = [item for item in items if wanted(item)]
    put_last(items)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    with lane(item):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call):
    """With pytest-xdist, tests run in other processes: what they note goes with the report."""
    report = (yield).get_result()
    if call.when == "teardown":
        report.user_properties.append(("not applicable", list(not_applicable)))


def pytest_runtest_logreport(report):
    for name, value in report.user_properties:
        for what in value if name == "not applicable" else ():
            note_not_applicable(what)


def pytest_report_header():
    return ["rubies: " + ", ".join(f"{ruby.id} ({ruby.version})" for ruby in RUBIES)]


def pytest_terminal_summary(terminalreporter):
    if not_applicable:
        terminalreporter.section("not applicable")
        for line in not_applicable:
            terminalreporter.write_line(line)


def applies(ruby, test):
    """Whether a test with the fixture `ruby` is run on a Ruby: by its markers; without any, on each."""
    wanted = [(needs(mark.args[0]), mark.args[0]) for mark in test.iter_markers("target")]
    wanted += [mark.args for mark in test.iter_markers("since")]
    lacking = [(oldest, what) for oldest, what in wanted if ruby.series < oldest]
    for oldest, what in lacking:
        note_too_old(what, ruby, oldest)
    return not lacking


def chosen(rubies, test, options):
    """Those Rubies of a test that it is run on."""
    by_age = in_order_of_age(rubies)
    if test.get_closest_marker("any_ruby"):
        return rubies[-1:]
    if options.fast or (test.get_closest_marker("newest_ruby") and not options.soak):
        return by_age[-1:]
    if test.get_closest_marker("outer_rubies") and not options.soak:
        return [ruby for ruby in rubies if ruby in (by_age[:1] + by_age[-1:])]
    if test.get_closest_marker("three_rubies") and rubies and not options.soak:
        return [ruby for ruby in rubies if ruby in (by_age[0], between(by_age), by_age[-1])]
    return rubies


def pytest_generate_tests(metafunc):
    if "ruby" in metafunc.fixturenames:
        # A file can have Rubies of its own: also for tests that it takes from another.
        rubies = [ruby for ruby in metafunc.module.__dict__.get("RUBIES", RUBIES) if applies(ruby, metafunc.definition)]
        rubies = chosen(rubies, metafunc.definition, metafunc.config.option)
        metafunc.parametrize("ruby", rubies, ids=[ruby.id for ruby in rubies], scope="session")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """The user's cache is one of the session's own, which begins empty; nothing of the user's is used or changed."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.delenv("RBDUMP_OFFSETS_D", raising=False)
        patch.delenv("DEBUGINFOD_URLS", raising=False)
        patch.delenv("NO_COLOR", raising=False)
        yield folder


@pytest.fixture(scope="session")
def rbdump():
    """Path of the rbdump to test: $RBDUMP, else the one that make built (with SAN=1 the sanitized one)."""
    built = TESTS.parent / "build" / ("san" if os.environ.get("SAN") == "1" else "") / "rbdump"
    path = pathlib.Path(os.environ.get("RBDUMP", built)).resolve()
    assert path.exists() and path.stat().st_mode & stat.S_IXUSR, f"{path} is not there: run make"
    return str(path)


@pytest.fixture
def times(request):
    """times(10, 30): how often a test does something: 10 times, or 30 with --soak."""
    return lambda usually, in_soak: in_soak if request.config.option.soak else usually


@pytest.fixture
def start():
    """Starts targets, and ends them after the test: start(ruby, "script.rb", arguments…)."""
    started = []

    def start_target(ruby, script, *arguments, **options):
        started.append(Target(ruby.path, script, *arguments, **options))
        return started[-1]

    yield start_target
    for target in started:
        target.close()


@pytest.fixture
def file(tmp_path):
    """Where a test writes its recording."""
    return tmp_path / "recording.rbdump"


@pytest.fixture
def place(request, tmp_path):
    """A copy of the targets' folder, which cores are left in."""
    return copy_of_targets(tmp_path)


@pytest.fixture(scope="session")
def kept(rbdump, tmp_path_factory):
    """kept(ruby): a recording of loops.rb and gvl.rb, and their pids; each Ruby's is made once."""
    made = {}

    def recording(ruby):
        if ruby not in made:
            path = tmp_path_factory.mktemp("kept") / "recording.rbdump"
            with Running(ruby, "shares/loops.rb") as loops, Running(ruby, "shares/gvl.rb") as gvl:
                status, _, errors = record(rbdump, "-p", loops.pid, "-p", gvl.pid, "-r", 200, "-d", 2, file=path)
                assert status == 0, errors
                made[ruby] = (path, loops.pid, gvl.pid)
        return made[ruby]

    return recording


@pytest.fixture(scope="session")
def layouts(rbdump, tmp_path_factory):
    """layouts(ruby) gives the file of its layout, made once."""
    folder = tmp_path_factory.mktemp("layouts")
    made = {}

    def layout(ruby):
        if ruby not in made:
            made[ruby] = generate_layout(ruby, rbdump, folder / f"{ruby.id}.layout")
        return made[ruby]

    return layout


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as session:
        yield session


@pytest.fixture(scope="module")
def pages(chromium, tmp_path_factory):
    """Writes a page, and opens it."""
    folder = tmp_path_factory.mktemp("pages")
    written = {}

    def open_page(name, after, before=None, **options):
        if name not in written:
            written[name] = write_page(PROBE, folder / f"{name}.html", after, before, **options)
        return Page(chromium, written[name])

    yield open_page
    assert chromium.alert() is None


@pytest.fixture
def shop(pages):
    page = pages("shop", profile(SPANS, THREADS))
    yield page
    assert page.browser.console() == []
