"""What the documents say that can be looked up: links lead somewhere, and the README's usage is what rbdump prints."""

import re

import pytest
from harness.dump import run
from harness.synthetic import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "tests/README.md", *sorted((ROOT / "doc").rglob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        name, _, heading = target.partition("#")
        if "://" in target:
            continue
        linked = path.parent / name if name else path
        assert linked.exists(), f"{target} is not there"
        headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.M) if heading else []
        assert not heading or heading in {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in headings}


def test_usage(rbdump):
    usage = run(rbdump, "--help").stdout
    assert usage.startswith("Usage: ") and f"```\n{usage}```\n" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "doc/internals.md", "doc/glossary.md"])
def test_files_that_are_named(name):
    """Folders and sources of this tree that a document names in backquotes are there."""
    text = (ROOT / name).read_text()
    for word in re.findall(r"`((?:bench|doc|dumper|gdb-scripts|gen|offsets\.d|tests)/[\w./-]*)`", text):
        assert (ROOT / word).exists(), f"{name} names {word}"
