"""How rbdump refuses: its exit statuses, and the one sentence."""

import re

FAILED, NOT_RUBY, NO_PERMISSION, USAGE = 2, 3, 4, 64


def check_refusal(done, status, *words):
    """One line on standard error which holds all the words, whatever their case."""
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr}"
    assert done.stdout == ""
    assert re.fullmatch(r"rbdump: [^\n]+\n", done.stderr), done.stderr
    for word in words:
        assert word.lower() in done.stderr.lower(), done.stderr
