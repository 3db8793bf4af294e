"""Converts bytes of the process to text."""

import codecs


def text(raw):
    """Converts UTF-8 bytes to text. NUL, and bytes that are not UTF-8, become \\xNN, as in rbdump's own JSON."""
    if raw is None:
        return None
    return raw.decode("utf-8", "rb-bt").replace("\0", "\\x00")


def printable(raw):
    """Like text(), but safe for a terminal: characters that are not printable are escaped, too."""
    return escaped(text(raw))


def escaped(characters: str) -> str:
    """Replaces each of CHARACTERS that is not printable by an escape sequence."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in characters)


def _escape(error):
    return "".join(f"\\x{byte:02X}" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("rb-bt", _escape)
