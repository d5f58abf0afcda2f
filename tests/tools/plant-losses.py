#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants losses into nights of recorded noise, and counts how many of them plumb check finds.

A night is a suite of cases. The noise of each is resampled: its launches vary as those of a recorded
case, and nights differ by as much again. plumb check says which loss it
detects in each case. That loss, and half of it, are planted into a few cases of the same night, and
the night is checked again. Nothing here computes a statistic of the program's.

usage: plant-losses.py PLUMB RECORDED FOLDER [--nights N] [--launches N] [--worlds N] [--checks N] [--quiet X] [--forecast]
                       [--seed N]
prints JSON: planted, found and found_half; nights that alarmed without a loss; the figures of the
first lines; and whether each is the median of its cases
"""
import argparse
import csv
import glob
import json
import math
import os
import random
import shutil
import statistics
import subprocess

from run_folder import write_meta, write_plan, write_rows

CASES, PLANTED = 40, 3


def recorded(folder):
    """Residuals of the logarithms of launches, a list a case."""
    values = {}
    for path in glob.glob(os.path.join(folder, "*.csv")):
        if os.path.basename(path) == "plan.csv":
            continue
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["status"] in ("ok", "noisy") and float(row["value"] or 0) > 0:
                    values.setdefault((row["case"], row["metric"]), []).append(math.log(float(row["value"])))
    found = []
    for of in values.values():
        if len(of) >= 3:
            wide = math.sqrt(len(of) / (len(of) - 1))
            mean = statistics.fmean(of)
            if any(x != mean for x in of):
                found.append([wide * (x - mean) for x in of])
    return found


class World:
    """A machine: which recorded case each of its cases is like."""

    def __init__(self, noise, seed, launches, quiet):
        self.random = random.Random(seed)
        self.launches = launches
        self.like = [[x * quiet for x in self.random.choice(noise)] for _ in range(CASES)]

    def night(self):
        values = []
        for like in self.like:
            shift = self.random.choice(like)
            values.append([100 * math.exp(shift + self.random.choice(like)) for _ in range(self.launches)])
        return values


def write(folder, columns, number, values, factors):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    said = {"metric": "bandwidth", "unit": "GB/s", "confidence": .95, "samples": 99, "stop": "converged",
            "origin": "measured", "status": "ok", "host": "node7", "time_utc": "2026-01-02T03:04:05Z",
            "run": os.path.basename(folder)}
    rows, plan = [], []
    for repeat in range(1, len(values[0]) + 1):
        for case, of in enumerate(values, 1):
            value = repr(of[repeat - 1] * factors.get(case - 1, 1))
            rows.append({"op": "triad", "size": 4096 * case, "value": value, "ci_low": value,
                         "ci_high": value, "case": case, "repeat": repeat, **said})
            plan.append(("done", 1, case, repeat, "memory", f"--op triad --size {4096 * case}"))
    write_rows(folder, "memory", ["op", "size"] + columns, rows)
    write_plan(folder, plan)
    day = f"2026-01-{1 + number // 24:02}T{number % 24:02}"
    write_meta(folder, {"host": {"hostname": "node7"}, "cpu": {"threads": 8}}, ["memory"], seed=number, started_utc=f"{day}:00:00Z",
               finished_utc=f"{day}:30:00Z", harness_cost={"benchmarks_ms": 60000.0 * len(values[0])})


def check(plumb, folder, baseline):
    done = subprocess.run([plumb, "check", folder, "--baseline", baseline, "--json", "-"],
                          stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def size_of(case):
    return int(case["key"].partition("size=")[2].partition("|")[0]) // 4096 - 1


def one_night(options, world, number, counts):
    base = os.path.join(options.folder, "base")
    tonight = os.path.join(options.folder, "tonight")
    values = world.night()
    write(tonight, options.columns, number, values, {})
    found = check(options.plumb, tonight, base)
    counts["alarms"] += found["counts"]["regressed"] > 0
    losses = {size_of(case): case["detectable_slowdown"] for case in found["cases"]}
    assert len(losses) == CASES
    counts["today"].append(found["detectable"]["slowdown"])
    counts["is_median"] &= abs(statistics.median(losses.values()) - found["detectable"]["slowdown"]) < 1e-9
    counts["forecast"].append(found["detectable"])
    hit = [case for case in world.random.sample(range(CASES), PLANTED) if losses[case]]
    for part, name in ((1, "found"), (.5, "found_half")):
        write(tonight, options.columns, number, values, {case: 1 - part * losses[case] for case in hit})
        states = {size_of(case): case["state"] for case in check(options.plumb, tonight, base)["cases"]}
        counts[name] += sum(states[case] == "regressed" for case in hit)
    counts["planted"] += len(hit)


def forecast(options, noise):
    """The loss that a few nights forecast for more of them, against the one that these then give."""
    shares = []
    for w in range(options.worlds):
        world = World(noise, options.seed * 1000 + w, options.launches, options.quiet)
        base, tonight = (os.path.join(options.folder, name) for name in ("base", "tonight"))
        shutil.rmtree(base, ignore_errors=True)
        write(tonight, options.columns, 500, world.night(), {})
        said = None
        for night in range(options.nights + 30):
            write(os.path.join(base, f"n{night:02}"), options.columns, night, world.night(), {})
            if night + 1 == options.nights:
                said = check(options.plumb, tonight, base)["detectable"]
            if said and said["nights"] and night + 1 == options.nights + said["nights"]:
                shares.append(check(options.plumb, tonight, base)["detectable"]["slowdown"] / said["then"])
    return {"forecasts": len(shares), "true_over_forecast": statistics.median(shares)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plumb")
    parser.add_argument("recorded")
    parser.add_argument("folder")
    parser.add_argument("--nights", type=int, default=8)
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--worlds", type=int, default=10)
    parser.add_argument("--checks", type=int, default=8, help="nights that are checked, of each world")
    parser.add_argument("--quiet", type=float, default=1, help="the noise times this")
    parser.add_argument("--forecast", action="store_true", help="only test what is said of more nights")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    noise = recorded(options.recorded)
    with open(os.path.join(options.recorded, "memory.csv"), encoding="utf-8") as file:
        header = file.readline().strip().split(",")
    options.columns = header[header.index("metric"):]
    if options.forecast:
        print(json.dumps(forecast(options, noise)))
        return
    counts = {"planted": 0, "found": 0, "found_half": 0, "alarms": 0, "today": [], "is_median": True, "forecast": []}
    for w in range(options.worlds):
        world = World(noise, options.seed * 1000 + w, options.launches, options.quiet)
        shutil.rmtree(os.path.join(options.folder, "base"), ignore_errors=True)
        for night in range(options.nights):
            write(os.path.join(options.folder, "base", f"n{night:02}"), options.columns, night, world.night(), {})
        for i in range(options.checks):
            one_night(options, world, options.nights + i, counts)
    counts["cases_recorded"] = len(noise)
    counts["today"] = statistics.median(counts["today"])
    for name in ("nights", "repeat", "then"):
        known = [f[name] for f in counts["forecast"] if f[name]]
        counts[name] = statistics.median(known) if known else None
    del counts["forecast"]
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
