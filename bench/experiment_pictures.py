"""The pictures of doc/experiments.md and doc/experiments/tables.md, drawn as SVG from the reports in the tree."""

import html
import math

from experiment_reports import COLOURS, FOLDER, chance, comparable, distance, modes_measured, modes_of, reports, top_leaves

# How many places a Ruby has in the picture of where threads were stopped.
PLACES = 12


def svg(width, height, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def text(x, y, words, anchor="start", colour="black"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{html.escape(words)}</text>'


def line(x1, y1, x2, y2, colour, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def dot(x, y, colour):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" fill-opacity="0.8"/>'


class LogAxis:
    """Shares from 10^low to 1, from left to right."""

    def __init__(self, left, right, low):
        self.left, self.right, self.low = left, right, low

    def x(self, value):
        power = max(self.low, math.log10(max(value, 10.0**self.low)))
        return self.left + (power - self.low) / -self.low * (self.right - self.left)

    def grid(self, top, bottom):
        parts = []
        for power in range(self.low, 1):
            parts.append(line(self.x(10.0**power), top, self.x(10.0**power), bottom, "#ddd"))
            parts.append(text(self.x(10.0**power), top - 6, f"1e{power}" if power else "1", "middle"))
        return parts


class LinearAxis:
    """Values from `low` to `high`, from left to right, with a mark at each `step`."""

    def __init__(self, left, right, low, high, step, words):
        self.left, self.right, self.low, self.high, self.step, self.words = left, right, low, high, step, words

    def x(self, value):
        return self.left + (min(max(value, self.low), self.high) - self.low) / (self.high - self.low) * (self.right - self.left)

    def grid(self, top, bottom):
        parts = []
        for number in range(round((self.high - self.low) / self.step) + 1):
            value = self.low + self.step * number
            parts.append(line(self.x(value), top, self.x(value), bottom, "#ddd"))
            parts.append(text(self.x(value), top - 6, self.words(value), "middle"))
        return parts


def draw_rates():
    """Impossible stacks by Ruby and mode, with their intervals; in the long runs, too."""
    rows = []
    for part, label in (("churn", ""), ("long", ", long run")):
        for name, report in reports(part).items():
            rows += [(name, mode, label) for mode in report["modes"] if mode["impossible"]["of"]]
    axis = LogAxis(260, 700, -7)
    parts = axis.grid(20, 40 + 18 * len(rows))
    for number, (name, mode, label) in enumerate(rows):
        y = 38 + 18 * number
        part, colour = mode["impossible"], COLOURS[mode["mode"]]
        parts.append(text(10, y + 4, f"{name}  {mode['mode']}{label}"))
        parts.append(line(axis.x(part["low"]), y, axis.x(part["high"]), y, colour, 3))
        if part["count"]:
            parts.append(dot(axis.x(part["value"]), y, colour))
    parts.append(text(10, 60 + 18 * len(rows), "share of accepted stacks that cannot be; 95 % intervals; no dot: none seen"))
    (FOLDER / "rates.svg").write_text(svg(720, 76 + 18 * len(rows), parts))


def legend(top):
    parts = []
    for number, mode in enumerate(modes_measured()):
        parts.append(f'<rect x="{10 + 124 * number}" y="{top + 4}" width="10" height="10" fill="{COLOURS[mode]}"/>')
        parts.append(text(24 + 124 * number, top + 14, mode))
    return parts


def draw_bias():
    """What accepted stacks were: their depths, and the shares of their innermost methods, each mode against paused."""
    parts, top = [], 0
    for part in ("churn", "rubocop"):
        for name, report in reports(part).items():
            modes = {name: mode for name, mode in comparable(report).items() if mode["accepted"]}
            parts += draw_depths(f"{part} {name}", modes, top) + draw_leaves(modes, top)
            top += 160
    (FOLDER / "bias.svg").write_text(svg(760, top + 30, parts + legend(top)))


def draw_depths(name, modes, top):
    """A line for each mode: the share of stacks of a depth."""
    depths = sorted({int(depth) for mode in modes.values() for depth in mode["depths"]})
    peak = max(count / mode["accepted"] for mode in modes.values() for count in mode["depths"].values())
    parts = [text(10, top + 16, f"{name}: stacks by depth")]
    for mode in modes.values():
        points = " ".join(
            f"{20 + 360 * (depth - depths[0]) / max(1, depths[-1] - depths[0]):.1f},"
            f"{top + 130 - 100 * mode['depths'].get(str(depth), 0) / mode['accepted'] / peak:.1f}"
            for depth in depths
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[mode["mode"]]}" stroke-width="1.5"/>')
    return parts + [text(20, top + 146, str(depths[0])), text(380, top + 146, str(depths[-1]), "end")]


def draw_leaves(modes, top):
    """A dot for each mode at each of the most frequent methods: its share of the innermost."""
    names = top_leaves(modes)
    shares = {key: [mode["leaves"].get(name, 0) / mode["accepted"] for name in names] for key, mode in modes.items()}
    peak = max(share for of_mode in shares.values() for share in of_mode)
    parts = [text(430, top + 16, f"{len(names)} most frequent innermost methods, up to {100 * peak:.1f} %")]
    for number in range(len(names)):
        x = 440 + 300 * number / max(1, len(names) - 1)
        parts += [line(x, top + 30, x, top + 130, "#ddd"), text(x, top + 146, str(number + 1), "middle")]
        parts += [dot(x, top + 130 - 100 * of_mode[number] / peak, COLOURS[key]) for key, of_mode in shares.items()]
    return parts


def draw_places():
    """Where the threads of wrong stacks were stopped, as an address in a function and what is inlined there."""
    parts, top = [], 10
    for name, report in reports("churn").items():
        places = [place for place in report["where"] if place["mode"] == "paused-naive"]
        if not places:
            continue
        total = sum(place["count"] for place in places)
        parts.append(text(10, top + 14, f"{name}: {total} wrong stacks of paused-naive", colour="#444"))
        top += 24
        for place in places[:PLACES]:
            words = f"{place['function']}+{place['offset']}" if place["function"] else "code of no known file (a JIT's)"
            words = f"{place['reason']}  {words}"
            if place["file"]:
                words += f"   {place['inlined'][0]}, {place['file'].rsplit('/', 1)[-1]}:{place['line']}"
            width = 180 * place["count"] / total
            colour = COLOURS["paused"] if place["window"] else COLOURS["unpaused-naive"]
            parts.append(f'<rect x="10" y="{top}" width="{width:.1f}" height="13" fill="{colour}"/>')
            parts.append(text(196, top + 11, f"{100 * place['count'] / total:.1f} %   {words}"))
            top += 17
        top += 8
    parts.append(text(10, top + 14, "blue: in a torn window of the layout; red: in none that is known", colour="#444"))
    (FOLDER / "where.svg").write_text(svg(960, top + 26, parts))


def draw_answer():
    """Should I pause? Errors, bias and cost of each mode, at 100 and at 1,000 Hz; a dot for each Ruby, below each other."""
    error = LogAxis(150, 370, -4)
    bias = LinearAxis(410, 610, 0, 0.5, 0.1, lambda value: f"{value:.1f}")
    runs = {rate: reports(f"cost-{rate}") for rate in (100, 1000)}
    lost = [1 - mode["progress_share"] for run in runs.values() for report in run.values() for mode in report["modes"]
            if mode["progress_share"] is not None]
    low, high = 0.1 * math.floor(min(0, *lost) / 0.1), 0.1 * math.ceil(max(lost) / 0.1)
    cost = LinearAxis(650, 850, low, high, 0.1, lambda value: f"{100 * value:.0f} %".replace("-0", "0").replace("-", "−"))
    parts, top = [], 16
    for rate, found in runs.items():
        parts += [text(10, top, f"{rate} Hz"), text(error.left, top, "impossible, of the accepted")]
        parts += [text(bias.left, top, "bias: leaf methods, beyond chance"), text(cost.left, top, "progress that the target lost")]
        height = 10 + 5 * len(found)
        bottom = top + 36 + height * len(modes_measured())
        for axis in (error, bias, cost):
            parts += axis.grid(top + 26, bottom)
        for number, name in enumerate(modes_measured()):
            middle = top + 36 + height * (number + 0.5)
            parts.append(text(10, middle + 4, name))
            for ruby, report in enumerate(found.values()):
                y = middle + 5 * (ruby - (len(found) - 1) / 2)
                modes = comparable(report)
                if name not in modes or not modes["paused"]["accepted"]:
                    continue
                mode, paused, colour = modes[name], modes["paused"], COLOURS[name]
                share = mode["impossible"]
                if share["of"]:
                    parts.append(line(error.x(share["low"]), y, error.x(share["high"]), y, colour, 2))
                    parts += [dot(error.x(share["value"]), y, colour)] if share["count"] else []
                beyond = distance(mode["leaves"], paused["leaves"]) - chance(mode["leaves"], paused["leaves"])
                if name != "paused" and mode["accepted"]:
                    parts.append(dot(bias.x(beyond), y, colour))
                if mode["progress_share"] is not None:
                    parts.append(dot(cost.x(1 - mode["progress_share"]), y, colour))
        top = bottom + 30
    parts.append(text(10, top, f"in each row, from its top: {', '.join(runs[100])}; lines: 95 % intervals; no dot in the first column: none seen"))
    parts.append(text(10, top + 16, "a bias that is less than what chance has is drawn as 0; progress lost below 0 is a gain"))
    (FOLDER / "answer.svg").write_text(svg(880, top + 30, parts))


def draw():
    draw_rates()
    draw_bias()
    draw_places()
    draw_answer()
