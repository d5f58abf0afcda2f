#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a folder of nightly runs of three cases, with steps where they are asked for: for tests of plumb history.

usage: make-history.py DIR [--runs N] [--noise 0.01] [--seed N] [--host NAME]
                       [--step WORD@RUN=FACTOR]... [--slip WORD@FIRST..LAST=FACTOR]... [--once WORD@RUN=FACTOR]...
                       [--gap WORD@FIRST..LAST]...
                       [--fact PLACE@RUN=TEXT]... [--column NAME@RUN=TEXT]...

WORD picks the rows that hold it: triad, latency or onednn. A step holds from that run on (the first is 0), a slip is one in each
of these runs, `once` holds in that run alone; a gap leaves the rows out. From a step on the program is of another commit. A fact of the machine, such as
host.kernel, and a column of the rows are another from that run on.
"""
import argparse
import csv
import datetime
import json
import math
import os
import random
import subprocess
import sys
import tempfile

TOOLS = os.path.dirname(os.path.abspath(__file__))
SCALED = ["value", "ci_low", "ci_high", "min", "p05", "p25", "p50", "p75", "p95", "p99", "p999", "max", "mean", "stddev"]
BENCHES = ["memory.csv", "gemm.csv"]


def change(text):
    word, rest = text.split("@")
    at, factor = rest.split("=")
    return word, int(at), float(factor)


def slip(text):
    word, rest = text.split("@")
    runs, factor = rest.split("=")
    first, last = runs.split("..")
    return word, int(first), int(last), float(factor)


def gap(text):
    word, rest = text.split("@")
    first, last = rest.split("..")
    return word, int(first), int(last)


def fact(text):
    place, rest = text.split("@")
    at, value = rest.split("=", 1)
    return place, int(at), value


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--runs", type=int, default=60)
    p.add_argument("--noise", type=float, default=0.01)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--host", default="loaner-7")
    p.add_argument("--step", type=change, action="append", default=[])
    p.add_argument("--slip", type=slip, action="append", default=[])
    p.add_argument("--once", type=change, action="append", default=[])
    p.add_argument("--gap", type=gap, action="append", default=[])
    p.add_argument("--fact", type=fact, action="append", default=[])
    p.add_argument("--column", type=fact, action="append", default=[])
    return p.parse_args()


def factor(args, rng, words, night):
    f = math.exp(args.noise * rng.gauss(0, 1))
    for word, at, by in args.step:
        f *= by if word in words and night >= at else 1
    for word, first, last, by in args.slip:
        f *= by ** max(0, min(night, last) - first + 1) if word in words else 1
    for word, at, by in args.once:
        f *= by if word in words and night == at else 1
    return f


def write_rows(args, rng, base, path, name, night, started):
    rows = []
    for row in base:
        words = list(row.values())
        f = factor(args, rng, words, night)
        if any(word in words and first <= night <= last for word, first, last in args.gap):
            continue
        new = {k: repr(float(v) * f) if k in SCALED and v else v for k, v in row.items()}
        new.update({name: value for name, at, value in args.column if name in new and night >= at})
        rows.append({**new, "run": name, "host": args.host, "time_utc": started})
    with open(path, "w", newline="") as out:
        w = csv.DictWriter(out, base[0].keys(), lineterminator="\n")
        w.writeheader()
        w.writerows(rows)
    return {row["case"] for row in rows}


def write_run(args, rng, base, tables, meta, night):
    start = datetime.datetime(2026, 1, 1, 2) + datetime.timedelta(days=night)
    name = start.strftime("nightly-%Y%m%d-%H%M%S")
    folder = os.path.join(args.dir, name)
    os.makedirs(folder)
    steps = sum(night >= at for _, at, _ in args.step)
    meta = {**meta, "run": name, "suite": "nightly", "started_utc": start.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "finished_utc": start.strftime("%Y-%m-%dT%H:30:00Z"), "commit": "1234ab%d" % steps}
    meta["machine"] = {**meta["machine"], "host": {**meta["machine"]["host"], "hostname": args.host}}
    for place, at, value in args.fact:
        if night >= at:
            inner = meta["machine"] = json.loads(json.dumps(meta["machine"]))
            *path, last = place.split(".")
            for key in path:
                inner = inner[key]
            inner[last] = value
    with open(os.path.join(folder, "run.json"), "w") as out:
        json.dump(meta, out)
    there = set()
    for bench, rows in tables.items():
        there |= write_rows(args, rng, rows, os.path.join(folder, bench), name, night, meta["started_utc"])
    with open(os.path.join(base, "plan.csv")) as plan, open(os.path.join(folder, "plan.csv"), "w") as out:
        for i, line in enumerate(plan):
            if i == 0 or line.split(",")[3] in there:
                out.write(line)


def main():
    args = arguments()
    rng = random.Random(args.seed)
    scratch = tempfile.TemporaryDirectory()
    base = scratch.name
    subprocess.run([sys.executable, os.path.join(TOOLS, "make-run.py"), os.path.join(base, "r"), "--rows", "3"], check=True)
    base_run = os.path.join(base, "r")
    with open(os.path.join(base_run, "run.json")) as f:
        meta = json.load(f)
    tables = {}
    for bench in BENCHES:
        with open(os.path.join(base_run, bench), newline="") as f:
            tables[bench] = list(csv.DictReader(f))
    for night in range(args.runs):
        write_run(args, rng, base_run, tables, meta, night)


if __name__ == "__main__":
    main()
