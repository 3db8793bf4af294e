"""The reports of experiments that are in the tree, and what tables and pictures take from them."""

import json
import math
import pathlib

TREE = pathlib.Path(__file__).resolve().parent.parent
FOLDER = TREE / "doc/experiments"
OTHERS = "(others)"
# How many innermost methods the picture and the table have.
LEAVES = 10
MODES = ["unpaused-naive", "unpaused-once", "unpaused-double", "unpaused", "paused-naive", "paused", "kernel"]
COLOURS = dict(zip(MODES, ["#b0413e", "#c77f9b", "#d98e32", "#3b7a57", "#7a6fb0", "#2f5d8a", "#4a4a4a"]))


def reports(part):
    """The reports of one part, by the rest of their names."""
    found = sorted(FOLDER.glob(f"{part}-*.json"))
    return {path.stem[len(part) + 1 :]: json.loads(path.read_text()) for path in found}


def modes_measured():
    """The modes that the reports have: `kernel` is not among them if rbdump could not sample in the kernel."""
    parts = [modes_of(report) for part in ("churn", "cost-1000") for report in reports(part).values()]
    return [mode for mode in MODES if all(mode in modes for modes in parts)]


def modes_of(report):
    return {mode["mode"]: mode for mode in report["modes"]}


def checks_of(series, mode):
    """What the checks say of what a mode took unchecked, by what the oracle says: over all variants, without a JIT."""
    found = [report for name, report in reports("churn").items() if name == series]
    found += [
        report
        for name, report in reports("variants").items()
        if name.startswith(f"{series}-") and not name.startswith(f"{series}-yjit")
    ]
    total = {}
    for report in found:
        for truth, part in modes_of(report)[mode]["checks"].items():
            sums = total.setdefault(truth, {"all": 0, "hard": 0, "site": 0, "undecided": 0})
            site = part["call_site"]["innermost"]
            sums["hard"] += sum(part["rejected"].values())
            sums["all"] += part["accepted"] + sum(part["rejected"].values())
            sums["site"] += site["contradicts"]
            sums["undecided"] += site["undecided"]
    return total


def folded(counts, kept):
    """Counts with all keys but those kept counted together."""
    result = {key: count for key, count in counts.items() if key in kept and key != OTHERS}
    others = sum(counts.values()) - sum(result.values())
    return {**result, OTHERS: others} if others else result


def comparable(report):
    """The modes of a report, with only those leaves told apart that are in the lists of all."""
    modes = modes_of(report)
    kept = set.intersection(*[set(mode["leaves"]) for mode in modes.values() if mode["accepted"]])
    return {name: {**mode, "leaves": folded(mode["leaves"], kept)} for name, mode in modes.items()}


def top_leaves(modes):
    """The LEAVES innermost methods that `paused` had most often, of those that are told apart in all modes."""
    found = {name: times for name, times in modes["paused"]["leaves"].items() if name != OTHERS}
    return sorted(found, key=lambda name: (-found[name], name))[:LEAVES]


def distance(one, other):
    """Half the sum of the differences of two distributions' shares: 0 if they are the same, 1 if nothing is in common."""
    keys = set(one) | set(other)
    total_one, total_other = sum(one.values()) or 1, sum(other.values()) or 1
    # fsum: the same in whatever order a set has its keys.
    return math.fsum(abs(one.get(key, 0) / total_one - other.get(key, 0) / total_other) for key in keys) / 2


def chance(one, other):
    """The distance that two samples of one distribution have, of these sizes: the mean of a normal's absolute value."""
    keys = set(one) | set(other)
    total_one, total_other = sum(one.values()) or 1, sum(other.values()) or 1
    shares = [(one.get(key, 0) + other.get(key, 0)) / (total_one + total_other) for key in keys]
    both = 1 / total_one + 1 / total_other
    return math.fsum(math.sqrt(2 / math.pi * share * (1 - share) * both) for share in shares) / 2
