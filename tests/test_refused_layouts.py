"""Which layout files rbdump refuses: those that are broken, of another Ruby, or changed."""

import json
import re

import pytest
from conftest import note_not_applicable
from harness.dump import check, dump, run
from harness.layouts import OFFSETS_D, holds_for, without_digest
from harness.process import is_untouched, wait_until_it_reads
from harness.refusals import NOT_RUBY, check_refusal
from harness.target import needs


def check_layout_refused(rbdump, target, path, status, *words):
    check_refusal(run(rbdump, "-p", target.pid, "--offsets", path), status, *words)
    assert is_untouched(target.pid)


def test_given_layout_serves(ruby, start, rbdump, layouts):
    """So that the refusals below are for what was changed."""
    target = start(ruby, "cfuncs.rb")
    answer = dump(rbdump, target.pid, "--offsets", layouts(ruby))
    check(answer, target, ruby)
    assert answer["layout"]["source"] == "given"


@pytest.mark.outer_rubies
@pytest.mark.parametrize(
    "change, words",
    [
        (lambda text: "", ["empty"]),
        (lambda text: text[: len(text) // 2], ["line"]),
        (lambda text: text[: text.rindex("end ")], ["cut short"]),
        (lambda text: text[:100], []),
        (lambda text: text.replace("rbdump-layout 1\n", "rbdump-layout 2\n"), ["format", "2"]),
        (lambda text: text.replace("rbdump-layout 1\n", "rbdump-layout 99999999999999999999\n"), ["format"]),
        (lambda text: "not a layout\n" + text, []),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) \d+", r"\1 9223372036854775808", text), ["line"]),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) \d+", r"\1 -8", text), ["line"]),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) \d+", r"\1 4294967312", text), ["line"]),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) \d+", r"\1 70000", text), ["line"]),
        (lambda text: re.sub(r"(size rb_control_frame_(?:struct|t)) \d+", r"\1 0", text), []),
        (lambda text: re.sub(r"(size rb_control_frame_(?:struct|t)) \d+", r"\1 1000000000", text), ["line"]),
        (lambda text: re.sub(r"(size rb_control_frame_(?:struct|t)) \d+", r"\1 0x40", text), ["line"]),
        (lambda text: re.sub(r"(size rb_control_frame_(?:struct|t)) \d+\n", "", text), []),
        (lambda text: re.sub(r"(member rb_\w+_struct.cfp) .*\n", "", text), []),
        (lambda text: re.sub(r"((?:enumerator|macro) VM_FRAME_MAGIC_MASK) \d+", r"\1 many", text), ["line"]),
        (lambda text: re.sub(r"(member \S+ .*\n)", r"\1\1", text, count=1), ["line"]),
        (lambda text: re.sub(r"(producer|source) .*", lambda m: f"{m[1]} {'x' * 2000}", text), ["line"]),
        (lambda text: text + "x" * (2 << 20), []),
        (lambda text: text.replace("\narch x86_64\n", "\narch mips\n"), ["mips"]),
    ],
    ids=[
        "empty", "half", "no-end", "first-bytes", "format-2", "format-huge", "no-layout", "offset-2^63", "offset-negative",
        "offset-2^32", "offset-beyond-64k", "size-0", "size-huge", "size-in-hex", "size-missing", "member-missing",
        "no-number", "line-twice", "long-line", "too-big", "other-architecture",
    ],
)  # fmt: skip
def test_broken_layout(ruby, start, rbdump, layouts, tmp_path, change, words):
    target = start(ruby, "cfuncs.rb")
    broken = tmp_path / "broken.layout"
    right = without_digest(layouts(ruby).read_text())
    text = change(right)
    assert text != right
    broken.write_text(text)
    check_layout_refused(rbdump, target, broken, NOT_RUBY, "broken.layout", *words)


def test_layout_file_not_there(ruby, start, rbdump, tmp_path):
    target = start(ruby, "cfuncs.rb")
    check_layout_refused(rbdump, target, tmp_path / "none", NOT_RUBY, "none", "no such file")


def test_layout_file_is_a_folder(ruby, start, rbdump, tmp_path):
    target = start(ruby, "cfuncs.rb")
    check_layout_refused(rbdump, target, tmp_path, NOT_RUBY, str(tmp_path))


