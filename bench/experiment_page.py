"""The tables and the sentences with figures of doc/experiments.md and doc/experiments/tables.md, made from the reports.

Each has a place in one of the two pages, between two comments with its name. The text outside of these places is not changed.
"""

import sys

import experiment_summary
import experiment_words
from experiment_reports import TREE, chance, checks_of, comparable, distance, modes_of, reports, top_leaves
from experiment_words import near

PAGES = [TREE / "doc/experiments.md", TREE / "doc/experiments/tables.md"]
# How many places where threads were stopped a Ruby has in the table.
PLACES = 14


def share(part):
    if part is None or not part.get("of", 1):
        return "–"
    return f"{near(part['value'])} ({near(part['low'])}–{near(part['high'])})"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def counts(by_reason):
    return ", ".join(f"{key} {count:,}" for key, count in sorted(by_reason.items())) or "–"


def microseconds(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def held(mode):
    """How the rate was held, and how long the target was: cells of HELD."""
    pause = mode["pause_us"]
    pauses = " / ".join(microseconds(pause[key]) for key in ("p50", "p99", "max")) if pause else "–"
    return [f"{mode['achieved_rate']:,.0f}", f"{mode['late']:,}", pauses]


HELD = ["per second", "late", "pause p50 / p99 / max, µs"]


def rates(part):
    rows = []
    for name, report in reports(part).items():
        for mode in report["modes"]:
            # Their own column: what was moved by the time that its names were read was no wrong stack.
            moved = mode["rejected"].pop("compacted", 0)
            rows.append(
                [name, f"`{mode['mode']}`", f"{mode['samples']:,}", share(mode["accepted_share"]), counts(mode["rejected"])]
                + ([f"{moved:,}" if moved else "–"] if part == "variants" else [])
                + [f"{mode['impossible']['count']:,}", share(mode["impossible"])]
            )
    gone = ["names gone (`compacted`)"] if part == "variants" else []
    return table(["Ruby", "mode", "samples", "accepted, %", "rejected", *gone, "impossible", "of the accepted, %"], rows)


def long_runs():
    rows = []
    for name, report in [*reports("long").items(), *reports("kernel").items()]:
        for mode in report["modes"]:
            rows.append(
                [name, f"`{mode['mode']}`", f"{mode['samples']:,}", f"{mode['accepted']:,}", counts(mode["rejected"])]
                + [mode["impossible"]["count"], f"{1e6 * mode['impossible']['high']:.3g}"]
                + [f"{mode['steps']['samples']:,}", counts(mode.get("retried", {})), mode["tries"]["max"], *held(mode)]
            )
    heads = ["Ruby", "mode", "samples", "accepted", "rejected", "impossible", "at most in a million (95 %)"]
    return table([*heads, "stepped", "tried again", "most tries", *HELD], rows)


def rubocop():
    rows = []
    for name, report in reports("rubocop").items():
        for mode in report["modes"]:
            checks = mode["checks"]
            wrong = "–"
            if checks:
                found = checks["unknown"]
                contradicting = found["call_site"]["innermost"]["contradicts"]
                wrong = f"{sum(found['rejected'].values()) + contradicting:,}"
            rows.append(
                [name, f"`{mode['mode']}`", f"{mode['samples']:,}", share(mode["accepted_share"]), counts(mode["rejected"])]
                + [wrong, sum(int(depth) * n for depth, n in mode["depths"].items()) // max(1, mode["accepted"]), *held(mode)]
            )
    heads = ["Ruby", "mode", "samples", "accepted, %", "rejected", "accepted unchecked, but contradict themselves"]
    return table([*heads, "frames, on average", *HELD], rows)


def costs():
    rows = []
    for rate in (100, 1000):
        for name, report in reports(f"cost-{rate}").items():
            for mode in report["modes"]:
                pause = mode["pause_us"]
                rows.append(
                    [rate, name, f"`{mode['mode']}`", share(mode["impossible"])]
                    + [f"{microseconds(pause['p50'])} / {microseconds(pause['p99'])}" if pause else "–"]
                    + [microseconds(mode["sample_us"]["p50"]), microseconds(mode["cpu_us_per_sample"])]
                    + [f"{mode['progress_share']:.4f}" if mode["progress_share"] is not None else "–"]
                )
    heads = ["Hz", "Ruby", "mode", "impossible, %", "pause p50 / p99, µs", "sample p50, µs", "CPU per sample, µs"]
    return table([*heads, "target's progress"], rows)


def biases():
    rows = []
    for part in ("churn", "rubocop"):
        for name, report in reports(part).items():
            modes = comparable(report)
            for mode in modes.values():
                if not mode["accepted"]:
                    continue
                depth = sum(int(depth) * count for depth, count in mode["depths"].items()) / mode["accepted"]
                cells = [f"{part} {name}", f"`{mode['mode']}`", f"{mode['accepted']:,}", f"{depth:.2f}"]
                for key in ("depths", "leaves"):
                    one, other = mode[key], modes["paused"][key]
                    if mode["mode"] == "paused":
                        cells.append("–")
                    else:
                        cells.append(f"{distance(one, other):.3f} ({chance(one, other):.3f})")
                rows.append(cells)
    heads = ["target, Ruby", "mode", "accepted", "mean depth", "depths: distance (by chance)", "innermost methods: distance (by chance)"]
    return table(heads, rows)


def leaves():
    """The most frequent innermost methods, and their shares by mode; of the interpreters."""
    rows = []
    shown = ["unpaused-naive", "unpaused", "paused-naive", "paused"]
    for part in ("churn", "rubocop"):
        for name, report in reports(part).items():
            modes = comparable(report)
            if name.endswith("jit"):
                continue
            for number, leaf in enumerate(top_leaves(modes)):
                shares = [modes[mode]["leaves"].get(leaf, 0) / max(1, modes[mode]["accepted"]) for mode in shown]
                rows.append([f"{part} {name}", number + 1, f"`{leaf}`", *[f"{100 * share:.2f}" for share in shares]])
    return table(["target, Ruby", "", "innermost method", *[f"`{mode}`, %" for mode in shown]], rows)


def places():
    rows = []
    for part in ("churn", "rubocop"):
        for name, report in reports(part).items():
            for place in [place for place in report["where"] if place["mode"] == "paused-naive"][:PLACES]:
                where = f"{place['file'].rsplit('/', 1)[-1]}:{place['line']}" if place["file"] else "–"
                function = f"`{place['function']}+{place['offset']}`" if place["function"] else "code of no known file (a JIT's)"
                inlined = " < ".join(f"`{name}`" for name in place["inlined"]) or "–"
                rows.append(
                    [f"{part} {name}", place["reason"], f"{place['count']:,}", near(place["share"]), function, inlined, where]
                    + [place["window"] or "none"]
                )
    heads = ["target, Ruby", "rejected for", "stacks", "%", "instruction pointer", "inlined there", "line", "window"]
    return table(heads, rows)


def evidence():
    """What the checks say of stacks that nobody checked, over all variants of the target."""
    rows = []
    for series in sorted({name.split("-")[0] for name in [*reports("churn"), *reports("variants")]}):
        for name in ("unpaused-once", "paused-naive"):
            total = checks_of(series, name)
            for truth, words in (("impossible", "impossible"), ("legal", "legal"), ("in_window", "legal, in a window")):
                sums = total[truth]
                if sums["all"]:
                    open_ = near(sums["undecided"] / max(1, sums["all"] - sums["hard"]))
                    rows.append(
                        [series, f"`{name}`", words, f"{sums['all']:,}", f"{sums['hard']:,}", f"{sums['site']:,}"]
                        + [f"{sums['all'] - sums['hard'] - sums['site']:,}", open_]
                    )
    heads = ["Ruby", "mode", "stacks", "in all", "fail a hard check", "pass these, but contradict their call site", "pass both"]
    return table([*heads, "call site undecided, %"], rows)


def made():
    """All that is made from the reports alone, by the name of its place."""
    words = {
        "unpaused on 2.7": experiment_words.unpaused_of_old(), "cost": experiment_words.cost(), "bias": experiment_words.bias(),
        "windows": experiment_words.windows(), "3.1's YJIT": experiment_words.jit_without_windows(), "compacted": experiment_words.moved(),
        "the budget": experiment_words.in_budget(), "evidence": experiment_words.evidence(),
    }  # fmt: skip
    return {
        "answer": experiment_summary.answer(), "by mode": table(*experiment_summary.by_mode()),
        "by Ruby": table(*experiment_summary.by_ruby()),
        "churn": rates("churn"), "variants": rates("variants"), "long": long_runs(), "rubocop": rubocop(),
        "cost": costs(), "bias": biases(), "leaves": leaves(), "where": places(), "evidence": evidence(),
        **{f"words of {name}": experiment_words.wrapped(text) for name, text in words.items()},
    }  # fmt: skip


def marks(name):
    return f"<!-- {name} -->\n", f"\n<!-- end {name} -->"


def write():
    pages = {path: path.read_text() for path in PAGES}
    for name, content in {**made(), "when": experiment_words.when()}.items():
        begin, end = marks(name)
        found = [path for path, page in pages.items() if begin in page]
        if len(found) != 1 or any(pages[found[0]].count(mark) != 1 for mark in (begin, end)):
            sys.exit(f"no page, or more than one, has a place for {name}")
        before, rest = pages[found[0]].split(begin)
        pages[found[0]] = before + begin + content + end + rest.split(end)[1]
    for path, page in pages.items():
        path.write_text(page)
