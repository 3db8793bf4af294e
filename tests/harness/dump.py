"""Running rbdump, and comparing what it says with what Ruby says of itself."""

import itertools
import json
import re
import subprocess

# What Thread#inspect says of a thread at its still point, and how rbdump may put it. None: it does not tell which.
STATES = {
    b"sleep": {"sleeping", "blocked"},
    b"sleep_forever": {"sleeping_forever"},
    None: {"sleeping", "blocked", "sleeping_forever"},
}


def run(rbdump, *arguments, **options):
    """Runs rbdump to its end; standard output and error as text."""
    return subprocess.run(
        [rbdump, *[str(argument) for argument in arguments]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        **options,
    )


def dump(rbdump, pid, *arguments, status=0):
    """`rbdump -p PID --json`, with its exit status checked (None: it may be 1, for a doubtful stack); gives the parsed JSON."""
    done = run(rbdump, "-p", pid, "--json", *arguments)
    wanted = (0, 1) if status is None else (status,)
    assert done.returncode in wanted, f"exit status {done.returncode}: {done.stderr or done.stdout[:2000]}"
    assert done.stderr == ""
    return json.loads(done.stdout)


def as_text(raw):
    """Bytes as rbdump writes them: each that is no part of well-formed UTF-8, and NUL, as \\xNN."""
    if raw is None:
        return None
    text = ""
    while raw:
        try:
            text += raw.decode("utf-8")
            break
        except UnicodeDecodeError as error:
            text += raw[: error.start].decode("utf-8")
            text += "".join(f"\\x{byte:02X}" for byte in raw[error.start : error.end])
            raw = raw[error.end :]
    return text.replace("\0", "\\x00")


def current(answer):
    """The threads with what they do now, without their suspended fibers."""
    return [thread for thread in answer["threads"] if not thread.get("fiber") or thread["fiber"].get("current", True)]


def thread_of(answer, subject):
    """
    rbdump's entry of a subject: by being main, by its name, by its kernel thread, or the only one without a name. Before
    2.3 no thread has a name, nor tells its kernel thread: then by its frames, if any has just these.
    """
    threads = current(answer)
    if subject["key"] == b"main":
        found = [thread for thread in threads if thread["main"]]
    elif subject["name"] is not None:
        found = [thread for thread in threads if thread["name"] == as_text(subject["name"])]
    elif subject["tid"] is not None:
        found = [thread for thread in threads if thread["tid"] == subject["tid"]]
    else:
        found = [thread for thread in threads if thread["name"] is None and not thread["main"]]
        same = [thread for thread in found if not difference(rbdumps_frames(thread), rubys_frames(subject))]
        found = same[:1] or found
    assert len(found) == 1, f"{subject['key']}: {len(found)} threads match"
    return found[0]


def rubys_frames(subject):
    """
    (path, absolute path, line, label) of each frame as Ruby itself told it. No line is None; an absolute path, and a
    frame, that this Ruby does not tell (1.9.3) is False.
    """
    return [
        frame
        and (as_text(frame[0]), frame[1] if frame[1] is False else as_text(frame[1]), frame[2] or None, as_text(frame[3]))
        for frame in subject["frames"]
    ]


def rbdumps_frames(thread):
    """The same as rbdump told it; a frame that is neither Ruby's nor a C function's is not like any of Ruby's."""
    return [
        (frame.get("path"), frame.get("absolute_path"), frame.get("line") or None, frame["label"])
        if frame["kind"] in ("ruby", "cfunc")
        else frame
        for frame in thread["frames"]
    ]


def as_told(ours, rubys):
    """A frame without what Ruby does not tell of it."""
    if rubys is False and isinstance(ours, tuple):
        return False
    return (ours[0], False, *ours[2:]) if isinstance(ours, tuple) and rubys and rubys[1] is False else ours


def difference(ours, rubys):
    """None if two lists of frames are the same, else what differs, readably."""
    ours = [as_told(mine, theirs) for mine, theirs in itertools.zip_longest(ours, rubys[: len(ours)])]
    if ours == rubys:
        return None
    at = next((i for i, pair in enumerate(zip(ours, rubys)) if pair[0] != pair[1]), min(len(ours), len(rubys)))
    lines = [f"{len(ours)} frames, Ruby has {len(rubys)}; the first difference is frame {at}:"]
    lines += [f"  rbdump {frame}" for frame in ours[at : at + 3]] + [f"  Ruby   {frame}" for frame in rubys[at : at + 3]]
    return "\n".join(lines)


def check_thread(answer, subject):
    """One subject: verdict, kernel thread, name, state and every frame. Gives a list of complaints."""
    key = as_text(subject["key"])
    thread = thread_of(answer, subject)
    complaints = []
    if (thread["verdict"], thread["reason"]) != ("complete", None):
        complaints.append(f"{key}: verdict {thread['verdict']}: {thread['reason']}")
    if subject["tid"] is not None and thread["tid"] != subject["tid"]:
        complaints.append(f"{key}: tid {thread['tid']}, Ruby says {subject['tid']}")
    if subject["name"] is not None and thread["name"] != as_text(subject["name"]):
        complaints.append(f"{key}: name {thread['name']!r}, Ruby says {subject['name']}")
    if thread["state"] not in STATES[subject["state"]]:
        complaints.append(f"{key}: state {thread['state']}, Ruby says {subject['state']}")
    differs = difference(rbdumps_frames(thread), rubys_frames(subject))
    if differs:
        complaints.append(f"{key}: {differs}")
    return complaints


def without_waits(lines):
    """The lines of a dump as text, without what threads wait for: locks, system calls, and what these wait for."""
    return [line for line in lines if not re.match(r" {2}\S| {6}", line)]


def says_version(answer, version):
    """Whether an answer has that version; or, if no one says which it is, releases that are one with it."""
    fit = answer["ruby_versions_fit"]
    if answer["ruby_version_source"] != "fits":
        return fit is None and answer["ruby_version"] == version
    numbers = [[tuple(map(int, one.split("."))) for one in versions.split(" ")] for versions in fit]
    wanted = tuple(map(int, version.split(".")))
    return answer["ruby_version"] is None and any(of[0] <= wanted <= of[-1] for of in numbers)


def check(answer, target, ruby, mode="paused"):
    """A whole dump of a target at its still points."""
    assert answer["schema_version"] == 1
    assert answer["pid"] == target.pid
    assert says_version(answer, ruby.version)
    assert answer["mode"] == mode
    assert answer["gc"]["running"] is False
    if mode == "paused":
        assert 0 <= answer["pause_us"] < 10_000_000
    assert [thread["main"] for thread in current(answer)].count(True) == 1
    complaints = [
        f"{thread['name']}: verdict {thread['verdict']}: {thread['reason']}"
        for thread in answer["threads"]
        if thread["verdict"] != "complete"
    ]
    for subject in target.ready["threads"]:
        complaints += check_thread(answer, subject)
    assert not complaints, "\n".join(complaints)
