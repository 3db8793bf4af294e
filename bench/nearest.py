#!/usr/bin/python3
"""--nearest on Rubies whose own layout was taken away: how often it is right, refused, or wrong.

bench/nearest.py [--ruby ID]… [--target SCRIPT]… [--moved SCRIPT]…: each Ruby that the tests find, stripped, and each golden core. Every
other shipped layout is tried as the only neighbour; every layout with a struct of it moved, as a patch release may move
it; and what --nearest finds itself where all layouts but the Ruby's own are there. What is right is what is shown through
the Ruby's own layout, and what Ruby says of itself. The exit status is 1 if anything else was shown unmarked."""

import argparse
import collections
import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness.dump import check  # noqa: E402
from harness.golden import GOLDEN, check_golden, golden_told, unpack_golden  # noqa: E402
from harness.layouts import CONFIGURATIONS, SHIPPED, claimed, digest_of, header, release  # noqa: E402
from harness.rubies import find_rubies  # noqa: E402
from harness.stripped import stripped_copy  # noqa: E402
from harness.target import Target, needs  # noqa: E402

RBDUMP = os.environ.get("RBDUMP", ROOT / "build/rbdump")
TARGETS = ["names.rb", "blocks.rb", "methods.rb", "threads.rb", "waits.rb", "evals.rb", "fibers_suspended.rb"]
MOVED = ["waits.rb", "fibers_suspended.rb"]  # those that layouts with moved structs are tried on
LAYOUTS = SHIPPED + [path for paths in CONFIGURATIONS.values() for path in paths]
OUTCOMES = ["same", "refused", "marked", "OTHER"]
NOT_RUBY = 3


def is_for(path, version):
    """Whether a layout is for a release; of one with patch levels, whether it may be."""
    first, last = claimed(path.read_text())
    return first[:3] <= release(version) <= last[:3]


def moved(text):
    """(what was moved, layout) for each struct and each place in it: all members behind it 8 bytes further, or back."""
    members = collections.defaultdict(set)
    for struct, offset in re.findall(r"^member ([^. ]+)\.\S+ (\d+) ", text, re.M):
        members[struct].add(int(offset))
    for struct, offsets in members.items():
        for at in sorted(offsets):
            for by in (8, -8):
                if at + by < 0:
                    continue

                def shifted(line, struct=struct, at=at, by=by):
                    far = int(line[2]) >= at
                    return f"member {struct}.{line[1]} {int(line[2]) + by * far} "

                changed = re.sub(rf"^member {re.escape(struct)}\.(\S+) (\d+) ", shifted, text, flags=re.M)
                grown = re.sub(rf"^(size {re.escape(struct)}) (\d+)$", lambda m: f"{m[1]} {int(m[2]) + max(by, 0)}", changed, flags=re.M)
                yield f"{struct} from {at} on by {by:+}", grown


