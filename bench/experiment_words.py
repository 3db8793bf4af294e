"""Sentences with figures of doc/experiments.md and doc/experiments/tables.md, made from the reports in the tree."""

import collections
import datetime
import json
import math
import re
import subprocess
import textwrap

from experiment_reports import FOLDER, chance, checks_of, comparable, distance, modes_of, reports

NAMED = ("churn", "variants", "cost-100", "cost-1000", "rubocop")


def wrapped(words, begin=""):
    """Lines of a paragraph; or of an item of a list, which begins with `begin`."""
    return textwrap.fill(
        words, 125, initial_indent=begin, subsequent_indent=" " * len(begin), break_long_words=False, break_on_hyphens=False
    )


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
                shown = f"{near(share['value'])} %, at most {near(share['high'])} %"
                wrong.append(f"{share['count']} of {share['of']:,} on *{variant}* ({shown})")
            else:
                right += share["of"]
    return "; ".join(wrong) or "none", right


def unpaused_of_old():
    """How right `unpaused` is on 2.7, on each target."""
    wrong, right = wrong_of("2.7", "unpaused")
    return (
        "On Ruby 2.7, `unpaused` can be wrong, because the instruction pointer of the thread is not known. These stacks were"
        f" wrong: {wrong}. None of {right:,} stacks on the other targets was wrong."
    )


def jit_without_windows():
    """How right the modes are with 3.1's YJIT."""
    (paused, rest), (unpaused, other) = [wrong_of("3.1-yjit", mode) for mode in ("paused", "unpaused")]
    return (
        "With the YJIT of Ruby 3.1, the checks do not find all wrong stacks. The reason is that the check of the call site"
        " cannot always decide about blocks and C functions. In the mode `paused`, these stacks were wrong:"
        f" {paused}. None of {rest:,} stacks on the other targets was wrong. In the mode `unpaused`, these stacks were wrong:"
        f" {unpaused}. None of {other:,} stacks on the other targets was wrong."
    )


def span(values):
    low, high = [round(100 * end) for end in (min(values), max(values))]
    return (f"{low} %" if low == high else f"{low} to {high} %").replace("-", "−")


def cost():
    """What modes cost the target."""
    lost = {
        rate: {
            name: [1 - modes_of(report)[name]["progress_share"] for report in reports(f"cost-{rate}").values()]
            for name in ("unpaused-naive", "unpaused", "paused-naive", "paused", "kernel")
            if all(name in modes_of(report) for report in reports(f"cost-{rate}").values())
        }
        for rate in (100, 1000)
    }
    kernel = [f" `kernel` cost {span(lost[1000]['kernel'])} at 1,000 Hz, and {span(lost[100]['kernel'])} at 100 Hz."] if "kernel" in lost[100] else [""]
    return (
        f"At 1,000 Hz, `unpaused` cost the target {span(lost[1000]['unpaused'])} of its progress, and `paused`"
        f" {span(lost[1000]['paused'])}. Each range is from the lowest to the highest figure of all Rubies. At 100 Hz,"
        f" `unpaused` cost {span(lost[100]['unpaused'])}, and `paused` {span(lost[100]['paused'])}.{kernel[0]} `unpaused-naive`"
        f" never delays the target, so its figures show the error of this measurement: {span(lost[1000]['unpaused-naive'])} at 1,000 Hz,"
        f" {span(lost[100]['unpaused-naive'])} at 100 Hz. So the cost of `unpaused` at 100 Hz can hardly be"
        " distinguished from 0."
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
        "Under churn, `unpaused-double` is strongly biased. The mean depth of the accepted stacks in `paused`, minus the mean"
        " depth in `unpaused-double`, is"
        f" {min(less for less, _ in double):.1f} to {max(less for less, _ in double):.1f} frames. The distance between the shares"
        f" of the innermost methods in the two modes is {min(far for _, far in double):.2f} to"
        f" {max(far for _, far in double):.2f} larger than by chance."
        " In rubocop, `unpaused-naive` is biased, because it must reject many stacks."
        f" On average, its accepted stacks have {min(less for less, _ in naive):.1f} to {max(less for less, _ in naive):.1f} frames"
        f" fewer than the stacks of `paused`, and the distance is {min(far for _, far in naive):.3f}"
        f" to {max(far for _, far in naive):.3f} larger than by chance. For `unpaused`, this excess over chance is at most"
        f" {most(churn['unpaused'])} under churn and {most(rubocop['unpaused'])} in rubocop. For `paused-naive`, which stops"
        f" the target as `paused` does, the excess is at most {most(churn['paused-naive'])} under churn and"
        f" {most(rubocop['paused-naive'])} in rubocop."
    ).replace(" -", " −")


