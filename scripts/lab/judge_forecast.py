# SPDX-License-Identifier: Apache-2.0
"""What scripts/check-forecast makes of the runs of its lab; see there.

judge_forecast.py PLUMB FOLDER HOSTS

FOLDER has the runs: fit (sums on 2 and 4 hosts), held (sums on 8 and on all), steps (on these), core (sums on 8 behind a core of half
the rate) and, of more than 8 hosts, core-all.
"""
import csv
import json
import os
import subprocess
import sys

plumb, folder, hosts = sys.argv[1], sys.argv[2], int(sys.argv[3])
STEP_ALLOWED = 0.10
SIZE = 4 << 20
holds = True


def judge(good, text):
    global holds
    holds = holds and good
    print(f"{'good' if good else 'BAD '}  {text}")


def measured(run):
    """Seconds of a sum of 4 MiB, by ranks."""
    with open(os.path.join(folder, run, "allreduce.csv"), newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["metric"] == "time" and row["size"] == str(SIZE) and row["value"]]
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1}
    return {int(row["ranks"]): float(row["value"]) * unit[row["unit"]] for row in rows if row["status"] in ("ok", "noisy")}


def forecast(runs, model, *words):
    done = subprocess.run([plumb, "forecast", *(os.path.join(folder, run) for run in runs), "--model", os.path.join(folder, model), "--update", "none",
                           "--over", "backend=ring transport=tcp", "--json", *words], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        sys.exit(2)
    return json.loads(done.stdout)


def sums(runs, ranks, *words):
    """Points of a step that is one sum of 4 MiB, by ranks."""
    at = ",".join(map(str, sorted(ranks)))
    found = forecast(runs, "one.csv", "--compute", "1ns", "--no-overlap", "--nodes", at, *words)
    return {int(point["ranks"]): point for point in found["points"]}


def inside(point, s):
    return "refused" in point or point["step_low_s"] <= s <= point["step_high_s"]


def told(point, s):
    if "refused" in point:
        return f"refused: {point['refused']}"
    low, high = (point[f"step_{end}_s"] / point["step_s"] for end in ("low", "high"))
    return f"{1e3 * s:.1f} ms, forecast {point['step_s'] / s:.3f} of it, its interval {low:.2f} to {high:.2f} of the forecast"


def main():
    held, core = measured("held"), measured("core")
    if hosts > 8:
        core.update(measured("core-all"))
    judge(set(held) == {8, hosts} and set(core) == {8, hosts}, f"sums of 4 MiB on {sorted(held)} hosts, and on {sorted(core)} behind the core")
    for words in ((), ("--core", "full")):
        for ranks, point in sums(("fit",), held, *words).items():
            judge("refused" not in point and inside(point, held[ranks]),
                  f"from 2 and 4 hosts{', core known' if words else ''}: a sum on {ranks}: {told(point, held[ranks])}")
    checks = forecast(("fit", "steps"), "blocks.csv", "--compute", "1s", "--nodes", "8")["checks"]
    judge(len(checks) == 2 * len(held), f"{len(checks)} measured steps are held against forecasts")
    for check in checks:
        ratio = check["step_s"] / check["measured_s"]
        judge(abs(ratio - 1) <= STEP_ALLOWED and inside(check, check["measured_s"]),
              f"a step on {check['ranks']:.0f} hosts: {told(check, check['measured_s'])}")
    for ranks, point in sums(("fit",), core).items():
        judge(inside(point, core[ranks]), f"the core carries half of a link: a sum on {ranks}: {told(point, core[ranks])}")
    # those of 8 hosts behind the core are in the fit, too
    for ranks, point in sums(("fit", "core"), [16]).items():
        judge("refused" in point or point["step_high_s"] >= 2 * point["step_s"],
              f"8 hosts behind the core measured, too: a sum on {ranks}: " +
              (f"refused: {point['refused']}" if "refused" in point else "a forecast"))
    return 0 if holds else 1


sys.exit(main())
