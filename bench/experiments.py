"""Runs rbdump experiment on targets of known calls, and writes what came of it into doc/experiments.md.

    make experiments                     all Rubies, 20,000 samples of each mode
    bench/experiments.py --long 1000000  so many of `paused` and `unpaused`, under tight churn
    bench/experiments.py --draw          no run: tables and pictures again, from the JSON in the tree

The reports go to doc/experiments/*.json, the pictures beside them as SVG.
"""

import argparse
import html
import json
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parent.parent
FOLDER = TREE / "doc/experiments"
PAGE = TREE / "doc/experiments.md"
GRAPH = TREE / "tests/targets/graph/graph.rb"
MODES = ["unpaused-naive", "unpaused-once", "unpaused-double", "unpaused", "paused-naive", "paused"]
COLOURS = dict(zip(MODES, ["#b0413e", "#c77f9b", "#d98e32", "#3b7a57", "#7a6fb0", "#2f5d8a"]))
TIMEOUT = 3600
sys.path.insert(0, str(TREE / "tests"))

from harness.rubies import find_rubies  # noqa: E402


def measure(ruby, flags, arguments):
    """One experiment on a target under tight churn: its report."""
    with tempfile.TemporaryDirectory() as folder:
        target = subprocess.Popen(
            [ruby.path, *flags, "--disable-gems", GRAPH, "churn", "1", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            if target.stdout.readline() != "ready\n":
                sys.exit(f"{ruby.id}: the target did not start")
            subprocess.run(
                [TREE / "build/rbdump", "experiment", "-p", str(target.pid), "--oracle", f"{folder}/oracle.json"]
                + ["--json", f"{folder}/report.json", *arguments],
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=TIMEOUT,
            )
            return json.loads(pathlib.Path(folder, "report.json").read_text())
        finally:
            target.stdin.close()
            target.wait(60)


def keep(name, report):
    for private in ("pid",):
        del report[private]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")


def run_all(samples, long):
    for ruby in find_rubies():
        if not ruby.has_debug:
            continue
        series = "{}.{}".format(*ruby.series)
        for suffix, flags in [("", [])] + ([("-yjit", ["--yjit"])] if ruby.has_yjit else []):
            if long:
                arguments = ["-m", "paused,unpaused", "-r", "20000", "-n", str(long)]
                keep(f"long-{series}{suffix}", measure(ruby, flags, arguments))
                continue
            keep(f"churn-{series}{suffix}", measure(ruby, flags, ["-r", "5000", "-n", str(samples)]))
            if suffix:
                continue
            for rate in (100, 1000):
                arguments = ["-r", str(rate), "-d", "25"]
                keep(f"cost-{rate}-{series}", measure(ruby, flags, arguments))


# ---- tables


def reports(prefix):
    return {path.stem[len(prefix) :]: json.loads(path.read_text()) for path in sorted(FOLDER.glob(f"{prefix}*.json"))}


def percent(value):
    return f"{100 * value:.3g}"


def share(part):
    if part is None or not part.get("of", 1):
        return "–"
    return f"{percent(part['value'])} ({percent(part['low'])}–{percent(part['high'])})"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def rates(prefix):
    rows = []
    for name, report in reports(prefix).items():
        for mode in report["modes"]:
            reasons = ", ".join(f"{key} {count}" for key, count in sorted(mode["rejected"].items())) or "–"
            rows.append(
                [name, f"`{mode['mode']}`", f"{mode['samples']:,}", share(mode["accepted_share"]), reasons]
                + [mode["impossible"]["count"], share(mode["impossible"])]
            )
    if not rows:
        return f"Not run yet: `bench/experiments.py --long 1000000` ({prefix}*.json)."
    return table(["Ruby", "mode", "samples", "accepted, %", "rejected", "impossible", "of the accepted, %"], rows)


def costs():
    rows = []
    for rate in (100, 1000):
        for name, report in reports(f"cost-{rate}-").items():
            for mode in report["modes"]:
                pause = mode["pause_us"]
                rows.append(
                    [rate, name, f"`{mode['mode']}`", share(mode["impossible"])]
                    + [f"{pause['p50']:.3g} / {pause['p99']:.3g}" if pause else "–"]
                    + [f"{mode['sample_us']['p50']:.3g}", f"{mode['cpu_us_per_sample']:.3g}"]
                    + [f"{mode['progress_share']:.4f}" if mode["progress_share"] is not None else "–"]
                )
    heads = ["Hz", "Ruby", "mode", "impossible, %", "pause p50 / p99, µs", "sample p50, µs", "CPU a sample, µs"]
    return table([*heads, "CPU time left to the target"], rows)


def distance(one, other):
    """Half the sum of the differences of two distributions' shares: 0 if they are the same, 1 if nothing is in common."""
    keys = set(one) | set(other)
    total_one, total_other = sum(one.values()) or 1, sum(other.values()) or 1
    return sum(abs(one.get(key, 0) / total_one - other.get(key, 0) / total_other) for key in keys) / 2


def biases():
    rows = []
    for name, report in reports("churn-").items():
        modes = {mode["mode"]: mode for mode in report["modes"]}
        for mode in report["modes"]:
            if not mode["accepted"]:
                continue
            depth = sum(int(depth) * count for depth, count in mode["depths"].items()) / mode["accepted"]
            rows.append(
                [name, f"`{mode['mode']}`", mode["accepted"], f"{depth:.2f}"]
                + [f"{distance(mode[key], modes['paused'][key]):.3f}" for key in ("depths", "leaves")]
            )
    return table(["Ruby", "mode", "accepted", "mean depth", "depths: distance to `paused`", "leaves: the same"], rows)


def places():
    rows = []
    for name, report in reports("churn-").items():
        for place in [place for place in report["where"] if place["mode"] == "paused-naive"][:6]:
            where = f"{place['file'].rsplit('/', 1)[-1]}:{place['line']}" if place["file"] else "–"
            rows.append(
                [name, f"{100 * place['share']:.1f}", f"`{place['function']}+{place['offset']}`" if place["function"] else "?"]
                + [" < ".join(place["inlined"]) or "–", where, place["window"] or "none"]
            )
    return table(["Ruby", "%", "instruction pointer", "inlined there", "line", "window"], rows)


# ---- pictures


def svg(width, height, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def text(x, y, words, anchor="start"):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{html.escape(words)}</text>'


def draw_rates():
    """Impossible stacks by Ruby and mode, on a logarithmic axis, with their intervals."""
    import math

    found = reports("churn-")
    rows = [(name, mode) for name, report in found.items() for mode in report["modes"] if mode["impossible"]["of"]]
    left, width, low, high = 220, 720, -6, 0

    def x(value):
        return left + (max(low, math.log10(max(value, 1e-9))) - low) / (high - low) * (width - left - 20)

    parts = []
    for power in range(low, high + 1):
        parts.append(f'<line x1="{x(10**power):.1f}" x2="{x(10**power):.1f}" y1="20" y2="{40 + 18 * len(rows)}" stroke="#ddd"/>')
        parts.append(text(f"{x(10**power):.1f}", 14, f"1e{power}" if power else "1", "middle"))
    for number, (name, mode) in enumerate(rows):
        y = 38 + 18 * number
        part, colour = mode["impossible"], COLOURS[mode["mode"]]
        parts.append(text(10, y + 4, f"{name}  {mode['mode']}"))
        parts.append(
            f'<line x1="{x(part["low"]):.1f}" x2="{x(part["high"]):.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>'
        )
        if part["count"]:
            parts.append(f'<circle cx="{x(part["value"]):.1f}" cy="{y}" r="4" fill="{colour}"/>')
    parts.append(text(left, 56 + 18 * len(rows), "share of accepted stacks that cannot be; 95 % intervals; no dot: none seen"))
    (FOLDER / "rates.svg").write_text(svg(width, 70 + 18 * len(rows), parts))


def draw_depths():
    """How deep accepted stacks were: each mode against paused."""
    found = reports("churn-")
    parts, top = [], 0
    for name, report in found.items():
        modes = {mode["mode"]: mode for mode in report["modes"] if mode["accepted"]}
        depths = sorted({int(depth) for mode in modes.values() for depth in mode["depths"]})
        peak = max(count / mode["accepted"] for mode in modes.values() for count in mode["depths"].values())
        parts.append(text(10, top + 16, f"{name}: share of accepted stacks by depth"))
        for mode in modes.values():
            points = " ".join(
                f"{40 + 640 * (depth - depths[0]) / max(1, depths[-1] - depths[0]):.1f},"
                f"{top + 130 - 100 * mode['depths'].get(str(depth), 0) / mode['accepted'] / peak:.1f}"
                for depth in depths
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[mode["mode"]]}" stroke-width="1.5"/>')
        parts += [text(40, top + 146, str(depths[0])), text(680, top + 146, str(depths[-1]), "end")]
        top += 160
    for number, mode in enumerate(MODES):
        parts.append(f'<rect x="{10 + 140 * number}" y="{top + 4}" width="10" height="10" fill="{COLOURS[mode]}"/>')
        parts.append(text(24 + 140 * number, top + 14, mode))
    (FOLDER / "depths.svg").write_text(svg(720, top + 30, parts))


def write_page():
    """The tables go between their marks in the page; the words around them stay."""
    page = PAGE.read_text()
    made = {"churn": rates("churn-"), "long": rates("long-"), "cost": costs(), "bias": biases(), "where": places()}
    for name, content in made.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
        before, rest = page.split(begin)
        page = before + begin + content + "\n" + end + rest.split(end)[1]
    PAGE.write_text(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--long", type=int)
    parser.add_argument("--draw", action="store_true")
    arguments = parser.parse_args()
    if not arguments.draw:
        run_all(arguments.samples, arguments.long)
    draw_rates()
    draw_depths()
    write_page()


if __name__ == "__main__":
    main()
