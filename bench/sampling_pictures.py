#!/usr/bin/env python3
"""Draws how the cost of a sample grows, from what bench.py --json has written: sampling_pictures.py JSON SVG"""

import json
import math
import pathlib
import re
import sys

from experiment_pictures import dot, line, svg, text

COLOURS = {"unpaused": "#1f77b4", "paused": "#d62728"}
PANELS = ("rate, Hz", "threads", "frames")
UNITS = {"Hz": "rate, Hz", "threads": "threads", "frames": "frames"}
WIDTH, HEIGHT, LEFT, TOP = 260, 260, 60, 40
LOW, HIGH = 1, 5  # powers of ten of microseconds


def points_of(rows):
    """{panel: {mode: [(number, microseconds)]}}"""
    points = {panel: {mode: [] for mode in COLOURS} for panel in PANELS}
    for row in rows:
        found = re.fullmatch(r"(paused|unpaused), ([0-9,]+) (Hz|threads|frames)", row["what"])
        if found and row.get("unit") == "us":
            points[UNITS[found[3]]][found[1]].append((int(found[2].replace(",", "")), row["measured"]))
    return points


def panel(left, title, series):
    numbers = [number for values in series.values() for number, _ in values]
    low, high = math.log10(min(numbers)), math.log10(max(numbers))

    def x(number):
        return left + (math.log10(number) - low) / (high - low) * WIDTH

    def y(us):
        return TOP + HEIGHT - (math.log10(us) - LOW) / (HIGH - LOW) * HEIGHT

    parts = [text(left + WIDTH / 2, TOP + HEIGHT + 36, title, "middle")]
    for power in range(LOW, HIGH + 1):
        parts += [line(left, y(10**power), left + WIDTH, y(10**power), "#ddd"), text(left - 6, y(10**power) + 4, f"{10**power:,}", "end")]
    for number in sorted(set(numbers)):
        parts += [line(x(number), TOP, x(number), TOP + HEIGHT, "#eee"), text(x(number), TOP + HEIGHT + 16, f"{number:,}", "middle")]
    for mode, values in series.items():
        for (a, b), (c, d) in zip(values, values[1:]):
            parts.append(line(x(a), y(b), x(c), y(d), COLOURS[mode], 2))
        parts += [dot(x(number), y(us), COLOURS[mode]) for number, us in values]
    return parts


def main():
    source, target = map(pathlib.Path, sys.argv[1:3])
    points = points_of(json.loads(source.read_text())["rows"])
    parts = [text(LEFT, 20, "CPU time of a sample, microseconds")]
    for i, mode in enumerate(COLOURS):
        parts += [dot(LEFT + 260 + 90 * i, 16, COLOURS[mode]), text(LEFT + 270 + 90 * i, 20, mode)]
    for i, (title, series) in enumerate(points.items()):
        if all(series.values()):
            parts += panel(LEFT + i * (WIDTH + 80), title, series)
    target.write_text(svg(LEFT + 3 * (WIDTH + 80), TOP + HEIGHT + 50, parts))


if __name__ == "__main__":
    main()
