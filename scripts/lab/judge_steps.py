# SPDX-License-Identifier: Apache-2.0
"""What scripts/check-forecast makes of measured steps and their parts; see there.

judge_steps.py PLUMB FOLDER BITS parts|ways

FOLDER has the runs parts (operations between ranks) and ways (steps). A link carries BITS a second. parts: 1 if an operation took over
3 % longer than its bytes take over a link. ways: 1 if a step is not held, is over 10 % off its forecast, or outside of its interval.
What a token bucket holds after a pause goes over a link at once: a step with a sum after each of 8 pauses is up to 1.2 % shorter.
"""
import csv
import json
import os
import subprocess
import sys

plumb, folder, bits, what = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
ALLOWED, DISTURBED, BUCKETS = 0.10, 1.03, 0.012
WAYS = 26


def share(op, n):
    """Of a vector's bytes, what a link carries one way at least."""
    return {"allreduce": 2 * (n - 1) / n, "send-receive": 1}.get(op, (n - 1) / n)


def parts():
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1}
    with open(os.path.join(folder, "parts", "allreduce.csv"), newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["metric"] == "time" and row["value"]]
    worst = 0
    for row in rows:
        ranks, size = int(row["ranks"]), int(row["size"])
        ratio = float(row["value"]) * unit[row["unit"]] / (8 * share(row["op"], ranks) * size / bits)
        worst = max(worst, ratio)
        if ratio > DISTURBED:
            print(f"disturbed: {row['op']} of {size} bytes on {ranks} hosts took {ratio:.3f} of what its bytes take")
    print(f"{len(rows)} operations, each at most {worst:.3f} of what its bytes take over a link")
    return 0 if worst <= DISTURBED and len(rows) == 24 else 1


def name(check):
    words = [f"{check['ranks']:.0f} hosts"]
    words += [f"{key} {check[key]:.0f}" for key, least in (("zero", 0), ("tp", 1), ("pp", 1), ("micro", 1)) if check[key] > least]
    return ", ".join(words + ([] if check["overlap"] else ["no overlap"]))


def ways():
    done = subprocess.run([plumb, "forecast", *(os.path.join(folder, run) for run in ("parts", "ways")), "--model", os.path.join(folder, "split.csv"),
                           "--compute", "240ms", "--update", "none", "--nodes", "4", "--json"], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        return 2
    found = json.loads(done.stdout)
    bad = len(found["checks"]) != WAYS
    for check in found["checks"]:
        measured, low, s, high = (check[key] for key in ("measured_s", "step_low_s", "step_s", "step_high_s"))
        good = abs(s / measured - 1) <= ALLOWED and (1 - BUCKETS) * low <= measured <= high
        bad = bad or not good
        print(f"{'good' if good else 'BAD '}  {name(check):38} {1e3 * measured:7.1f} ms measured, {measured / s:.3f} of the forecast, "
              f"whose interval is {low / s:.3f} to {high / s:.3f} of it")
    for check in found["checks_left_out"]:
        bad = True
        print(f"BAD   {name(check):38} left out: {check.get('refused', check['left_out'])}")
    print(f"{len(found['checks'])} of {WAYS} steps have a forecast")
    return 1 if bad else 0


sys.exit(parts() if what == "parts" else ways())
