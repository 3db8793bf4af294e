"""The answer of doc/experiments.md and its two tables, made from the reports in the tree."""

from experiment_reports import modes_measured, modes_of, reports
from experiment_words import near, span, wrapped

# The parts on targets of known calls, and what the tables call the variant of most of them.
CHURNS = {
    "churn": "churn", "variants": "", "cost-100": "churn at 100 Hz", "cost-1000": "churn at 1,000 Hz",
    "long": "churn, long run", "kernel": "churn, long run",
}  # fmt: skip
ANSWER = (
    "**Pause the thread, or read its stack from the thread's own CPU. Do not read the stack of a thread that is running on"
    " another CPU.**"
)
ANSWER_WITH_KERNEL = (
    "**Let the kernel copy the stack at an interrupt. If the kernel does not allow this, pause the thread, or read its stack"
    " from the thread's own CPU. Do not read the stack of a thread that is running on another CPU.**"
)
FIGURES = "These figures are the shares of impossible stacks, with 95 % intervals, and the cost of the modes:"


def is_jit(ruby):
    return ruby.endswith("jit")


def without_jit(part):
    return {ruby: modes_of(report) for ruby, report in reports(part).items() if not is_jit(ruby)}


def listed(words):
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def called(ruby):
    return f"{ruby.split('-')[0]} with YJIT" if is_jit(ruby) else ruby


def bounds(share):
    return f"{near(share['low'])}–{near(share['high'])}"


def low_high(shares):
    """Shares of several Rubies in percent, from the lowest to the highest, with the ends of their intervals."""
    low, high = [near(end(share["value"] for share in shares)) for end in (min, max)]
    both = f"({near(min(share['low'] for share in shares))}–{near(max(share['high'] for share in shares))})"
    return (low if low == high else f"{low} to {high}", both)


def naive_pauses():
    """What `paused-naive` got wrong under churn."""
    rubies = sorted(reports("churn").items(), key=lambda item: is_jit(item[0]))
    found = {ruby: modes_of(report)["paused-naive"]["impossible"] for ruby, report in rubies}
    parts = [f"{near(share['value'])} % on {called(ruby)} ({bounds(share)})" for ruby, share in found.items() if share["count"]]
    right = [share for share in found.values() if not share["count"]]
    none = f"0 of {min(share['of'] for share in right):,}" if right else ""
    return ", ".join(parts) + (f", {none} on any other" if parts and right else none)


def million(mode):
    """What was wrong of a mode in the long runs, without a JIT."""
    found = {ruby: modes[mode]["impossible"] for ruby, modes in without_jit("kernel" if mode == "kernel" else "long").items()}
    wrong = [f"{share['count']} of {share['of']:,} on {ruby}" for ruby, share in found.items() if share["count"]]
    if wrong:
        return f"`{mode}` {listed(wrong)}"
    return f"`{mode}` 0 of {min(share['of'] for share in found.values()):,}"


def highest(modes):
    """The highest upper end of the intervals of million()."""
    parts = ("kernel" if mode == "kernel" else "long" for mode in modes)
    return max(found[mode]["impossible"]["high"] for mode, part in zip(modes, parts) for found in without_jit(part).values())


def lost(rate, mode):
    return [1 - modes[mode]["progress_share"] for modes in without_jit(f"cost-{rate}").values()]


def exceptions(mode):
    """Where a mode was wrong on the other variants: for each Ruby, the worst."""
    worst = {}
    for name, report in reports("variants").items():
        *ruby, variant = name.split("-")
        share = modes_of(report).get(mode, {}).get("impossible")
        if not share or not share["of"]:
            continue
        _, most = worst.setdefault("-".join(ruby), (variant, share))
        if share["value"] > most["value"]:
            worst["-".join(ruby)] = (variant, share)
    return ", ".join(
        f"{near(share['value'])} % on {called(ruby)} {'and' if is_jit(ruby) else 'with'} *{variant}* ({bounds(share)})"
        for ruby, (variant, share) in worst.items() if share["count"]
    )  # fmt: skip


