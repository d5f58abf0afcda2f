#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at a page of plumb history with a headless Chromium.

usage: history_page.py PAGE.html CHECK...
Each CHECK is a function below, or one of browse.py; the first that does not hold ends it with exit code 1.
"""
import re
import sys

import browse


def ticks_do_not_touch(browser, path):
    """The dates stand apart by a character at least, and no label leaves its picture."""
    for width in (360, 500, 700, 1200):
        browser.open(path, width)
        plots = browser.eval("""[...document.querySelectorAll('figure svg[role]')]
            .filter((svg) => svg.getBoundingClientRect().width).map((svg) => {
                const box = (e) => { const b = e.getBoundingClientRect();
                                     return {left: b.left, right: b.right, top: b.top, height: b.height,
                                             text: e.textContent.trim()}; };
                return {svg: box(svg), texts: [...svg.querySelectorAll('text')].map(box)};
            })""")
        browse.require(plots, f"there are plots at {width}")
        for plot in plots:
            date = re.compile(r"[0-9]{2,4}-[0-9]{2}(-[0-9]{2})?")
            dates = [t for t in plot["texts"] if date.fullmatch(t["text"])]
            dates.sort(key=lambda t: t["left"])
            browse.require(len(dates) >= 2, f"{width}: dates are told: {plot['texts']}")
            for a, b in zip(dates, dates[1:]):
                gap = (a["right"] - a["left"]) / len(a["text"])
                browse.require(a["right"] + gap <= b["left"], f"{width}: they stand apart: {a} {b}")
            for text in plot["texts"]:
                left, right = plot["svg"]["left"] - 1, plot["svg"]["right"] + 1
                browse.require(not text["text"] or left <= text["left"] and text["right"] <= right,
                               f"{width}: it is not cut off: {text}")


def changes_are_whole(browser, path):
    for width in (360, 500, 740, 840, 1000, 1200):
        browser.open(path, width)
        hidden = browser.eval("""(() => {
            const lists = [...document.querySelectorAll('ul.d-items')];
            return Math.max(...lists.map((list) => list.getBoundingClientRect().right))
                - document.documentElement.clientWidth;
        })()""")
        browse.require(hidden <= 0, f"{width}: {hidden} pixels of the changes are out of sight")


def main():
    browser = browse.Browser()
    try:
        for check in sys.argv[2:]:
            (globals().get(check) or getattr(browse, check))(browser, sys.argv[1])
    finally:
        browser.close()


if __name__ == "__main__":
    main()
