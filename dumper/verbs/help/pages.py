#!/usr/bin/env python3
"""Makes the help texts, as C strings, and the manual pages from the text files of this folder.

usage: pages.py VERSION DATE HELP_C MANUAL_FOLDER

rbdump.txt is for `rbdump --help` and rbdump.1, VERB.txt for `rbdump VERB --help` and rbdump-VERB.1. A text is what --help
prints. Lines that begin with "|" are in the manual page only:

    | OPTIONS                              a heading: all capitals
      -r, --rate N          samples        a term, and from column 24 on what it means
    |         The default is ...           more about that term, 8 columns in
    |   rbdump record -p 1951              a term, 2 columns in; what it means follows, 8 columns in
    | See also ...                         any other paragraph
    |                                      the end of a paragraph

Bold and italics in the manual page: Style finds options, commands, environment variables, other pages, paths and arguments
by what they look like. Lines with "|" may also have `bold words` in backquotes.
"""

import pathlib
import re
import sys
import textwrap

FOLDER = pathlib.Path(__file__).resolve().parent
MEANING_COLUMN = 24  # in the help
DEEP = 8  # from this column on, a line is about the term above it
COLUMNS_MAX = 80  # of roff sources
VERBS = "|".join([*(path.stem for path in sorted(FOLDER.glob("*.txt")) if path.stem != "rbdump"), "help"])
ESCAPES = {"\\": r"\e", "-": r"\-", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}


def title_of(name):
    return "rbdump" if name == "rbdump" else f"rbdump-{name}"


# ---- help texts


def help_of(text):
    kept = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("|"))
    return re.sub(r"\n{3,}", "\n\n", kept)


def c_string(name, text):
    lines = (re.sub(r'(["\\?])', r"\\\1", line) for line in text.splitlines())
    return f"const char help_{name}[] =\n" + "\n".join(f'    "{line}\\n"' for line in lines) + ";\n"


def c_source(texts):
    names = {"help" if name == "rbdump" else name: "overview" if name == "rbdump" else name for name in texts}
    strings = [c_string("overview" if name == "rbdump" else name, help_of(text)) for name, text in texts.items()]
    verbs = ", ".join(f'"{verb}"' for verb in names)
    rows = ", ".join(f"help_{text}" for text in names.values())
    return (
        "/* Made by dumper/verbs/help/pages.py: do not edit. */\n"
        '#include "verbs/help.h"\n\n#include <stddef.h>\n\n' + "\n".join(strings) + "\n"
        f"const char *const help_verbs[] = {{{verbs}, NULL}};\n"
        f"const char *const help_texts[] = {{{rows}, NULL}};\n"
    )


# ---- manual pages


def split_term(line):
    """A line of the help that begins with a term: the term, and what it means."""
    term, meaning = line[:MEANING_COLUMN], line[MEANING_COLUMN:]
    # A term may be longer: its meaning is then on the next line.
    if not term.endswith(" ") or meaning.startswith("["):
        return line.strip(), ""
    return term.strip(), meaning


def blocks(text):
    """What a text consists of, in order: [kind, words]. Kinds: heading, usage, paragraph, term, meaning (of a term)."""
    found = []
    before = None  # where the line before belongs; None after an empty line
    for line in text.splitlines():
        marked = line.startswith("|")
        if marked and line[1:2].strip():
            sys.exit(f"pages.py: a space is missing behind the mark: {line}")
        line = line[2:] if marked else line
        indent = len(line) - len(line.lstrip())
        words = line.strip()
        if not words:
            before = None
            continue
        if words.startswith("Usage: ") or before == "usage":
            kind = where = "usage"
            words = words.removeprefix("Usage: ")
        elif marked and re.fullmatch(r"[A-Z][A-Z ]+", line):
            kind = where = "heading"
        elif indent == 0 or indent >= DEEP:
            kind = "meaning" if indent else "paragraph"
            where = (kind, marked)
        else:
            kind = "term"
            words, meaning = (words, "") if marked else split_term(line)
            where = ("meaning", marked)
            if meaning:
                found.append([kind, words])
                kind, words = "meaning", meaning
        if where == before and kind == found[-1][0] and kind in ("paragraph", "meaning"):
            found[-1][1] += f" {words}"
        else:
            found.append([kind, words])
        before = where
    return found