def answer():
    """A sentence, and the figures that it follows from."""
    read, both = low_high([modes["unpaused-naive"]["impossible"] for modes in without_jit("churn").values()])
    # The reports may be of an rbdump that could not sample in the kernel.
    checked = ["paused", "unpaused", *(["kernel"] if in_kernel() else [])]
    wrong = {mode: exceptions(mode) for mode in checked}
    costs = [f"`{mode}` {span(lost(1000, mode))}" for mode in checked]
    points = [
        f"`unpaused-naive` (unpaused, from another CPU): {read} % of its accepted stacks are impossible {both}.",
        f"`paused-naive` (one copy): {naive_pauses()}.",
        f"With checks, no JIT: {', '.join(million(mode) for mode in checked)}"
        f" (at most {1e6 * highest(checked):.3g} in 1,000,000).",
        "On some variants of the target, checked modes accepted impossible stacks (the worst variant of each Ruby):"
        f" {'; '.join(f'`{mode}` {where}' for mode, where in wrong.items() if where) or 'none'}.",
        f"Progress that the target loses at 1,000 Hz: {', '.join(costs)}.",
    ]
    return "\n".join([f"{ANSWER_WITH_KERNEL if in_kernel() else ANSWER} {FIGURES}", *[wrapped(point, "- ") for point in points]])


def in_kernel():
    """Whether the reports have the mode `kernel`."""
    return "kernel" in modes_measured() and bool(reports("kernel"))


def contradicting(mode):
    """The share of stacks that a mode has accepted, and that contradict themselves, in percent; None if it has checks."""
    if not mode["checks"]:
        return None
    found = mode["checks"]["unknown"]
    count = sum(found["rejected"].values()) + found["call_site"]["innermost"]["contradicts"]
    return count / mode["accepted"]


def ends(values, show):
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


def by_mode():
    """One row for each mode; each cell is of the interpreters, from the lowest to the highest Ruby."""
    rows = []
    for mode in modes_measured():
        churn = [modes[mode] for modes in without_jit("churn").values()]
        rubocop = [modes[mode] for modes in without_jit("rubocop").values() if mode in modes]
        pauses = [modes[mode]["pause_us"] for modes in without_jit("cost-1000").values()]
        rejected = ends([1 - part["accepted_share"]["value"] for part in rubocop], near) if rubocop else "–"
        wrong = [contradicting(part) for part in rubocop if contradicting(part) is not None]
        rows.append(
            [f"`{mode}`", ends([part["accepted_share"]["value"] for part in churn], near)]
            + [" ".join(low_high([part["impossible"] for part in churn])), rejected, ends(wrong, near) if wrong else "–"]
            + [" / ".join(ends([pause[key] for pause in pauses], "{:,.0f}".format) for key in ("p50", "p99")) if all(pauses) else "–"]
            + [span(lost(1000, mode)), span(lost(100, mode))]
        )
    heads = ["mode", "churn: accepted, %", "churn: impossible, % of the accepted (95 % interval)", "rubocop: rejected, %"]
    heads += ["rubocop: contradict themselves, % of the accepted", "pause p50 / p99 at 1,000 Hz, µs"]
    return [*heads, "progress lost at 1,000 Hz", "progress lost at 100 Hz"], rows


def impossible_of(target, mode):
    """How many stacks of a mode were impossible on a Ruby, over all variants and rates, and where most."""
    count = total = 0
    wrong = []
    for part, where in CHURNS.items():
        for name, report in reports(part).items():
            if name != target and not (name.startswith(f"{target}-") and (is_jit(target) or "jit" not in name)):
                continue
            share = modes_of(report).get(mode, {}).get("impossible")
            if not share:
                continue
            count, total = count + share["count"], total + share["of"]
            if share["count"]:
                wrong.append((share, name.removeprefix(target).strip("-") or where))
    if not wrong:
        return f"0 of {total:,}"
    worst, where = max(wrong, key=lambda item: item[0]["value"])
    return f"{count:,} of {total:,}; most on *{where}*: {near(worst['value'])} % ({bounds(worst)})"


def by_ruby():
    shown = ["paused-naive", "paused", "unpaused"] + ["kernel"] * in_kernel()
    rows = [[called(ruby), *[impossible_of(ruby, mode) for mode in shown]] for ruby in reports("churn")]
    return ["Ruby", *[f"`{mode}`: impossible" for mode in shown]], rows
