"""Sentences of doc/experiments.md that have figures in them, made from the reports in the tree."""

import collections
import datetime
import json
import math
import re
import subprocess
import textwrap

from experiment_reports import FOLDER, chance, checks_of, comparable, distance, modes_of, reports

NAMED = ("churn", "variants", "cost-100", "cost-1000", "rubocop")


def wrapped(words):
    return textwrap.fill(words, 125, break_long_words=False, break_on_hyphens=False)


def near(share):
    """A share in percent: from one half on by what it lacks to 1. The same as print_percent() of the table."""
    lacks = 100 * (1 - share)
    if share < 0.5:
        return f"{100 * share:.3g}"
    if lacks < 1e-9:
        return "100"
    return f"{100 * share:.{max(1, 1 - math.floor(math.log10(lacks) + 1e-9))}f}"


def at_least(count, of):
    """The lower end of the 95 % interval of a share (Clopper and Pearson)."""
    if count == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        beyond = sum(math.comb(of, k) * middle**k * (1 - middle) ** (of - k) for k in range(count, of + 1))
        low, high = (middle, high) if beyond < 0.025 else (low, middle)
    return low


def wrong_of(target, mode):
    """What was wrong of a mode on a Ruby, on each target: sentences, and how many stacks there were on all the others."""
    wrong, right = [], 0
    for part in ("churn", "variants", "cost-100", "cost-1000", "long"):
        for name, report in reports(part).items():
            if name != target and not name.startswith(f"{target}-"):
                continue
            share = modes_of(report)[mode]["impossible"]
            if share["count"]:
                variant = name.removeprefix(target).strip("-") or part
                wrong.append(f"{share['count']} of {share['of']:,} on *{variant}*, {near(share['value'])} % (up to {near(share['high'])} %)")
            else:
                right += share["of"]
    return "; ".join(wrong) or "none", right


def unpaused_of_old():
    """How right `unpaused` is on 2.7, on each target."""
    wrong, right = wrong_of("2.7", "unpaused")
    return (
        f"On 2.7 it is not quite, since nothing tells where exactly the thread was: wrong were {wrong};"
        f" and none of {right:,} on the other targets."
    )


def jit_without_windows():
    """How right the modes are with 3.1's YJIT."""
    (paused, rest), (unpaused, other) = [wrong_of("3.1-yjit", mode) for mode in ("paused", "unpaused")]
    return (
        f"Where there are blocks and C functions, a call site does not always decide. With 3.1's YJIT, wrong were of `paused`"
        f" {paused}, and none of {rest:,} on the other targets; of `unpaused` {unpaused}, and none of {other:,}."
    )


def span(values):
    low, high = [round(100 * end) for end in (min(values), max(values))]
    return f"{low} to {high} %".replace("-", "−")


def cost():
    """What modes cost the target."""
    lost = {
        rate: {
            name: [1 - modes_of(report)[name]["progress_share"] for report in reports(f"cost-{rate}").values()]
            for name in ("unpaused-naive", "unpaused", "paused-naive", "paused")
        }
        for rate in (100, 1000)
    }
    return (
        f"Of its progress, the target lost {span(lost[1000]['unpaused'])} to `unpaused` at 1,000 Hz, and"
        f" {span(lost[1000]['paused'])} to `paused`; at 100 Hz {span(lost[100]['unpaused'])}, and {span(lost[100]['paused'])}"
        f" (from one Ruby to another). How exact that is, `unpaused-naive` tells, which never holds the target up:"
        f" {span(lost[1000]['unpaused-naive'])}, and {span(lost[100]['unpaused-naive'])} at 100 Hz, where `unpaused` is"
        " therefore hardly to be told from nothing."
    )


def biases(part):
    """By mode: for each Ruby, frames less than paused, of how many, and how far the leaves are beyond chance."""
    found = collections.defaultdict(dict)
    for ruby, report in reports(part).items():
        modes = comparable(report)
        paused = modes["paused"]
        for name, mode in modes.items():
            if name == "paused" or not mode["accepted"]:
                continue
            mean, other = [sum(int(d) * n for d, n in m["depths"].items()) / m["accepted"] for m in (mode, paused)]
            beyond = max(0, distance(mode["leaves"], paused["leaves"]) - chance(mode["leaves"], paused["leaves"]))
            found[name][ruby] = (other - mean, beyond)
    return found


def most(found):
    ruby, (_, beyond) = max(found.items(), key=lambda item: item[1][1])
    return f"{beyond:.3f} ({ruby})"


def bias():
    churn, rubocop = biases("churn"), biases("rubocop")
    double, naive = churn["unpaused-double"].values(), rubocop["unpaused-naive"].values()
    return (
        f"Under churn, `unpaused-double` is far off: what it accepts is {min(less for less, _ in double):.1f} to"
        f" {max(less for less, _ in double):.1f} frames less deep than what `paused` does, and its leaves are {min(far for _, far in double):.2f} to {max(far for _, far in double):.2f} further from those"
        f" of `paused` than chance has it. In rubocop, it is `unpaused-naive`, by what it has to reject:"
        f" {min(less for less, _ in naive):.1f} to {max(less for less, _ in naive):.1f} frames less,"
        f" {min(far for _, far in naive):.3f} to {max(far for _, far in naive):.3f} beyond chance. `unpaused` is beyond it by"
        f" {most(churn['unpaused'])} at most under churn, and {most(rubocop['unpaused'])} in rubocop; `paused-naive`, which"
        f" stops the target as `paused` does, by {most(churn['paused-naive'])} and {most(rubocop['paused-naive'])}."
    )


