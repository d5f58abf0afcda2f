# SPDX-License-Identifier: Apache-2.0
"""What scripts/peer-allreduce makes of its rounds.

judge_allreduce.py FILE HOSTS BYTES GOODPUT ROUNDS CONTENDER...

FILE: lines of "round contender us"; a round in which a contender failed has no line of it. GOODPUT: bit/s of each link.
Only times of one round are held against each other. Exit: 0 all that is judged holds, 1 it does not, or a contender is missing in a round.
"""
import statistics
import sys

path, n, size, goodput = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]) / 8
rounds, contenders = int(sys.argv[5]), sys.argv[6:]
times = {name: {} for name in contenders}
with open(path, encoding="ascii") as lines:
    for line in lines:
        at, name, us = line.split()
        times[name][int(at)] = float(us)
moved = 2 * (n - 1) / n * size
holds = True


def short(text):
    global holds
    holds = False
    print(f"{text} short")


def middle(name):
    return statistics.median(times[name].values()) if times.get(name) else float("inf")


def ratios(a, b):
    both = sorted(times.get(a, {}).keys() & times.get(b, {}).keys())
    return [times[a][at] / times[b][at] for at in both]


def told(what, a, b):
    each = ratios(a, b)
    if each:
        print(f"{what}: {statistics.median(each):.4f} ({min(each):.4f} to {max(each):.4f})")


def judge(what, a, b, good):
    each = ratios(a, b)
    if not each:
        short(f"{what}: not measured in one round:")
        return
    text = f"{what}: {statistics.median(each):.4f} ({min(each):.4f} to {max(each):.4f})"
    if good(statistics.median(each)):
        print(f"{text} good")
    else:
        short(text)


def within_2_percent(ratio):
    return 0.98 <= ratio <= 1.02


print(f"{'':22}{'time us':>12}{'spread':>9}{'busbw MB/s':>12}{'of bound':>10}")
for name in contenders:
    us = list(times[name].values())
    if us:
        mid = middle(name)
        print(f"{name:22}{mid:12.1f}{100 * (max(us) - min(us)) / mid:8.1f}%{moved / mid:12.3f}{100 * moved / mid * 1e6 / goodput:9.2f}%")
for name in contenders:
    if len(times[name]) < rounds:
        short(f"{name} failed in {rounds - len(times[name])} of {rounds} rounds:")

best = min((name for name in contenders if name.startswith("openmpi")), key=middle, default="openmpi")
judge(f"our ring's rate to the best of Open MPI ({best})", best, "ring", lambda ratio: ratio >= 1)
judge("the mpi backend's time to the bare loop's, ring", "mpi-backend-ring", "openmpi-ring", within_2_percent)
told("the same with Open MPI's own choice, which may be on either of its two levels", "mpi-backend", "openmpi")
if "imb-ring" in contenders:
    judge("the mpi backend's time to IMB's, ring", "mpi-backend-ring", "imb-ring", within_2_percent)
else:
    print("IMB is not here: the mpi backend is not held against it")
share = moved / middle("ring") * 1e6 / goodput
text = f"our ring of the bound: {100 * share:.2f} %"
if share >= 0.98:
    print(f"{text} good")
else:
    short(text)
sys.exit(not holds)
