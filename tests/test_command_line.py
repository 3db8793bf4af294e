"""The command line: old and new spellings do the same, help in every way, suggestions, manual pages, completions."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import note_not_applicable
from harness.dump import check, run
from harness.golden import unpack_golden
from harness.refusals import USAGE, check_refusal
from harness.rubies import find_rubies
from harness.synthetic import ROOT
from harness.target import Target

VERBS = sorted(path.stem for path in (ROOT / "dumper/verbs/help").glob("*.txt") if path.stem != "rbdump")
BUILT = [ruby for ruby in find_rubies() if ruby.shared]  # here, with debug info
SHELLS = {"bash": "rbdump.bash", "zsh": "_rbdump", "fish": "rbdump.fish"}


def options_of(text):
    """The long options that a help text describes, and the letters of those that have one."""
    lines = [line for line in text.splitlines() if re.match(r" {2}(-\w, | {4})--", line)]
    words = [word for line in lines for word in re.findall(r"(?<![\w-])--?[\w-]+", re.split(r" {2,}", line.strip())[0])]
    return {word for word in words if word.startswith("--")}, {word[1] for word in words if not word.startswith("--")}


@pytest.mark.any_ruby
@pytest.mark.target("methods.rb")
def test_spellings_of_dump(ruby, rbdump):
    with contextlib.closing(Target(ruby.path, "methods.rb")) as target:
        pid = str(target.pid)
        for words in ([pid], ["dump", pid], ["-p", pid], ["dump", "-p", pid], [f"--pid={pid}"], ["dump", f"--pid={pid}"]):
            for arguments in (["--json", *words], [*words, "--json"]) if words[0] != "dump" else ([*words, "--json"],):
                done = run(rbdump, *arguments)
                assert (done.returncode, done.stderr) == (0, ""), arguments
                check(json.loads(done.stdout), target, ruby)


@pytest.mark.any_ruby
@pytest.mark.target("methods.rb")
@pytest.mark.parametrize("verb", ["record", "experiment"])
def test_spellings_of_a_process(ruby, rbdump, tmp_path, verb):
    """A process id may stand without -p, before and after options; behind `--` it is the name of a command."""
    output = tmp_path / "out"
    some = ["-d", "0.2", "-o", output] if verb == "record" else ["-n", "20", "-m", "unpaused"]
    with contextlib.closing(Target(ruby.path, "methods.rb")) as target:
        for words in (["-p", target.pid, *some], [target.pid, *some], [*some, target.pid]):
            assert run(rbdump, verb, *words).returncode == 0, words
        done = run(rbdump, verb, *some, "--", target.pid)
        assert done.returncode == 2 and f"{target.pid} cannot be started" in done.stderr
        check_refusal(run(rbdump, verb, *some, target.pid, "--", "true"), USAGE)


def test_spellings_of_layout(rbdump):
    ruby = BUILT[-1]
    old = run(rbdump, "--gen-offsets", ruby.path, "-o", "-")
    new = run(rbdump, "layout", ruby.path, "-o", "-")
    assert old.returncode == new.returncode == 0
    assert new.stdout == old.stdout and new.stdout.startswith("rbdump-layout 1\n")
    any_build = run(rbdump, "layout", "--any-build", "--output=-", ruby.path)
    assert any_build.stdout == run(rbdump, "-g", ruby.path, "--any-build", "-o", "-").stdout
    assert "build-id" not in any_build.stdout


@pytest.mark.parametrize("executable", ["/bin/true", "dmup", "/nothing/ruby"])
def test_order_of_core_and_executable(rbdump, tmp_path, executable):
    """The executable of a core may stand before the options."""
    core = unpack_golden("3.4", tmp_path)
    (tmp_path / "dmup").write_bytes(b"not ELF")
    for more in ([], ["--force"], ["--json"]):
        told = run(rbdump, "--core", core, executable, *more, cwd=tmp_path)
        assert told.returncode != USAGE and (told.stdout or told.stderr)
        for words in (
            [executable, "--core", core, *more],
            [executable, *more, f"--core={core}"],
            [executable, f"-c{core}", *more],
            ["dump", executable, "--core", core, *more],
            [*more, executable, "-c", core],
        ):
            done = run(rbdump, *words, cwd=tmp_path)
            assert (done.returncode, done.stdout, done.stderr) == (told.returncode, told.stdout, told.stderr), words


def test_help(rbdump):
    overview = run(rbdump, "--help")
    assert (overview.returncode, overview.stderr) == (0, "")
    assert max(map(len, overview.stdout.splitlines())) <= 100
    for words in (["-h"], ["help"], ["help", "help"], ["help", "-h"], ["help", "--help"]):
        done = run(rbdump, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, overview.stdout, ""), words
    for verb in VERBS:
        assert re.search(rf"^  {verb}\b", overview.stdout, re.M)
        text = run(rbdump, "help", verb)
        assert text.returncode == 0
        assert re.match(rf"Usage: rbdump (\[{verb}\]|{verb})", text.stdout)
        for words in ([verb, "--help"], [verb, "-h"]):
            assert run(rbdump, *words).stdout == text.stdout
        assert max(map(len, text.stdout.splitlines())) <= 100


def test_version(rbdump):
    told = run(rbdump, "--version")
    assert told.returncode == 0 and told.stdout.startswith("rbdump ")
    assert run(rbdump, "-V").stdout == run(rbdump, "version").stdout == told.stdout


@pytest.mark.parametrize(
    "words, said",
    [
        (["recrod"], "unknown command: recrod (did you mean record?)"),
        (["dmup", "1"], "unknown command: dmup (did you mean dump?)"),
        (["help", "reprot"], "unknown command: reprot (did you mean report?)"),
        (["/proc/version"], "unknown command: /proc/version (this is a file; to read a core, use rbdump --core FILE; to read a recording, use rbdump report FILE)"),
        (["frobnicate"], "unknown command: frobnicate;"),
        (["x"], "unknown command: x;"),
        (["1951", "--jsno"], "--jsno is not an option (did you mean --json?)"),
        (["record", "--raet=5"], "--raet=5 is not an option (did you mean --rate?)"),
        (["report", "--fromat", "x"], "--fromat is not an option (did you mean --format?)"),
        (["experiment", "--sampels=2"], "--sampels=2 is not an option (did you mean --samples?)"),
        (["layout", "--xyz"], "--xyz is not an option; see rbdump help layout"),
        (["record", "-x"], "-x is not an option; see rbdump help record"),
        (["report", "--from"], "--from needs an argument"),
        (["record", "-f", "svg"], "svg is not a format; use raw, flamegraph, "),
        (["report", "-f", "raw"], "raw is not a format; use flamegraph, "),
        (["1951", "--json=x"], "rbdump: --json takes no argument; see rbdump help dump"),
        (["1951", "--js=x"], "rbdump: --json takes no argument;"),
        (["record", "--idle=1"], "rbdump: --idle takes no argument;"),
        (["version", "--help=x"], "rbdump: --help takes no argument; see rbdump help version"),
        (["1951", "--o"], "rbdump: --o is ambiguous: --offsets, --output; see rbdump help dump"),
        (["record", "--o=x"], "rbdump: --o=x is ambiguous: --output, --on-cpu, --offsets; see rbdump help record"),
        (["1951", "--=x"], "--=x is not an option; see rbdump help dump"),
        (["1951", "-json"], "-json is not an option (did you mean --json?); see rbdump help dump"),
        (["-jsno", "1951"], "-jsno is not an option (did you mean --json?)"),
        (["record", "-mode=x"], "-mode=x is not an option (did you mean --mode?)"),
        (["1951", "-xyz"], "rbdump: -x is not an option; see rbdump help dump"),
        (["1951", "-j"], "rbdump: -j is not an option; see rbdump help dump"),
        (["1951", "-\xff"], "is not an option; see rbdump help dump"),
        (["dmup", "--core", "x"], "unknown command: dmup (did you mean dump?)"),
        (["recrod", "--", "cc", "-c", "x.c"], "unknown command: recrod (did you mean record?)"),
        (["/bin/true", "--json"], "unknown command: /bin/true"),
        (["/bin/true", "--core"], "--core needs an argument"),
        (["1951", "foo"], "unexpected argument: foo"),
        (["dump", "1", "2"], "unexpected argument: 2"),
        (["layout", "a", "b"], "unexpected argument: b"),
        (["version", "a"], "unexpected argument: a"),
        (["1951x"], "1951x is not a process id"),
        (["dump", "0"], "0 is not a process id"),
        (["layout"], "give the ELF file"),
        (["dump"], "give PID or --core FILE"),
        ([], "give PID or --core FILE, or a command; see rbdump --help"),
        ([""], "the process id is empty; see rbdump help dump"),
        (["record", "-p", ""], "the process id is empty; see rbdump help record"),
        (["experiment", "-p", "1", "-p", "2"], "give only one PID"),
        (["-p", "1", "-p", "2"], "give only one PID"),
        (["a\033[1mb"], "unknown command: a\\x1B[1mb"),
        (["1", "a\033[1mb"], "unexpected argument: a\\x1B[1mb"),
    ],
)
def test_wrong_words(rbdump, words, said):
    check_refusal(run(rbdump, *words), USAGE, said)


# ---- one text for the help and the manual page; the options in it are those that the verb takes


def table_of(verb):
    """The options that a verb takes, by its getopt table: the long ones, and the letters of those that have one."""
    source = (ROOT / f"dumper/verbs/{verb}.c").read_text()
    if "TARGET_ARGUMENTS," in source:
        source += (ROOT / "dumper/verbs/target_arguments.h").read_text()
    if "REPORT_OPTIONS," in source:
        source += (ROOT / "dumper/report/report.h").read_text()
    rows = re.findall(r'\{?\s*"([\w-]+)", (?:required|no|optional)_argument, NULL, (\'\w\'|\w+)', source)
    assert len(rows) == len(dict(rows)) and "help" in dict(rows)
    return {f"--{name}" for name, _ in rows}, {value[1] for _, value in rows if value[0] == "'"}


@pytest.fixture(scope="session")
def manual(tmp_path_factory):
    """manual(name): the source of a manual page."""
    folder = tmp_path_factory.mktemp("manual")
    words = [ROOT / "dumper/verbs/help/pages.py", "1.2.3", "2001-02-03", folder / "help.c", folder]
    subprocess.run(["/usr/bin/python3", *words], check=True, timeout=60)
    return lambda name: (folder / f"{name}.1").read_text()


def plain(roff):
    return re.sub(r"\\f[BIR]", "", roff).replace(r"\-", "-").replace(r"\(ha", "^").replace(r"\(ti", "~").replace(r"\(dq", '"')


@pytest.mark.parametrize("verb", VERBS)
def test_options_of_help(rbdump, verb):
    assert options_of(run(rbdump, verb, "--help").stdout) == table_of(verb)


@pytest.mark.parametrize("verb", VERBS)
def test_options_of_manual(verb, manual):
    options = re.search(r"^\.SH OPTIONS\n(.*?)^\.SH ", manual(f"rbdump-{verb}"), re.M | re.S)[1]
    terms = plain("\n".join(re.findall(r"^\.TP\n(.*)$", options, re.M)))
    words = re.findall(r"(?<![\w-])--?[\w-]+", terms)
    assert len(words) == len(set(words))
    assert ({word for word in words if word[1] == "-"}, {word[1] for word in words if word[1] != "-"}) == table_of(verb)


def test_formats_are_named_alike(rbdump):
    """Help and the message about an unknown format name the formats that there are, in their order."""
    formats = re.findall(r'^    \{"(\w+)", format_', (ROOT / "dumper/report/report.c").read_text(), re.M)
    assert len(formats) > 5
    said = run(rbdump, "report", "-f", "svg").stderr
    assert re.findall(r"\w+", re.search(r"; use (.*?)[;\n]", said)[1].replace(" or ", " ")) == formats
    for verb, others in (("report", []), ("record", ["raw"])):
        text = re.search(r"-f, --format FORMAT(.*?)\n {2,6}-", run(rbdump, verb, "--help").stdout, re.S)[1]
        assert {word for word in [*others, *formats] if not re.search(rf"\b{word}\b", text)} == set(), verb


@pytest.mark.parametrize("name", ["rbdump", *VERBS])
def test_manual(rbdump, name, manual):
    """A page has the whole help, in order, and every section; and mandoc has nothing to say against it."""
    page = manual("rbdump" if name == "rbdump" else f"rbdump-{name}")
    headings = re.findall(r"^\.SH (.*)$", page, re.M)
    assert headings[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"] and headings[-1] == "SEE ALSO"
    assert {"OPTIONS", "EXIT STATUS"} < set(headings)
    assert ("EXAMPLES" in headings) == (name not in ("rbdump", "version"))
    assert (name == "rbdump") == ({"FILES", "ENVIRONMENT", "LAYOUTS"} < set(headings))
    assert (name == "experiment") == ("REPORT" in headings) and (name in ("record", "experiment")) == ("SIGNALS" in headings)
    said = re.split(r"\W+", plain(page))
    text = run(rbdump, *([] if name == "rbdump" else [name]), "--help").stdout
    for word in re.split(r"\W+", re.sub(r"^(Usage|Exit status): ", "", text, flags=re.M)):
        assert word in said, word
        said = said[said.index(word) + 1 :]
    if shutil.which("mandoc"):
        lint = subprocess.run(["mandoc", "-T", "lint"], input=page, capture_output=True, text=True, timeout=60, check=False)
        assert (lint.returncode, lint.stdout, lint.stderr) == (0, "", "")
    else:
        note_not_applicable("mandoc on the manual pages: it is not installed")


def test_names_of_pages(manual):
    """What `see also` names of rbdump's own is there."""
    for name in ["rbdump", *(f"rbdump-{verb}" for verb in VERBS)]:
        for other in re.findall(r"\b(rbdump[\w-]*)\(1\)", plain(manual(name))):
            assert manual(other)


