#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the charts of a folder against their data, NAME.svg against NAME.json: check-plot.py FOLDER

It reads the axes from their labels as a person does, computes where each value must be, and looks
for it there: every point of a line and its interval, every marker, every bar. It checks that no text
leaves the picture, and that no two texts overlap. Exit: 0, or 1 with a line for each fault.
"""
import json
import math
import pathlib
import re
import sys
import xml.etree.ElementTree as ET

NEAR = 0.75  # of a pixel: coordinates have one decimal

# Widths of DejaVu Sans, the widest of the usual fonts, in hundredths of its size.
WIDTHS = {" ": 32, "(": 39, ")": 39, ",": 32, ".": 32, "-": 36, "/": 34, ":": 34, "=": 84, "+": 84, "%": 95, "_": 50,
          "i": 28, "l": 28, "j": 28, "t": 39, "f": 35, "r": 41, "I": 30, "m": 97, "w": 82, "M": 86, "W": 99, "G": 78,
          "K": 66, "L": 56, "T": 61, "s": 52, "c": 55, "x": 59, "v": 59, "y": 59, "k": 58, "z": 53}

faults = []


def fault(text):
    faults.append(text)


def classes(e):
    return e.get("class", "").split()


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", text)]


class Box:
    def __init__(self, e, font):
        self.text = e.text or ""
        width = sum(WIDTHS.get(c, 64 if c.islower() or c.isdigit() else 75) for c in self.text) / 100 * font
        x, y = float(e.get("x")), float(e.get("y"))
        self.left = x - {"start": 0, "middle": width / 2, "end": width}[e.get("text-anchor")]
        self.right, self.top, self.bottom = self.left + width, y - 0.76 * font, y + 0.05 * font

    def overlaps(self, other):
        return (self.left < other.right and other.left < self.right and
                self.top < other.bottom and other.top < self.bottom)


def check_texts(svg):
    _, _, width, height = numbers(svg.get("viewBox"))
    font = float(svg.get("font-size"))
    boxes = [Box(e, font) for e in svg.iter("text") if e.text]
    for i, box in enumerate(boxes):
        if box.left < -0.5 or box.right > width + 0.5 or box.top < -0.5 or box.bottom > height + 0.5:
            fault(f"'{box.text}' leaves the picture: {box.left:.0f} to {box.right:.0f} of {width:.0f}")
        for other in boxes[:i]:
            if box.overlaps(other):
                fault(f"'{box.text}' is over '{other.text}'")


def value_of(label):
    if label == "same":
        return 1.0
    if label.endswith(" %"):
        return 1 + float(label[:-2]) / 100
    return float(label.lstrip("x"))


def size_of(label):
    value = float(label.rstrip("KMGT")) * 1024 ** ("KMGT".find(label[-1]) + 1)
    if math.log2(value) % 1:
        fault(f"the tick {label} is at no power of two")
    return value


def check_titles(svg, data):
    titles = [t.text for t in svg.iter("text") if {"x-title", "y-title"} & set(classes(t))]
    if titles != [label for label in (data["x_label"], data["y_label"]) if label and label not in data["title"]]:
        fault(f"the axes are named {titles}")


class Axis:
    """Where a value is, from two ticks; every other tick must agree."""

    def __init__(self, name, ticks, log):
        self.log = log
        if len(ticks) < 2:
            fault(f"the axis of {name} has {len(ticks)} ticks")
            ticks = [(1, 0), (2, 1)]
        (self.v0, self.p0), (self.v1, self.p1) = ticks[0], ticks[-1]
        for value, at in ticks:
            if abs(self.at(value) - at) > NEAR:
                fault(f"the tick {value:g} of {name} is at {at}, and not at {self.at(value):.1f}")

    def at(self, v):
        share = (math.log(v / self.v0) / math.log(self.v1 / self.v0) if self.log
                 else (v - self.v0) / (self.v1 - self.v0))
        return self.p0 + share * (self.p1 - self.p0)


def group(svg, name):
    return [g for g in svg.iter("g") if name in classes(g)]


def ticks_of(svg, name, key, value):
    texts = [t for g in group(svg, name) for t in g.iter("text")]
    return [(value(t.text), float(t.get(key))) for t in texts]


def near(a, b):
    return abs(a[0] - b[0]) <= NEAR and abs(a[1] - b[1]) <= NEAR


def part(g, name):
    return [p for p in g.findall("path") if name in classes(p)]


def centre(path):
    """Of a marker: the middle of its outline, as far as its shape says."""
    d = path.get("d")
    n = numbers(d)
    if "a" in d:
        return n[0] + n[2], n[1]
    if "v" in d:
        return n[0] + n[2] / 2, n[1] + n[2] / 2
    if d.count("l") == 2:
        return n[0], n[1] + n[3]
    return n[0], n[1] + n[3] / 2.1 * 1.2 * (1 if n[3] > 0 else 1)


def check_line(g, line, x, y, name, shown):
    points = [p for p in line["points"] if p[1] is not None]
    places = [(x.at(p[0]), y.at(p[1])) for p in points]
    if not line["apart"]:
        pairs = numbers(part(g, "curve")[0].get("d"))
        curve = list(zip(pairs[::2], pairs[1::2]))
        if len(curve) != len(places):
            fault(f"{name}: {len(curve)} of {len(places)} points are in the line")
        for got, want in zip(curve, places):
            if not near(got, want):
                fault(f"{name}: a point of the line is at {got}, and not at {want}")
    if not line["plain"]:
        marks = [centre(m) for m in part(g, "mark")]
        for m in marks:
            if not any(near(m, p) for p in places):
                fault(f"{name}: a marker at {m} is at no point")
        if len(places) <= 20 and len(marks) != len(places):
            fault(f"{name}: {len(marks)} markers for {len(places)} points")
        if any(m.find("title") is None or not m.find("title").text for m in part(g, "mark")):
            fault(f"{name}: a marker has no tooltip")
        if not line["apart"]:
            for a, b in zip(marks[:-1], marks[1:-1]):
                if math.dist(a, b) < 6:
                    fault(f"{name}: the marker at {b} hides the one before")
    whole = [p for p in points if p[2] is not None and p[3] is not None]
    spans = [(x.at(p[0]), *(y.at(min(max(v, shown[0]), shown[1])) for v in p[2:4])) for p in whole]
    band, bars = part(g, "band"), part(g, "bar")
    arrows = re.findall(r"M[-\d.]+,[-\d.]+l4,-?4l4,-?4", "".join(b.get("d") for b in bars))
    tips = [(n[0] + 4, n[1] + n[3], n[3] < 0) for n in map(numbers, arrows)]
    beyond = [(at, high if up else low, up) for p, (at, low, high) in zip(whole, spans)
              for up in (False, True) if (p[3] > shown[1] if up else p[2] < shown[0])]
    if any(not any(near(tip, b) and tip[2] == b[2] for b in beyond) for tip in tips):
        fault(f"{name}: arrows at {tips}, and ends beyond the frame at {beyond}")
    if any(not any(abs(tip[0] - b[0]) < (14 if band else NEAR) and tip[2] == b[2] for tip in tips) for b in beyond):
        fault(f"{name}: of the ends beyond the frame at {beyond}, arrows are at {tips} alone")
    if band:
        n = numbers(band[0].get("d"))
        ends = list(zip(n[::2], n[1::2]))
        for at, low, high in spans:
            if not any(near(e, (at, low)) for e in ends) or not any(near(e, (at, high)) for e in ends):
                fault(f"{name}: the band lacks the interval at {at:.1f}")
    else:
        drawn = [tuple(map(float, m)) for m in re.findall(r"M(-?[\d.]+),(-?[\d.]+)V(-?[\d.]+)", bars[0].get("d"))]
        if len(drawn) != len(spans) or not all(near(a[:2], b[:2]) and abs(a[2] - b[2]) <= NEAR
                                               for a, b in zip(drawn, spans)):
            fault(f"{name}: intervals are {drawn}, and not {spans}")


def check_lines(svg, data):
    labels = {label: at for at, label in data["ticks"]}
    of = size_of if data["x_bytes"] else labels.__getitem__ if labels else value_of
    x = Axis("x", ticks_of(svg, "x-ticks", "x", of), data["x_log"])
    font = float(svg.get("font-size"))
    y = Axis("y", [(v, p - 0.35 * font) for v, p in ticks_of(svg, "value-ticks", "y", value_of)], data["y_log"])
    drawn = group(svg, "line")
    if len(drawn) != len(data["lines"]):
        fault(f"{len(drawn)} lines for {len(data['lines'])}")
    for i, (g, line) in enumerate(zip(drawn, data["lines"])):
        check_line(g, line, x, y, f"line {i}", data["shown"] or (-math.inf, math.inf))


def check_rows(svg, data):
    x = Axis("values", ticks_of(svg, "value-ticks", "x", value_of), data["y_log"])
    names = [t for g in group(svg, "names") for t in g.iter("text") if "name" in classes(t)]
    low, high = data["shown"] if data["shown"] else (-math.inf, math.inf)
    if len(names) != len(data["ticks"]):
        fault(f"{len(names)} names for {len(data['ticks'])} rows")
    row = float(names[1].get("y")) - float(names[0].get("y")) if len(names) > 1 else 99
    for i, (g, line) in enumerate(zip(group(svg, "line"), data["lines"])):
        inside = [p for p in line["points"] if p[1] is not None and low <= p[1] <= high]
        if data["from_zero"]:
            marks = [(n[2], (n[1] + n[3]) / 2) for n in (numbers(m.get("d")) for m in part(g, "amount"))]
            inside = [p for p in line["points"] if p[1] is not None]
        else:
            marks = [centre(m) for m in part(g, "mark")]
        if len(marks) != len(inside):
            fault(f"line {i}: {len(marks)} markers for {len(inside)} values")
        for m, p in zip(marks, inside):
            name_y = float(names[int(p[0])].get("y"))
            if abs(m[0] - x.at(p[1])) > NEAR or abs(m[1] - name_y) > row / 2 + 6:
                fault(f"line {i}: row {p[0]} has its marker at {m}, and not at {x.at(p[1]):.1f}")
        bars = [b.get("d") for b in part(g, "bar")]
        spans = [p for p in line["points"] if None not in p[1:4]]
        for d, p in zip(bars, spans):
            n = numbers(re.match(r"M[-\d.,]+H[-\d.]+", d).group(0))
            want = [x.at(min(max(v, low), high)) for v in p[2:4]]
            if abs(n[0] - want[0]) > NEAR or abs(n[2] - want[1]) > NEAR:
                fault(f"line {i}: row {p[0]} has its interval at {n[0]} to {n[2]}, and not at {want}")
            arrows = d.count("l") // 2
            if arrows != (p[2] < low) + (p[3] > high):
                fault(f"line {i}: row {p[0]} has {arrows} arrows")
        if len(bars) != len(spans):
            fault(f"line {i}: {len(bars)} intervals for {len(spans)}")


def check(path):
    svg = ET.parse(path).getroot()
    data = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    if svg.get("role") != "img" or not svg.findtext("title") or not svg.findtext("desc"):
        fault("no title, no description or no role")
    check_texts(svg)
    check_titles(svg, data)
    if data["kind"] == "lines":
        check_lines(svg, data)
    elif data["kind"] == "rows":
        check_rows(svg, data)


def main():
    charts = sorted(pathlib.Path(sys.argv[1]).glob("*.svg"))
    for path in charts:
        before = len(faults)
        check(path)
        if len(faults) > before:
            print(f"{path.name}:", *faults[before:before + 20], sep="\n  ")
    sys.exit(1 if faults or not charts else 0)


main()