class Look:
    """A target that is looked at by an rbdump that has no layouts but those in one folder."""

    def __init__(self, rbdump, folder, arguments, check_told):
        self.rbdump, self.folder, self.arguments, self.check_told = rbdump, folder, arguments, check_told

    def run(self, *more):
        environment = {**os.environ, "RBDUMP_OFFSETS_D": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache")}
        return subprocess.run(
            [self.rbdump, *self.arguments, "--json", *more],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def layouts(self, *paths):
        for path in self.folder.glob("*.layout"):
            path.unlink()
        for path in paths:
            shutil.copy(path, self.folder)

    def by_own(self, own):
        self.layouts(*own)
        done = self.run()
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["layout"]["source"] == "version"
        self.check_told(answer)
        return answer

    def outcome(self, right):
        """What --nearest comes to: (outcome, layout or sentence)"""
        done = self.run("--nearest")
        if done.returncode == NOT_RUBY:
            assert not done.stdout
            return "refused", done.stderr.strip()
        assert done.returncode in (0, 1), done.stderr
        answer = json.loads(done.stdout)
        assert answer["layout"]["source"] == "nearest"
        if is_same(answer, right):
            return "same", answer["layout"]["releases"]
        named = answer["layout"]["file"]
        # That it is not known which native thread a thread has is said by null.
        untold = [thread["tid"] is None for thread in answer["threads"]]
        for thread, other, is_untold in zip(answer["threads"], right["threads"], untold):
            thread["tid"] = other["tid"] if is_untold else thread["tid"]
        says_less = any(untold) and is_same(answer, right)
        return ("marked" if done.returncode == 1 or says_less else "OTHER"), named


def is_same(mine, right):
    return all(mine[key] == right[key] for key in ("threads", "thread_list", "fibers"))


def shorter(mine, other):
    """Two values as text, from a bit before where they begin to differ."""
    mine, other = str(mine), str(other)
    same = len(os.path.commonprefix([mine, other]))
    return f"{mine[max(0, same - 40):same + 60]!r} for {other[max(0, same - 40):same + 60]!r}"


def differences(look, right):
    """The first thing that is shown otherwise than through the Ruby's own layout."""
    ours = json.loads(look.run("--nearest").stdout)
    for mine, other in zip(ours["threads"], right["threads"]):
        for key in mine:
            if mine[key] != other[key]:
                return f"{key}: {shorter(mine[key], other[key])}"
    return shorter([ours["fibers"], ours["thread_list"]], [right["fibers"], right["thread_list"]])


def try_all(look, version, counts, with_moved):
    """Tries all neighbours; counts[kind][outcome] go up. Gives what the real choice was."""
    own = [path for path in LAYOUTS if is_for(path, version)]
    right = look.by_own(own)
    used = ROOT / "offsets.d" / pathlib.Path(right["layout"]["file"]).name
    facts = digest_of(used.read_text())

    def count(kind, what):
        outcome, why = look.outcome(right)
        counts[kind][outcome] += 1
        if outcome in ("OTHER", "marked"):
            print(f"    {outcome}: {kind}: {what}", differences(look, right), sep="\n      ", flush=True)
        return outcome, why

    for path in LAYOUTS:
        if digest_of(path.read_text()) != facts:
            look.layouts()
            text = path.read_text()
            if is_for(path, version):  # its other configuration, as if it were for the next release
                text = as_next(text, version)
            (look.folder / path.name).write_text(text)
            count("pairs", path.name)
    if with_moved:
        for what, text in moved(as_next(used.read_text(), version)):
            look.layouts()
            (look.folder / "moved.layout").write_text(text)
            done = look.run("--nearest")
            if "there are layouts up to" in done.stderr or done.returncode in (0, 1):
                count("moved", what)
    look.layouts(*[path for path in LAYOUTS if path not in own])
    return count("choice", "the real choice")


def as_next(text, version):
    """A layout as if it were for the next release, and a person had written it."""
    *series, patch = release(version)
    text = re.sub(r"^(digest|versions|levels) .*\n", "", text, flags=re.M)
    return re.sub(r"^version .*", f"version {'.'.join(map(str, [*series, patch + 1]))}", text, flags=re.M)


def looks_of(ruby, rbdump, folder, targets):
    """(name of the target, look) for each target that the Ruby can run."""
    with stripped_copy(ruby, folder) as copy:
        for script in targets:
            if ruby.series < needs(script):
                continue
            with contextlib.closing(Target(copy.ruby.path, script, environment=copy.environment)) as target:
                yield script, Look(rbdump, folder, ["-p", str(target.pid)], lambda answer: check(answer, target, ruby))


def looks_of_core(series, rbdump, folder):
    told = golden_told(series)
    core = unpack_golden(series, folder)
    look = Look(rbdump, folder, ["--core", core, "--ruby-version", told["version"]], lambda answer: check_golden(answer, told))
    yield "golden.rb", look


def chosen(choices):
    """Which layouts were taken by itself."""
    taken = sorted({why.replace(" ", " to ") for outcome, why in choices if outcome == "same"})
    return f": takes that of {', '.join(taken)}" if taken else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ruby", action="append", help="the id of one; golden-SERIES: a core")
    parser.add_argument("--target", action="append", help="one of tests/targets")
    parser.add_argument("--moved", action="append", help="one that layouts with moved structs are tried on")
    options = parser.parse_args()
    subjects = {f"golden-{path.name.split('.core')[0]}": None for path in sorted(GOLDEN.glob("*.core.zst"))}
    subjects |= {ruby.id: ruby for ruby in find_rubies()}
    rows = []
    for name, ruby in subjects.items():
        if options.ruby and name not in options.ruby:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            rbdump = shutil.copy(RBDUMP, folder / "rbdump")
            version = ruby.version if ruby else golden_told(name.removeprefix("golden-"))["version"]
            counts = collections.defaultdict(collections.Counter)
            choices = collections.Counter()
            looks = looks_of(ruby, rbdump, folder, options.target or TARGETS) if ruby else looks_of_core(name.removeprefix("golden-"), rbdump, folder)
            for script, look in looks:
                print(f"{name} {version} {script}", flush=True)
                outcome, why = try_all(look, version, counts, not ruby or script in (options.moved or MOVED))
                choices[(outcome, why)] += 1
                print(f"    {outcome}: {why}", *[f"{kind}: {dict(of)}" for kind, of in counts.items()], sep="\n    ", flush=True)
            rows.append((name, version, counts, choices))
    print(f"\nbench/nearest.py, {datetime.date.today()}\n")
    print("| Ruby | layouts | " + " | ".join(OUTCOMES) + " |\n|---|---|" + "---|" * len(OUTCOMES))
    for name, version, counts, choices in rows:
        for kind, text in (("pairs", "another release's, each alone"), ("moved", "its own, with a struct moved"), ("choice", "all others")):
            numbers = " | ".join(str(counts[kind][one]) for one in OUTCOMES)
            print(f"| {version} ({name}) | {text}{chosen(choices) if kind == 'choice' else ''} | {numbers} |")
    return any(counts[kind]["OTHER"] for _, _, counts, _ in rows for kind in counts)


if __name__ == "__main__":
    sys.exit(main())