def windows():
    """How many of the wrong stacks of a stopped 2.7 were in a torn window that the layout has."""
    inside = total = 0
    for part in NAMED:
        for name, report in reports(part).items():
            for place in report["where"]:
                # Names that were gone when they were read are no matter of where the thread was.
                of_names = place["reason"] in ("collected", "compacted")
                if name.startswith("2.7") and place["mode"] == "paused-naive" and not of_names:
                    total += place["count"]
                    inside += place["count"] if place["window"] else 0
    return (
        f"On Ruby 2.7, {total} stacks of `paused-naive` were wrong, counted over all targets. In {inside} of {total} cases, the"
        f" thread was stopped in a torn window that the layout contains: {near(inside / total)} % (lower end of the 95 % interval:"
        f" {near(at_least(inside, total))} %). Here, a stack is wrong if the stack is impossible, or if a check rejected one of its"
        " frames."
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
        f"{left} impossible stacks of stopped threads pass all hard checks. The check of the call site found {found} of these"
        f" {left}. So its recall is {near(found / left)} % (lower end of the 95 % interval: {near(at_least(found, left))} %). For"
        f" {legal:,} legal stacks, the thread was stopped outside of a torn window. The check of the call site rejected {false} of"
        f" these stacks. So this check accepts {near(1 - false / legal)} % of these stacks (lower end of the 95 % interval:"
        f" {near(right)} %). If older frames of a stack are from another moment, the check of the call site rarely finds this"
        f" error (in {seen} of {mixed_left:,} stacks)."
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
        "`compacted` is the number of stacks that no other check rejected, but for which rbdump could not read the names, because"
        " Ruby had already moved objects. After rbdump has seen a compaction, it takes a sample only when the names of the"
        " previous sample are known. The number of lost stacks depends on how fast rbdump reads names, and on how much the"
        " target runs while rbdump reads them. The number does not depend on how a mode reads stacks. The following shares of the stacks were lost"
        " (first `paused`, then `unpaused`):"
        f" {', '.join(parts)}. The lost stacks are not torn. But the remaining stacks are not a fair sample of this variant."
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
            least = "all of them" if shares[ruby] == 1 else f"{near(shares[ruby])} %"
            if len(shares) > 1 and shares[ruby] != 1:
                clauses.append(f"{where}, at least {least} with each Ruby ({', '.join(shares)}; the lowest share was with {ruby})")
            else:
                clauses.append(f"{where}, {least} (measured with {', '.join(shares)})")
    return (
        "The last try must begin within the budget of 200 µs, but the try may end later. For most samples of `unpaused`, the"
        " copy and the check of the innermost frames ended within 200 µs after the first try began. These samples had the"
        f" following share of all samples: {'; '.join(clauses)}. In the reports, this share is called `accepted_in_budget`."
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
            part = next(part for part in ("churn", "variants", "cost", "rubocop", "long", "kernel") if name.startswith(part))
            parts[part].append(name.split("-", 1)[1])
        words = [f"{part} ({', '.join(rest)})" if part == "rubocop" else part for part, rest in sorted(parts.items())]
        at = datetime.datetime.fromtimestamp(time, datetime.UTC).strftime("committed on %-d %B %Y, %H:%M UTC")
        at = at if time else "not committed yet"
        lines.append(f"- {at}, measured with {build}: {'; '.join(words)}")
    return "\n".join(lines)
