#!/usr/bin/python3
"""Sentences of this tree picked at random, to be read aloud by somebody who has not seen them.

tests/sentences.py [COUNT] [SEED]: 20 of all that people read: documents, comments of headers, help texts, messages. Says
where each is from, and which sentence stands before it. A sentence that has to be read twice is to be rewritten."""

import argparse
import pathlib
import random
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`*\"]|rbdump\b)")


def paragraphs_of_document(text):
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.M | re.S)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:- |\d+\. |\|))", text):
        if not re.match(r"\s*(#|\||!\[)| {4}\S", paragraph):  # nor commands, which are indented
            yield re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)


def paragraphs_of_header(text):
    for comment in re.findall(r"/\*(.*?)\*/", text, re.S):
        comment = re.sub(r"^\s*\* ?", "", comment, flags=re.M)
        # A list has a line for each parameter: its name, spaces, what it is.
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*- )|\n(?= {0,8}\S.*\S {2,}\S)", comment):
            item, *rest = re.split(r"\n(?=\S)", paragraph, maxsplit=1) if paragraph.startswith(" ") else [paragraph]
            yield re.sub(r"^( {0,8}\S.*?\S?) {2,}(?=\S)", r"\1: ", item)
            yield from rest


def paragraphs_of_help(text):
    # What begins with "|" is a paragraph of its own.
    text = re.sub(r"(^\|.*\n)+", lambda found: "\n" + re.sub(r"^\| ?", "", found[0], flags=re.M) + "\n", text, flags=re.M)
    yield from re.split(r"\n\s*\n|\n(?= {2,6}\S)", text)


def paragraphs_of_source(text):
    """Messages: what is in quotes and has several words."""
    text = re.sub(r'"\s*PRI[a-z]\d+\s*"', "u", text)
    for joined in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
        words = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)).replace("\\n", "\n")
        if len(re.findall(r"[A-Za-z]{2,}", words)) > 3 and "%*" not in words:  # nor formats of scanf()
            yield from re.split(r"\n\s*\n", words)


def sentences():
    for pattern, paragraphs in (
        ("*.md", paragraphs_of_document), ("doc/*.md", paragraphs_of_document), ("dumper/**/*.h", paragraphs_of_header),
        ("tests/*.md", paragraphs_of_document), ("doc/experiments/*.md", paragraphs_of_document),
        ("gdb-scripts/*.py", paragraphs_of_source),
        ("dumper/verbs/help/*.txt", paragraphs_of_help),
        ("gen/*.h", paragraphs_of_header), ("dumper/**/*.c", paragraphs_of_source), ("gen/*.c", paragraphs_of_source),
    ):  # fmt: skip
        for path in sorted(ROOT.glob(pattern)):
            for paragraph in paragraphs(path.read_text()):
                before = None
                for sentence in END.split(" ".join(paragraph.split())):
                    if len(sentence.split()) > 3:
                        yield path.relative_to(ROOT), before, sentence
                    before = sentence


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=20)
    parser.add_argument("seed", nargs="?")
    arguments = parser.parse_args()
    for path, before, sentence in random.Random(arguments.seed).sample(list(sentences()), arguments.count):
        print(f"{path}:" + (f" [after: {before}]" if before else "") + f"\n  {sentence}\n")


if __name__ == "__main__":
    main()