def members(text):
    return re.findall(r"^(?:member|enumerator) .*", text, re.M)


def only_fibers_differ(text, other):
    """
    Of releases of 2.1: a target that has no fiber cannot contradict where things are in one, nor use it. And of some
    releases of 3.3 and 3.4, in which a Mutex differs: no frame depends on that.
    """
    kinds = ("member rb_fiber_struct.", "member rb_mutex_struct.")
    return all(line.startswith(kinds) for line in set(members(text)) ^ set(members(other)))


@pytest.mark.outer_rubies
@pytest.mark.long
@pytest.mark.target("waits.rb")
def test_layout_of_another_ruby(ruby, start, rbdump, layouts, tmp_path):
    """Every shipped layout of another version, as it is and under this one's version, is refused on the target itself."""
    target = start(ruby, "waits.rb")
    wait_until_it_reads(target.pid)
    versions = set()
    for shipped in sorted(OFFSETS_D.glob("*.layout")):
        text = shipped.read_text()
        version = re.search(r"^version (.*)", text, re.M)[1]
        if holds_for(text, ruby.version):
            continue
        versions.add(version)
        check_layout_refused(rbdump, target, shipped, NOT_RUBY, ruby.version, version)
        if members(text) == members(layouts(ruby).read_text()):
            continue  # what differs is the size of structs that stand alone
        disguised = tmp_path / f"{version}-as-{ruby.version}.layout"
        text = re.sub(r"^(versions|levels) .*\n", "", without_digest(text), flags=re.M)
        disguised.write_text(re.sub(r"^version .*", f"version {ruby.version}", text, flags=re.M))
        if re.search("^configuration ", text, re.M) and only_fibers_differ(text, layouts(ruby).read_text()):
            # Its fibers are elsewhere by more than a release moves them: that is seen as soon as a thread has used one.
            if run(rbdump, "-p", target.pid, "--offsets", disguised).returncode == NOT_RUBY:
                check_layout_refused(rbdump, target, disguised, NOT_RUBY, "self-test")
                continue
        if only_fibers_differ(text, layouts(ruby).read_text()):
            assert frames(dump(rbdump, target.pid, "--offsets", disguised)) == frames(dump(rbdump, target.pid))
            continue
        check_layout_refused(rbdump, target, disguised, NOT_RUBY, "self-test")
    assert versions >= {"2.7.4", "3.1.2", "3.3.8", "3.4.5", "4.0.5"} - {ruby.version}


def mutants(text, directions):
    """
    (what was changed, text) for each member of a layout: a word further and a word back, or in one direction one of both by
    turns; a bitfield by one bit.
    """
    for number, line in enumerate(re.findall(r"^member .*", text, re.M)):
        word, name, offset, size, *bits = line.split()
        if bits:
            changed = [[word, name, offset, size, bits[0], str((int(bits[1]) + 1) % 8), bits[2]]]
        else:
            by_words = [by for by in (8, -8) if int(offset) + by >= 0]
            by_words = by_words[number % len(by_words) :][:1] if directions == 1 else by_words
            changed = [[word, name, str(int(offset) + by), size] for by in by_words]
        for new in changed:
            yield f"{name} {offset}→{new[2]}", text.replace(line + "\n", " ".join(new) + "\n")


def answer(done):
    """What is printed, but for how long it took, by which layout, and what threads wait for and hold."""
    printed = json.loads(done.stdout)
    del printed["pause_us"], printed["layout"], printed["deadlocks"]
    for thread in printed["threads"]:
        del thread["waits"], thread["holds"]
    return printed


def frames(printed):
    return [thread["frames"] for thread in printed["threads"]]


def try_mutants(rbdump, target, text, folder, directions):
    """Offers every mutant, and sorts what comes of them: lists of names for "refused", "wrong stacks", …"""
    wait_until_it_reads(target.pid)
    (folder / "right.layout").write_text(text)
    right = answer(run(rbdump, "-p", target.pid, "--json", "--offsets", folder / "right.layout"))
    outcomes = {}
    for name, mutant in mutants(text, directions):
        (folder / "mutant.layout").write_text(mutant)
        done = run(rbdump, "-p", target.pid, "--json", "--offsets", folder / "mutant.layout")
        if done.returncode == 0 and frames(answer(done)) != frames(right):
            outcome = "wrong stacks"
        elif done.returncode == 0:
            outcome = "same answer" if answer(done) == right else "wrong details"
        elif done.returncode == 1:
            outcome = "marked stacks"
        else:
            check_refusal(done, NOT_RUBY)
            assert re.search("self-test|do not fit into its struct|out of range|digest", done.stderr), done.stderr
            outcome = "refused"
        outcomes.setdefault(outcome, []).append(name)
    assert is_untouched(target.pid)
    return outcomes