def windows():
    """How many of the wrong stacks of a stopped 2.7 were in a torn window that the layout has."""
    inside = total = 0
    for part in NAMED:
        for name, report in reports(part).items():
            for place in report["where"]:
                # What was moved is no matter of where its thread was.
                if name.startswith("2.7") and place["mode"] == "paused-naive" and place["reason"] != "compacted":
                    total += place["count"]
                    inside += place["count"] if place["window"] else 0
    return (
        f"Of the stacks of 2.7 that `paused-naive` got wrong (rejected as broken, or impossible by the oracle; all targets and"
        f" rates above and below), {inside} of {total} were stopped in a torn window that the layout names: {near(inside / total)} %,"
        f" at least {near(at_least(inside, total))} % (95 %)."
    )


def evidence():
    """Recall and precision of call-site evidence."""
    series = sorted({name.split("-")[0] for name in reports("churn")})
    stopped = [checks_of(name, "paused-naive") for name in series]
    mixed = [checks_of(name, "unpaused-once")["impossible"] for name in series]
    found = sum(one["impossible"]["site"] for one in stopped)
    left = sum(one["impossible"]["all"] - one["impossible"]["hard"] for one in stopped)
    false, legal = [sum(one["legal"][key] for one in stopped) for key in ("site", "all")]
    seen, mixed_left = sum(one["site"] for one in mixed), sum(one["all"] - one["hard"] for one in mixed)
    right = at_least(legal - false, legal) if false else 0.025 ** (1 / legal)
    return (
        f"Of a stopped thread whose stack is impossible, and passes all hard checks, the call site found {found} of {left}:"
        f" {near(found / left)} %, at least {near(at_least(found, left))} % (its recall). Of those that are legal, and were stopped"
        f" outside of a window, it contradicted {false} of {legal:,}: {near(1 - false / legal)} % are let be, at least"
        f" {near(right)} %. Of stacks that were put together from two moments"
        f" further down, it sees little: {seen} of {mixed_left:,}."
    )


def moved():
    """What rejects stacks in the variant that compacts."""
    parts = []
    for name, report in reports("variants").items():
        if name.endswith("-gc"):
            modes = modes_of(report)
            shares = [modes[mode]["rejected"].get("compacted", 0) / modes[mode]["samples"] for mode in ("paused", "unpaused")]
            parts.append(f"{near(shares[0])} % and {near(shares[1])} % on {name.removesuffix('-gc')}")
    return (
        "`compacted` counts stacks in which nothing else was wrong, but whose names could not be had: Ruby had moved its objects by the time that"
        " rbdump read them. As soon as that is seen, no sample is taken before the one before it has its names. How many are left, is"
        " a matter of how fast names are read, and of how far the target gets meanwhile; not of what the mode reads of a stack"
        f" (`paused` and `unpaused` here: {', '.join(parts)}). It is no kind of torn stack, but what is left is not a fair choice"
        " of the stacks of this variant."
    )


def in_budget():
    """What share of its stacks `unpaused` has within the time for tries, and in all."""
    clauses = []
    for part, where in (("churn", "under churn"), ("long", "in the long runs"), ("rubocop", "in rubocop")):
        shares = {}
        for name, report in reports(part).items():
            share = modes_of(report)["unpaused"].get("accepted_in_budget")
            if share:
                shares[name] = share["value"]
        if shares:
            ruby = min(shares, key=shares.get)
            least = "all" if shares[ruby] == 1 else f"{near(shares[ruby])} %"
            others = f" or more ({ruby} the least of {', '.join(shares)})" if len(shares) > 1 else f" ({ruby})"
            clauses.append(f"{where} {least}" + (f" ({', '.join(shares)})" if least == "all" else others))
    return (
        "The 200 µs say when the last try may begin. Counted from the beginning of the first to the moment when the copy is there"
        f" and its innermost frames are judged, `unpaused` had, of all stacks that it was to take, {'; '.join(clauses)} within 200 µs"
        " (of reports that have that figure: `accepted_in_budget`)."
    )


def when():
    """When which reports came into the tree, by git, and of which build; those of one time stand together."""
    groups = collections.defaultdict(list)
    for path in sorted(FOLDER.glob("*.json")):
        # The commit that last brought other measurements, not one that only tidied the file.
        log = subprocess.run(
            ["git", "log", "-1", "--format=%ct", '-G"duration_s"', "--", path.name],
            cwd=FOLDER, capture_output=True, text=True, check=True,
        )  # fmt: skip
        build = re.search(r"\((\w+)\)", json.loads(path.read_text())["tool"])[1]
        groups[int(log.stdout or 0), build].append(path.stem)
    lines = []
    for (time, build), names in sorted(groups.items(), key=lambda item: item[0][0] or math.inf):
        parts = collections.defaultdict(list)
        for name in names:
            part = next(part for part in ("churn", "variants", "cost", "rubocop", "long") if name.startswith(part))
            parts[part].append(name.split("-", 1)[1])
        words = [f"{part} ({', '.join(rest)})" if part == "rubocop" else part for part, rest in sorted(parts.items())]
        at = datetime.datetime.fromtimestamp(time, datetime.UTC).strftime("%-d %B %Y, %H:%M UTC") if time else "not committed yet"
        lines.append(f"- {at}, by {build}: {'; '.join(words)}")
    return "\n".join(lines)