def shell(name, script, *words, cwd="/"):
    """What a shell says to a script whose arguments are completions/FILE and these words; skips if it is not installed."""
    if not shutil.which(name):
        note_not_applicable(f"completions for {name}: it is not installed")
        pytest.skip(f"{name} is not installed")
    arguments = [str(ROOT / "completions" / SHELLS[name]), *words]
    options = {"bash": ["--norc", "-c", script, "bash", *arguments], "fish": ["--no-config", "-c", script, *arguments]}
    more, typed = {}, b""
    if name == "zsh":  # only its line editor completes: a terminal is needed, on which the first command line is typed here
        options["zsh"] = ["-f", "-i"]
        # The first shell notes where all completions are; to look through the files of zsh takes it more than a second.
        more = {"SCRIPT": script, "TERM": "dumb", "COMPLETIONS": os.path.join(os.environ["XDG_CACHE_HOME"], "zsh-completions")}
        typed = b'set -- %s; eval "$SCRIPT"\n' % shlex.join(arguments).encode()
    ours, theirs = os.openpty()
    try:
        os.write(ours, typed)
        done = subprocess.run(
            [name, *options[name]],
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=60,
            check=name != "zsh",  # whose status is that of the completion: 1 if there is more than one
            cwd=cwd,
            env={**os.environ, **more},
            start_new_session=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stderr == ""
    return done.stdout


# The words of a command line, of which the last is to be completed: prints what it could be, one a line.
BASH = """. "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); COMP_LINE=${COMP_WORDS[*]}; COMP_POINT=${#COMP_LINE}
compopt() { :; }; complete -p rbdump | grep -q " -F _rbdump " || exit 1
_rbdump rbdump "${@: -1}" "${@: -2:1}"; printf '%s\\n' "${COMPREPLY[@]}" """
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"
FISH = "source $argv[1]; complete -C (string join -- ' ' $argv[2..-1])"
ZSH = """PROMPT=; setopt no_auto_list no_beep; fpath=(${1:h} $fpath); autoload -Uz compinit
if [[ -s $COMPLETIONS ]]; then compinit -u -C -d $COMPLETIONS; else compinit -u -d $COMPLETIONS; fi
compadd() {
	local -a offered
	[[ " ${(j: :)@[1,(i)-(|-)]} " == *\\ -[OAD]\\ * ]] || { builtin compadd -O offered "$@"; print -rl -- $offered }
	builtin compadd "$@"
}
line="${(j: :)@[2,-1]}"; f() { BUFFER=$line CURSOR=$#line; zle complete-word; exit }; zle -N zle-line-init f"""


def completed(name, *words, first="", cwd="/"):
    """{what a word could be}, for a command line that ends with that word; `first` is what the shell does before"""
    script = {"bash": BASH, "fish": FISH, "zsh": ZSH}[name]
    said = shell(name, f"{first}\n{script}", *words, cwd=cwd)
    found = {line.split("\t")[0] for line in said.splitlines()}
    return {word for word in found if word.strip("-")}  # `-` is a command of zsh


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("verb", VERBS)
def test_options_of_completions(verb, name):
    words, letters = table_of(verb)
    assert completed(name, "rbdump", verb, "--") == words
    assert {word for word in completed(name, "rbdump", verb, "-") if word[1] != "-"} == {f"-{letter}" for letter in letters}


KNOWN = {"--color", "--format", "--mode", "--modes", "--by", "--state", "--threads", "--on-torn"}  # the options with known values


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("verb", VERBS)
def test_values_of_completions(rbdump, verb, name):
    """If the completion knows what the argument of an option can be, the help says the same."""
    text = run(rbdump, verb, "--help").stdout
    known = KNOWN & table_of(verb)[0]
    for option in known:
        meaning = re.search(rf"{option}\b.*\n(?:  {{20,}}.*\n)*", text)[0]
        values = completed(name, "rbdump", verb, option, "")
        assert len(values) >= 2, option
        for value in values:
            of_report = verb == "record" and option in ("--by", "--threads")
            assert of_report or re.search(rf"(?<![\w-]){value}(?![\w-])", meaning), (option, value)


@pytest.mark.parametrize("verb", VERBS)
def test_texts_of_completions(verb):
    """fish would show the text of the option at each value."""
    for option in KNOWN & table_of(verb)[0]:
        said = shell("fish", FISH, "rbdump", verb, option, "")
        assert said and "\t" not in said, option


@pytest.mark.parametrize("name", SHELLS)
def test_verbs_of_completions(name):
    assert {"help", *VERBS} <= completed(name, "rbdump", "")
    assert completed(name, "rbdump", "help", "") == set(VERBS)
    assert completed(name, "rbdump", "re") == {"record", "report"}


@pytest.mark.parametrize("name", SHELLS)
def test_processes_of_completions(name, tmp_path, monkeypatch):
    """Rubies are offered, and no other processes of the terminal: here, of the children of this process."""
    pgrep = shutil.which("pgrep")
    if not pgrep:
        note_not_applicable("processes of completions: pgrep is not installed")
        pytest.skip("pgrep is not installed")
    (tmp_path / "pgrep").write_text(f'#!/bin/sh\nexec {pgrep} -P {os.getpid()} "$@"\n')
    (tmp_path / "pgrep").chmod(0o755)
    (tmp_path / "ruby").symlink_to(shutil.which("sleep"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with contextlib.ExitStack() as stack:
        pids = {}
        for comm in ("ruby", "sleep"):
            process = stack.enter_context(subprocess.Popen(["sleep", "1000"], executable=shutil.which(comm)))
            stack.callback(process.kill)
            pids[comm] = str(process.pid)
        rubies = set(run("pgrep", "ruby").stdout.split())
        assert pids["ruby"] in rubies and pids["sleep"] not in rubies
        for verb in ("dump", "record", "experiment"):
            assert completed(name, "rbdump", verb, "-p", "") == rubies, verb
        assert completed(name, "rbdump", "dump", "") == rubies
        assert completed(name, "rbdump", "") == {"help", *VERBS} | rubies


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("verb", ["record", "experiment"])
def test_commands_of_completions(verb, name, tmp_path, monkeypatch):
    """After `--` there is a command, whose own words are its own affair."""
    (tmp_path / "rbdump-test-command").symlink_to("/bin/true")
    (tmp_path / "a-file-of-this-test").write_text("")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    line = ["rbdump", verb, "-r", "5", "--"]
    assert completed(name, *line, "rbdump-test-c") == {"rbdump-test-command"}
    assert completed(name, *line, "rbdump-test-command", "a-f", cwd=tmp_path) == {"a-file-of-this-test"}
    assert not {"--pid", "--rate"} & completed(name, *line, "rbdump-test-command", "--")
    assert "rbdump-test-command" in completed(name, "rbdump", verb, "--", "")
    assert "rbdump-test-command" not in completed(name, "rbdump", "report", "--", "rbdump-test-c")


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("verb", ["record", "experiment"])
def test_own_completions_of_commands(verb, name):
    """A command after `--` that has completions of its own: rbdump."""
    first = ""
    if name == "bash":
        if not os.path.exists(BASH_COMPLETION):
            note_not_applicable("completions of a command in bash: bash-completion is not installed")
            pytest.skip("bash-completion is not installed")
        first = f". {BASH_COMPLETION}"
    assert {"record", "report"} == completed(name, "rbdump", verb, "--", "rbdump", "re", first=first)
    assert {"auto", "paused", "unpaused", "kernel"} == completed(name, "rbdump", verb, "--", "rbdump", "record", "--mode", "", first=first)
    assert {"--max-memory"} == completed(name, "rbdump", verb, "--", "rbdump", "report", "--max", first=first)
