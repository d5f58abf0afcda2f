#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a run folder with all its sentences replaced, for tests that no verdict and no number hangs on one.

usage: rewrite-sentences.py FROM TO keep|plain|traps|bare

keep    sentences as they are
plain   each is of a number of its own, xxxxxxxxxxxxxx qz7z, as long as the next one's
traps   the same with words that a program could trip over: eth0 sent 3 GB qz7z
bare    writes the file FROM to TO without sentences of plain and traps, and without the links from words to their meaning
"""
import csv
import json
import os
import re
import shutil
import sys

PROSE = ("reason", "evidence", "limit_source", "disturbed", "detail", "peer_detail")
TRAPS = ("interval is +/- 90 %, wanted 1 %", "103 % of the limit: the limit is too low", "own: mlx5_0:1 sent 12.4 GB",
         "shared memory", "eth0 received 3 GB", "via NET/IB and P2P/CUMEM", "reference: x", "measured: x", "18 NVLinks",
         "less RoCE v2 framing", "InfiniBand", "any algorithm", "the measured ceiling, 9 GB/s, was exceeded and is raised",
         "too few samples for an interval", "no GPU", "low", "set: clocks", "GID 3", "absent: x", "wrong data",
         "itself stood still for 3 s", "rank 0 is gone: x", "steal 99 %")
MARK = re.compile("(?:x+|" + "|".join(re.escape(trap) for trap in TRAPS) + r") qz\d+z")
# What is left of a sentence where a long line is cut between words, for a summary.
STARTS = sorted({" ".join(trap.split(" ")[:n]) for trap in TRAPS for n in range(1, trap.count(" ") + 2)}, key=len, reverse=True)
CUT = re.compile(r"[; ]*(?:x+|" + "|".join(re.escape(start) for start in STARTS) + r")?;? \.\.\.")
# The first use of a word is a link to what it means. A sentence that holds the word takes the link from the place after it.
TERM = re.compile(r"<a class='d-term'[^>]*>([^<]*)</a>")


class Sentences:
    def __init__(self, how):
        self.how = how
        self.known = {}

    def of(self, text):
        if self.how == "keep" or not text:
            return text
        n = self.known.setdefault(text, len(self.known))
        trap = TRAPS[n % len(TRAPS)]
        return f"{trap if self.how == 'traps' else 'x' * len(trap)} qz{n}z"


def main(source, target, how):
    if how == "bare":
        with open(source, encoding="utf-8") as file, open(target, "w", encoding="utf-8") as out:
            out.write(CUT.sub(" ...", MARK.sub("", TERM.sub(r"\1", file.read()))))
        return
    sentences = Sentences(how)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("report.html", "plots", "log"))
    with open(os.path.join(target, "run.json"), encoding="utf-8") as file:
        meta = json.load(file)
    for finding in meta["machine"].get("findings") or []:
        finding["text"] = sentences.of(finding["text"])
    with open(os.path.join(target, "run.json"), "w", encoding="utf-8") as file:
        json.dump(meta, file)
    for name in sorted(os.listdir(target)):
        path = os.path.join(target, name)
        if not name.endswith(".csv") or name == "plan.csv":
            continue
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row.update({column: sentences.of(row[column]) for column in PROSE if column in row})
        with open(path, "w", encoding="utf-8", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            out.writeheader()
            out.writerows(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