def statuses(words):
    """The sentence about exit statuses as blocks: a term for each status."""
    for part in re.split(r"; (?=\d)", words.removesuffix(".")):
        status, meaning = part.split(" ", 1)
        yield from (["term", status], ["meaning", meaning])


def escape(text):
    return re.sub(r'[\\^~"-]', lambda match: ESCAPES[match[0]], text)


class Style:
    """What is bold or in italics on the page of one text."""

    def __init__(self, text):
        lines = help_of(text).splitlines()
        terms = [split_term(line)[0] for line in lines if re.match(r" {2,6}\S", line)]
        usage = [line for line in lines if "rbdump" in line[: len("Usage: rbdump")]]
        arguments = set(re.findall(r"(?<![\w$])[A-Z]+(?:,[A-Z]+)*(?!\w)", " ".join(terms + usage)))
        self._words = re.compile(
            r"`(?P<quoted>[^`]+)`"
            r"|(?P<page>[\w-]+)(?P<section>\(\d\))"
            r"|(?<![\w./-])(?P<path>(?:~|\.|\$?[A-Z_]+)?/[\w./~-]*\w|[\w-]+\.rbdump)"
            r"|(?<![\w-])(?P<option>--?[a-zA-Z][\w-]*|--(?= [A-Za-z]))"
            rf"|(?<![\w./-])(?P<command>rbdump(?: (?:{VERBS})\b)?)(?![\w-])"
            r"|(?P<variable>\$[A-Z_]+|\b[A-Z]+_[A-Z_]+)"
            rf"|(?<![\w-])(?P<argument>{'|'.join(sorted(arguments)) or '(?!)'})(?![\w-])"
        )

    def __call__(self, text):
        return "".join(self._parts(text))

    def _parts(self, text):
        end = 0
        for match in self._words.finditer(text):
            kind = "page" if match["page"] else match.lastgroup
            yield escape(text[end : match.start()])
            yield rf"\f{'I' if kind in ('path', 'argument') else 'B'}{escape(match[kind])}\fR{match['section'] or ''}"
            end = match.end()
        yield escape(text[end:])

    def term(self, words):
        """A term begins in bold or in italics."""
        styled = self(words)
        return styled if styled.startswith("\\") else re.sub(r"^\w+", r"\\fB\g<0>\\fR", styled)


def filled(words):
    # Of a line that begins with one of these, roff would take the first word for a request.
    return [rf"\&{line}" if line[0] in ".'" else line for line in textwrap.wrap(words, COLUMNS_MAX, break_on_hyphens=False)]


def roff(blocks_of_page, style):
    before = heading = None
    for kind, words in blocks_of_page:
        if kind == "heading":
            yield f".SH {words}"
            heading = words
        elif heading == "NAME":
            name, purpose = words.split(" - ")
            yield rf"{escape(name)} \- {escape(purpose)}"
        elif kind == "usage":
            yield from [".br"] if before == "usage" else []
            yield style(words)
        elif kind == "term":
            yield from (".TP", style.term(words))
        else:
            yield from [".IP" if kind == "meaning" else ".PP"] if before not in ("heading", "term") else []
            yield from filled(style(words))
        before = kind


def page(name, text, version, date):
    found = []
    for kind, words in blocks(text):
        found += statuses(words.removeprefix("Exit status: ")) if words.startswith("Exit status: ") else [[kind, words]]
    head = f'.TH {escape(title_of(name).upper())} 1 "{date}" "rbdump {version}" "User Commands"'
    return "\n".join([head, ".nh", *roff(found, Style(text))]) + "\n"


def main():
    if len(sys.argv) != 5:
        sys.exit("usage: pages.py VERSION DATE HELP_C MANUAL_FOLDER")
    version, date, source, manual = sys.argv[1:]
    texts = {path.stem: path.read_text(encoding="ascii") for path in sorted(FOLDER.glob("*.txt"))}
    pathlib.Path(source).write_text(c_source(texts), encoding="ascii")
    for name, text in texts.items():
        (pathlib.Path(manual) / f"{title_of(name)}.1").write_text(page(name, text, version, date), encoding="ascii")


if __name__ == "__main__":
    main()