@pytest.mark.newest_ruby
@pytest.mark.target("waits.rb")
def test_layout_with_one_member_moved(ruby, start, rbdump, layouts, tmp_path, times):
    """Each is refused: whatever its digest does not belong to, and nothing is printed."""
    target = start(ruby, "waits.rb")
    text = layouts(ruby).read_text()
    assert re.search(r"^digest ", text, re.M)
    outcomes = try_mutants(rbdump, target, text, tmp_path, times(1, 2))
    assert set(outcomes) == {"refused"}, outcomes
    assert len(outcomes["refused"]) > 100


@pytest.mark.newest_ruby
@pytest.mark.since((2, 3), "a self-test that finds each member that is wrong")
def test_layout_of_a_person_with_one_member_moved(ruby, start, rbdump, layouts, tmp_path, times):
    """Without a digest the target is all that can tell: what passes the self-test prints no wrong stack unmarked.

    A target at rest cannot contradict that no thread of it is in a blocking region: where that is wrong, the state of a
    thread is, and no frame. Locks and queues are not part of the self-test: what is read of them is not compared here.
    """
    target = start(ruby, "waits.rb")
    outcomes = try_mutants(rbdump, target, without_digest(layouts(ruby).read_text()), tmp_path, times(1, 2))
    assert not outcomes.get("wrong stacks"), outcomes["wrong stacks"]
    details = {name.split()[0] for name in outcomes.get("wrong details", [])}
    assert details <= {"rb_thread_struct.blocking_region_buffer"}
    assert len(outcomes["refused"]) > 50


def test_outdated_layout_is_made_anew(ruby, start, rbdump, layouts, tmp_path, monkeypatch):
    """One of this very build, in the cache, whose generator did not look for all that this rbdump reads."""
    if not ruby.has_debug:
        note_not_applicable(f"making the layout of {ruby.id} anew: it has no debug info")
        return
    target = start(ruby, "cfuncs.rb")
    cache = tmp_path / "rbdump/offsets.d"
    cache.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    right = layouts(ruby).read_text()
    build_id = re.search(r"^build-id ([0-9a-f]{12})", right, re.M)[1]
    kept = cache / f"{ruby.version}-x86_64-{build_id}.layout"
    kept.write_text(re.sub(r"^asked \w+$", "asked 0123456789abcdef", without_digest(right), flags=re.M))
    answer_ = dump(rbdump, target.pid)
    (made,) = tmp_path.glob("rbdump/by-digest/*/*.layout")
    assert answer_["layout"] == {**answer_["layout"], "source": "generated", "file": str(made)}
    assert made.read_text() == right
    again = dump(rbdump, target.pid)["layout"]
    assert (again["source"], again["file"]) == ("build-id", str(made))


@pytest.mark.parametrize("by", [8, -8])
@pytest.mark.parametrize("struct", ["rb_control_frame_(struct|t)", "iseq_(insn|line)_info_entry", "succ_dict_block"])
def test_layout_with_another_size(ruby, start, rbdump, layouts, tmp_path, struct, by):
    """Of structs that stand in a row, of which the size is the step from one to the next."""
    if struct == "succ_dict_block" and ruby.series < (2, 6):
        note_not_applicable(f"another size of {struct} on {ruby.id}: it has none")
        return
    target = start(ruby, "multiline.rb" if ruby.series >= needs("multiline.rb") else "oldest.rb")
    mutant = tmp_path / "mutant.layout"

    def changed(match):
        return f"{match[1]} {int(match[match.lastindex]) + by}"

    right = without_digest(layouts(ruby).read_text())
    text, changes = re.subn(rf"^(size {struct}) (\d+)$", changed, right, flags=re.M)
    assert changes == 1
    mutant.write_text(text)
    check_layout_refused(rbdump, target, mutant, NOT_RUBY)
