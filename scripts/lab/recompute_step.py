# SPDX-License-Identifier: Apache-2.0
"""Computes the rows of plumb-step again: from what each rank told of each sample (--raw), and from the options alone.

recompute_step.py BENCH [HOSTS]

Runs jobs of all ways on four ranks of this machine, or on so many hosts of the lab that is up, with timed compute and with real products.
A line for each row that differs, and one for each job. What it shares with plumb-step is docs/step.md. Exit: 0 all agree, 1 some do not.
"""
import csv
import itertools
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile

bench, hosts = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
LAYERS, WIDTH, ROWS, BATCH = 8, 256, 64, 4
WEIGHT, OUT = 4 * WIDTH * WIDTH, 4 * ROWS * WIDTH  # bytes of a layer, and of what it puts out for a sample
TIMED_MS = 24
EXPERTS = 4
near_enough = 1e-6
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # then the folder goes, too
scratch = tempfile.TemporaryDirectory()
folder = scratch.name
bad = rows_seen = 0

JOBS = (
    "--ranks 1,2,4 --overlap backward,none",
    "--ranks 4 --zero 1 --update adam --memory-rate 1",
    "--ranks 4 --zero 2 --micro-batches 2",
    "--ranks 4 --zero 3 --micro-batches 2 --bucket 600K",
    "--ranks 2,4 --tp 2",
    "--ranks 2,4 --pp 2 --micro-batches 4 --schedule gpipe,1f1b",
    "--ranks 4 --ep 2 --update sgd --memory-rate 1",
)


