# SPDX-License-Identifier: Apache-2.0
"""What scripts/peer-step makes of its rounds.

judge_step.py FILE MODEL HOSTS GOODPUT ROUNDS

FILE: lines of "round contender case ms MB [buckets whole]", where contender is plumb, ddp or watched (DDP, with the ms at which each of
its buckets was whole), and case MS:BYTES, the stated compute and the size of a bucket. MODEL: a file of configs/models. GOODPUT: bit/s
of each link. Only times of one round are held against each other. Exit: 0 in each case DDP makes the same step within 5 %, with 95 %
confidence, or does so without the delay of its buckets; 1 it does not, or was not measured.
"""
import math
import statistics
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from model_lines import tensors  # noqa: E402

MARGIN = 5
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]  # two-sided 95 %, 1 to 9 degrees of freedom


def buckets(lines, case):
    """When each is whole, in ms of the step, and its bytes."""
    compute, bucket = float(case.split(":")[0]), int(case.split(":")[1])
    per_operation = compute / sum(forth + back for _, forth, back in lines)
    at = per_operation * sum(forth for _, forth, _ in lines)
    held, whole, sizes = 0, [], []
    for i, (numbers, _, back) in reversed(list(enumerate(lines))):
        at += back * per_operation
        held += 4 * numbers
        if held and (held >= bucket or not any(n for n, _, _ in lines[:i])):
            whole.append(at)
            sizes.append(held)
            held = 0
    return whole, sizes


def lasts(whole, sizes, compute, hosts, bytes_per_ms):
    """ms of the step: sums go one after another, each when its bucket is whole."""
    free = 0
    for at, size in zip(whole, sizes):
        free = max(free, at) + 2 * (hosts - 1) / hosts * size / bytes_per_ms
    return max(compute, free)


def interval(ratios):
    logs = [math.log(r) for r in ratios]
    middle, half = statistics.mean(logs), float("inf")
    if len(logs) > 1:
        half = STUDENT[min(len(logs) - 2, 8)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return [100 * (math.exp(x) - 1) if x < 100 else math.inf for x in (middle, middle - half, middle + half)]


def middle(rows, column):
    return statistics.median(float(row[column]) for row in rows.values())


def judge(case, by, rounds, lines, hosts, bytes_per_ms):
    """Prints a case; is DDP the same, or is the reason known that it is not?"""
    compute, bucket = case.split(":")
    whole, sizes = buckets(lines, case)
    ms = lasts(whole, sizes, float(compute), hosts, bytes_per_ms)
    both = [at for at in by["plumb"] if at in by["ddp"] and at in by["watched"]]
    if len(both) < rounds:
        print(f"{compute:>6} ms {bucket:>11} failed in {rounds - len(both)} of {rounds} rounds: short")
        return False
    each = [middle(by[name], 0) for name in ("plumb", "ddp", "watched")]
    print(f"{compute:>6} ms {bucket:>11} {ms:9.1f} {each[0]:11.1f} {each[1]:9.1f} {each[2]:9.1f}      "
          f"{middle(by['plumb'], 1):.1f} {middle(by['ddp'], 1):.1f}")
    made = [int(size) for size in by["ddp"][both[0]][2].split(",")]
    if made != sizes:
        print(f"{'':9} DDP made {len(made)} buckets, {max(made)} bytes at most, the rule {len(sizes)}, {max(sizes)}: short")
        return False
    late = {}
    for at in both:
        seen = [float(value) for value in by["watched"][at][3].split(",")]
        late[at] = lasts(seen, sizes, float(compute), hosts, bytes_per_ms) - ms
    same, words = within([float(by["ddp"][at][0]) / float(by["plumb"][at][0]) for at in both])
    without, words_without = within([(float(by["watched"][at][0]) - late[at]) / float(by["plumb"][at][0]) for at in both])
    verdict = "same" if same else "short"
    if not same and without:
        verdict = "the reason: its host copies gradients into buckets"
    print(f"{'':9} DDP against plumb-step: {words}; without {statistics.median(late.values()):.1f} ms by which its buckets are late: "
          f"{words_without}: {verdict}")
    return same or without


def within(ratios):
    ratio, low, high = interval(ratios)
    return -MARGIN < low and high < MARGIN, f"{ratio:+.1f} % ({low:+.1f} to {high:+.1f})"


def main():
    path, model, hosts, goodput, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
    lines, cases, holds = tensors(model), {}, True
    with open(path, encoding="ascii") as told:
        for words in map(str.split, told):
            at, contender, case = words[:3]
            cases.setdefault(case, {"plumb": {}, "ddp": {}, "watched": {}})[contender][int(at)] = words[3:]
    print(f"{'compute':>9} {'bucket':>11} {'formula':>9} {'plumb-step':>11} {'DDP':>9} {'watched':>9} ms   MB sent: plumb-step, DDP")
    for case, by in cases.items():
        holds = judge(case, by, rounds, lines, hosts, goodput / 8e3) and holds
    if not cases:
        print("nothing was measured: short")
    sys.exit(0 if holds and cases else 1)


main()
