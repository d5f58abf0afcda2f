# SPDX-License-Identifier: Apache-2.0
"""What scripts/check-cluster makes of its two runs; see there.

judge_cluster.py ALLREDUCE.csv NET.csv REPORT HOSTS SLOW

ALLREDUCE.csv: rows of the healthy lab; NET.csv and REPORT, what plumb run said at its end: of the lab in which host SLOW has half the rate.
The model is made here from the rows, t = 2 (n-1) a + 2 (n-1)/n S b as in docs/scaling.md, not taken from the report.
"""
import csv
import re
import statistics
import sys

allreduce, net, report, hosts, slow = *sys.argv[1:4], int(sys.argv[4]), sys.argv[5]
holds = True


def judge(good, text):
    global holds
    holds = holds and good
    print(f"{'good' if good else 'BAD '}  {text}")


def rows(path, metric):
    """Good ones, and how many are not."""
    with open(path, newline="", encoding="utf-8") as lines:
        found = [row for row in csv.DictReader(lines) if row["metric"] == metric]
    good = [row for row in found if row["status"] in ("ok", "noisy") and row["value"]]
    judge(bool(found) and len(good) == len(found), f"{len(good)} of {len(found)} rows of {metric} are measured")
    return good


def times():
    """us by (ranks, bytes): the median of the launches."""
    found = {}
    for row in rows(allreduce, "time"):
        unit = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[row["unit"]]
        found.setdefault((int(row["ranks"]), int(row["vector_bytes"])), []).append(float(row["value"]) * unit)
    return {key: statistics.median(values) for key, values in found.items()}


def terms(n, size):
    return 2 * (n - 1), 2 * (n - 1) / n * size


def fit(points):
    """a and b of the least squares of relative errors, neither below 0."""
    xx = xy = yy = x1 = y1 = 0.0
    for (n, size), us in points.items():
        x, y = (term / us for term in terms(n, size))
        xx, xy, yy, x1, y1 = xx + x * x, xy + x * y, yy + y * y, x1 + x, y1 + y
    det = xx * yy - xy * xy
    a, b = (x1 * yy - y1 * xy) / det, (y1 * xx - x1 * xy) / det
    if a < 0:
        return 0.0, y1 / yy
    if b < 0:
        return x1 / xx, 0.0
    return a, b


measured = times()
fewer = {key: us for key, us in measured.items() if 1 < key[0] < hosts}
sizes = sorted({size for n, size in measured if n == hosts and size >= 1 << 20})
judge(len(sizes) >= 3, f"{len(sizes)} sizes of 1 MiB or more over {hosts} hosts")
ranks = sorted({n for n, _ in fewer})
judge(len(ranks) > 1, f"the model is fitted to {len(fewer)} points of {' and '.join(map(str, ranks))} ranks")
if len(ranks) > 1:
    latency, per_byte = fit(fewer)
    for bytes_ in sizes:
        hops, moved = terms(hosts, bytes_)
        ratio = (hops * latency + moved * per_byte) / measured[hosts, bytes_]
        judge(0.9 <= ratio <= 1.1, f"{bytes_ >> 20} MiB: the model predicts {ratio:.3f} of what {hosts} ranks took, 0.9 to 1.1 allowed")

links = {}
for row in rows(net, "bandwidth"):
    links[row["from"], row["to"]] = float(row["value"])
names = sorted({host for pair in links for host in pair})
judge(len(names) == hosts and slow in names, f"links between {len(names)} hosts, {slow} among them")
for host in names:
    own = [gbps for pair, gbps in links.items() if host in pair]
    others = [gbps for pair, gbps in links.items() if host not in pair]
    if not others or (host != slow and 0.9 <= statistics.median(own) / statistics.median(others) <= 1.1):
        continue
    ratio = statistics.median(own) / statistics.median(others)
    judge(host == slow and 0.45 <= ratio <= 0.55, f"{host}: its {len(own)} links carry {ratio:.2f} of the others'")
with open(report, encoding="utf-8") as lines:
    named = sorted({name for line in lines if line.startswith("slow:") for name in re.findall(r"(\S+): its \d+ links carry", line)})
judge(named == [slow], f"the report names {', '.join(named) or 'no host'} as slow; {slow} is")
sys.exit(not holds)