def write_models():
    head = "unit,sample\n{}block,layer,parameters,m,n,k,count,backward,output,kind,split,sum\n"
    line = "{},{}.w,{},{},{},{},1,2,{},{},{},{}\n"
    with open(f"{folder}/dense.csv", "w", encoding="utf-8") as to:
        to.write(head.format(""))
        for i in range(LAYERS):
            to.write(line.format(i, i, WIDTH * WIDTH, ROWS, WIDTH, WIDTH, ROWS * WIDTH, "dense", "row" if i % 2 else "column", ROWS * WIDTH))
    with open(f"{folder}/experts.csv", "w", encoding="utf-8") as to:
        to.write(head.format(f"experts,{EXPERTS}\n"))
        for i in range(LAYERS):
            of = EXPERTS if i % 2 else 1
            to.write(line.format(i // 2, i, of * WIDTH * WIDTH, ROWS, WIDTH, WIDTH, ROWS * WIDTH, "expert" if i % 2 else "dense", "", ""))


def launch(words, ranks):
    """Rows; also the samples and the raw file lie in the folder."""
    own = [bench, "--csv", "--transport", "tcp", "--min-samples", "8", "--budget", "700ms", "--warmup", "200ms",
           "--samples", f"{folder}/samples", "--raw", f"{folder}/raw", *words]
    others = []
    if hosts:
        secret, lab = f"{folder}/secret", [os.path.join(os.path.dirname(__file__), "..", "lab-cluster"), "exec"]
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as to:
            to.write("5a" * 16)
        together = ["--np", str(ranks), "--secret-file", secret, "--wait", "60s"]
        others = [subprocess.Popen([*lab, str(i), bench, *together, "--rank", str(i), "--leader", "node0"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL) for i in range(1, ranks)]
        own = [*lab, "0", *own, *together, "--listen", "0.0.0.0"]
    else:
        own += ["--np", str(ranks)]
    try:
        done = subprocess.run(own, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    finally:
        for other in others:
            other.wait(60)
    return list(csv.DictReader(done.stdout.splitlines()))


def read_raw():
    """Of each job: raw[what][sample][rank]."""
    jobs = {}
    with open(f"{folder}/raw", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            at = jobs.setdefault(int(line["job"]), {}).setdefault(line["what"], {}).setdefault(int(line["sample"]), {})
            at[int(line["rank"])] = float(line["value"])
    return [jobs[job] for job in sorted(jobs)]


def read_samples():
    """Of each step_time the samples, by the number of its row."""
    samples = {}
    with open(f"{folder}/samples", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            samples.setdefault(int(line["row"]), []).append(float(line["value"]))
    return samples


def blocks(values, most=64):
    """Medians of so many blocks, as long as each other, each of an odd number of values but for the last."""
    n = min(most, len(values))
    least = len(values) // n
    least -= 1 - least % 2
    pairs = (len(values) - n * least) // 2
    ends = [(i + 1) * least + 2 * ((i + 1) * pairs // n) for i in range(n - 1)] + [len(values)]
    return [statistics.median(values[begin:end]) for begin, end in zip([0] + ends, ends)]


class Job:
    """Options of a job, from its row, and what its ranks told."""

    def __init__(self, row, raw):
        self.raw = raw
        self.ranks, self.tp, self.pp, self.ep, self.zero, self.micro, self.batch = (
            int(row[name] or 0) for name in ("ranks", "tp", "pp", "ep", "zero", "micro_batches", "batch"))
        self.timed, self.update = row["compute"] == "timed", row["update"]
        self.dp = self.ranks // self.tp // self.pp
        self.nodes, self.experts = int(row["nodes"]), self.ep > 1
        self.same = tuple(row[name] for name in ("model", "overlap", "zero", "tp", "pp", "schedule", "micro_batches", "ep", "update",
                                                 "compute", "batch", "bucket"))
        self.samples = sorted(raw["whole"])

    def of(self, what, sample, rank):
        return self.raw[what][sample][rank]

    def whole(self, sample):
        """ns of a step."""
        return max(self.raw["whole"][sample].values())

    def waits(self, sample, rank):
        return self.of("sums", sample, rank) + self.of("tail", sample, rank)

    def exposed(self, sample):
        ranks = range(self.ranks)
        last = max(self.of("whole", sample, i) for i in ranks)
        return 100 * min(self.waits(sample, i) for i in ranks if self.of("whole", sample, i) >= 0.98 * last) / self.whole(sample)

    def bubble(self, sample):
        left = (1 - self.exposed(sample) / 100) * self.whole(sample)
        waits = [min(self.of("pipe", sample, i) + self.whole(sample) - self.of("whole", sample, i), left) for i in range(self.ranks)]
        return 100 * sum(waits) / self.ranks / self.whole(sample)

    def slowdown(self, sample):
        most = max(self.of("compute", sample, i) for i in range(self.ranks))
        return 100 * (most / self.of("alone", sample, 0) - 1)

    def updated(self, sample):
        return max(self.raw["update"][sample].values())

    # From the options alone.

    def bytes_sent(self):
        """What a rank's algorithms must send, by docs/step.md."""
        n, dense = self.dp, LAYERS * WEIGHT
        ring = 2 * (n - 1) / n
        if self.experts:
            half = dense / 2
            groups = n // self.ep
            tokens = 4 * (LAYERS // 2) * (self.ep - 1) / self.ep * OUT * self.batch
            return ring * half + 2 * (groups - 1) / groups * half * EXPERTS / self.ep + tokens
        times = {0: ring, 1: ring, 2: (self.micro + 1) * (n - 1) / n, 3: 3 * self.micro * (n - 1) / n}[self.zero]
        sums = LAYERS * 2 * (self.tp - 1) / self.tp * OUT * self.batch if self.tp > 1 else 0
        border = OUT * self.batch if self.pp > 1 else 0
        return times * dense / self.tp / self.pp + sums + border

    def parameters(self):
        """Of a rank."""
        if self.experts:
            return LAYERS / 2 * WIDTH * WIDTH * (1 + EXPERTS / self.ep)
        return LAYERS * WIDTH * WIDTH / self.tp / self.pp

    def kept(self):
        """What the rank that needs most keeps: bytes by part."""
        p, n = self.parameters(), self.dp
        state = 8 * p if self.update == "adam" else 0
        return {"parameters": 4 * p / (n if self.zero == 3 else 1), "gradients": 4 * p / (n if self.zero >= 2 else 1),
                "update": state / (n if self.zero else 1)}

    def moved(self):
        return self.parameters() * {"sgd": 12, "adam": 28}[self.update] / (self.dp if self.zero else 1)

    def stated_ms(self):
        """Timed compute of a rank alone."""
        return TIMED_MS / self.tp / self.pp


def check(job, row, wanted, within=near_enough):
    global bad, rows_seen
    rows_seen += 1
    value = float(row["value"])
    if math.isclose(value, wanted, rel_tol=within, abs_tol=1e-7):
        return
    bad += 1
    print(f"BAD   {row['metric']} {row['part']}{row['rank']} of {' '.join(job.same[1:])}, {job.ranks} ranks: {value:.9g}, computed again {wanted:.9g}")


def check_limit(job, row):
    """Of a step whose compute is known, with no link whose rate is."""
    if "link" in row["limit_source"]:
        return
    if job.timed:
        least = job.stated_ms() * 1e6 * (1 + (job.pp - 1) / job.micro) + (job.moved() if job.update != "none" else 0)
    else:
        least = min(min(job.of("alone", s, 0), max(job.raw["compute"][s].values())) for s in job.samples)
    global bad, rows_seen
    rows_seen += 1
    wanted = job.batch * job.dp * 1e9 / least
    if not math.isclose(float(row["limit"]), wanted, rel_tol=1e-6):
        bad += 1
        print(f"BAD   limit of {' '.join(job.same[1:])}: {row['limit']}, computed again {wanted:.9g}")


def check_row(job, row, told):
    metric, ns = row["metric"], [job.whole(s) for s in job.samples]
    rank = int(row["rank"]) if row["rank"] else None

    def of_blocks(values):
        return statistics.median(blocks(values))

    if metric == "step_time":
        check(job, row, statistics.median(ns) / 1e6)
        if len(told) != len(ns) or not all(math.isclose(1e6 * a, b, rel_tol=1e-6) for a, b in zip(told, ns)):
            check(job, dict(row, metric="samples of step_time", value="0"), 1)
    elif metric == "throughput":
        check(job, row, statistics.median([job.batch * job.dp * 1e9 / one for one in ns]))
        check_limit(job, row)
    elif metric == "exposed":
        check(job, row, of_blocks([job.exposed(s) for s in job.samples]))
    elif metric == "bubble":
        check(job, row, of_blocks([job.bubble(s) for s in job.samples]))
    elif metric == "compute_slowdown":
        check(job, row, of_blocks([job.slowdown(s) for s in job.samples]))
    elif metric == "compute_alone":
        update = job.moved() / 1e6 if job.update != "none" else 0
        check(job, row, job.stated_ms() + update if job.timed else of_blocks([job.of("alone", s, 0) for s in job.samples]) / 1e6)
    elif metric == "update_time":
        check(job, row, job.moved() / 1e6 if job.timed else of_blocks([job.updated(s) for s in job.samples]) / 1e6)
    elif metric == "update_moved":
        check(job, row, job.moved() / 1e6)
    elif metric == "memory" and row["part"] in job.kept():
        check(job, row, job.kept()[row["part"]] / 1e6)
    elif metric == "waited":
        check(job, row, of_blocks([(job.waits(s, rank) + job.of("pipe", s, rank)) / 1e6 for s in job.samples]))
    elif metric == "sent":
        sent = next(iter(job.raw["sent"].values()))[rank]
        check(job, row, sent / 1e6 / len(job.samples))
        check(job, row, job.bytes_sent() / 1e6, 0.002)


def check_sum(job):
    """Compute and waits of each rank over its step: no more than the step, and of an idle machine no less."""
    global bad, rows_seen
    shares = [sum(job.of(what, s, i) for what in ("compute", "sums", "pipe", "tail")) / job.of("whole", s, i)
              for s in job.samples for i in range(job.ranks)]
    rows_seen += 1
    if max(shares) > 1:
        bad += 1
        print(f"BAD   compute and waits of {' '.join(job.same[1:])}, {job.ranks} ranks: {max(shares):.3f} of the step")
    return max(shares), min(shares)


def run(options, compute):
    global bad
    words = [*options.split(), "--batch", str(BATCH), "--model", f"{folder}/{'experts' if '--ep' in options else 'dense'}.csv",
             "--compute", compute, *(["--compute-time", f"{TIMED_MS}ms"] if compute == "timed" else [])]
    if compute == "product" and "--memory-rate" in words:
        at = words.index("--memory-rate")
        del words[at:at + 2]
    rows = launch(words, hosts or 4)
    failed = [row for row in rows if row["status"] in ("wrong", "failed", "skipped") or not row["value"]]
    firsts = [i for i, row in enumerate(rows) if row["metric"] == "step_time"]
    raws, samples = read_raw(), read_samples()
    if failed or not firsts or len(raws) != len(firsts):
        bad += 1
        print(f"BAD   {compute} {options}: {len(failed)} rows have no value, {len(firsts)} jobs, {len(raws)} told: {failed[0]['reason'] if failed else ''}")
        return
    before = bad
    for begin, end, raw in zip(firsts, firsts[1:] + [len(rows)], raws):
        job = Job(rows[begin], raw)
        for row in rows[begin:end]:
            check_row(job, row, samples[begin])
        over, left = check_sum(job)
        print(f"{'good' if bad == before else 'BAD '}  {compute:7} {options} ({job.ranks} ranks): {end - begin} rows of {len(job.samples)} samples; compute "
              f"and waits are {over:.3f} of a rank's step at most, and {left:.3f} at least")
        before = bad


def main():
    write_models()
    for compute, options in itertools.product(("timed", "product"), JOBS):
        run(options, compute)
    print(f"{rows_seen} numbers computed again, {bad} differ")
    return 1 if bad else 0


sys.exit(main())
