"""Where a target is, and where rbdump is: which pid namespaces they are in."""

import dataclasses

from harness.process import children_of, status, wait_until

UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclasses.dataclass(frozen=True)
class Place:
    below: tuple  # the command that starts the target's command
    levels: int  # how many processes there are above the target, from that command on
    inside: int | None  # of which of them rbdump is in the namespaces; None: of none


PLACES = {
    "here": Place((), 0, None),
    "pid-namespace": Place(UNSHARE, 1, None),
    "inside-it": Place(UNSHARE, 1, 1),
    "nested": Place(UNSHARE * 2, 2, None),
    "inside-the-outer": Place(UNSHARE * 2, 2, 1),
}


class Inhabitant:
    """A target in a place: its pid, what rbdump calls it there, and the command that starts rbdump there."""

    def __init__(self, place, started):
        self.place = place
        self.line = [started]
        for _ in range(place.levels):
            self.line.append(wait_until(lambda: children_of(self.line[-1]), "it has a child")[0])
        self.pid = self.line[-1]
        self.pid_there = self.id_there(self.pid)
        self.enter = []
        if place.inside is not None:
            # Where unshare(1) itself is, /proc is that of what it has begun.
            namespaces = f"/proc/{self.line[place.inside]}/ns/pid", f"/proc/{self.line[place.inside - 1]}/ns/mnt"
            self.enter = ["nsenter", f"--pid={namespaces[0]}", f"--mount={namespaces[1]}", "--"]

    def id_there(self, tid):
        """What rbdump calls one of its threads."""
        if self.place.inside is None:
            return tid
        ids = [int(word) for word in status(self.pid, "NSpid", tid).split()]
        return ids[len(ids) - 1 - (len(self.line) - 1 - self.place.inside)]
