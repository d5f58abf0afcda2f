# SPDX-License-Identifier: Apache-2.0
"""How scripts/peer-gpu runs programs: one after another, within a time; what they print is kept."""
import contextlib
import csv
import io
import math
import os
import re
import signal
import subprocess
import time

HANGS_S = 120  # a program that has not ended by then hangs
GRACE_S = 3  # from the asking to the killing
# Of figures.csv. ours_by, theirs_by: the libraries and programs of each side, with their versions. verdict: reached, missed, inconclusive, shown (nothing is asked), not-compared, wrong-data.
FIGURES = ["comparison", "verdict", "asked", "ratio", "low", "high", "pairs", "ours", "theirs", "unit", "peer", "origin", "reason", "ours_by", "theirs_by"]
ROUNDED = 0.005  # 1.00 is asked for with two decimals
END_S = 8  # of --limit, to end what runs and say what there is


class CannotRun(Exception):
    pass


class OutOfTime(CannotRun):
    pass


class Wrong(Exception):
    """A side ran, and its data are not what they must be."""


def end_of(status, out, err):
    """How a program ended, with the line that says why, or its last."""
    lines = [line.strip() for line in (out + "\n" + err).splitlines() if line.strip(" -")]
    telling = [line for line in lines if re.search(r"exited on signal|Test .*failure .*'|[Ee]rror:|cannot open", line)]
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
    return f"{how}: {(telling or lines[-1:] or ['it said nothing'])[-1]}"


class Runs:
    def __init__(self, out, limit):
        self.out, self.limit, self.n, self.signal = out, limit, 0, ""
        self.until = time.monotonic() + limit - END_S if limit else math.inf
        if out:
            os.makedirs(os.path.join(out, "log"), exist_ok=True)
            self.n = len(os.listdir(os.path.join(out, "log")))  # an earlier call's stay

    def stop(self, number):
        """For a signal's handler: what runs is ended, nothing more is started, and what there is can be told."""
        self.until, self.signal = -math.inf, signal.Signals(number).name

    def has_time(self, seconds):
        return self.until - time.monotonic() > seconds

    def no_time(self):
        return f"ended by {self.signal}" if self.signal else f"no time left (--limit {self.limit:g})"

    def keep(self, command, said, how):
        if not self.out:
            return
        self.n += 1
        names = [os.path.basename(word) for word in command if "=" not in word and " " not in word and not word.startswith("-")]
        name = next((name for name in names if name not in ("mpirun", "sh") and not name.isdigit()), names[0])
        with open(os.path.join(self.out, "log", f"{self.n:03}-{name}.txt"), "w", encoding="utf-8") as file:
            file.write(f"$ {' '.join(command)}\n{said[0]}\n== stderr\n{said[1]}\n== {how}\n")

    def pair(self, *cells):
        self.line("pairs.csv", ["comparison", "pair", "first", "ours", "theirs", "unit"], cells)

    def line(self, name, columns, cells):
        """As soon as it is known: whatever is killed later leaves it."""
        if not self.out:
            return
        path = os.path.join(self.out, name)
        new = not os.path.exists(path)
        with open(path, "a", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            if new:
                lines.writerow(columns)
            lines.writerow(cells)

    def figure(self, *cells):
        """A result, typed: FIGURES has its columns."""
        self.line("figures.csv", FIGURES, cells)

    def wait_for(self, process, seconds):
        """What it said, and whether it had to be ended: asked to first, since a launcher ends its ranks then. What holds on to its
        output even after that is left behind."""
        ends, signals = time.monotonic() + seconds, [signal.SIGTERM, signal.SIGKILL]
        while True:
            try:
                return process.communicate(timeout=0.5), len(signals) < 2
            except subprocess.TimeoutExpired as error:
                if not (self.signal and len(signals) == 2 or time.monotonic() > ends):
                    continue
                if not signals:
                    return tuple((part or b"").decode(errors="replace") for part in (error.output, error.stderr)), True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signals.pop(0))
            ends = time.monotonic() + GRACE_S

    def run(self, command, env=None, hangs_s=HANGS_S):
        """Exit status, stdout, stderr. A group of its own, so that all that it starts ends with it."""
        if not self.has_time(0):
            raise OutOfTime(self.no_time())
        least = min(hangs_s, self.until - time.monotonic())
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, errors="replace", env=env, start_new_session=True)
        except OSError as error:
            raise CannotRun(f"'{command[0]}' does not start: {error.strerror}") from None
        said, ended = self.wait_for(process, least)
        self.keep(command, said, "ended from here" if ended else f"exit {process.returncode}")
        if self.signal or (ended and least < hangs_s):
            raise OutOfTime(self.no_time())
        if ended:
            raise CannotRun(f"'{' '.join(command)}' has not ended after {hangs_s} s")
        return process.returncode, said[0], said[1]

    def output_of(self, command, env=None, hangs_s=HANGS_S):
        status, out, err = self.run(command, env, hangs_s)
        if status:
            raise CannotRun(f"'{' '.join(command)}' {end_of(status, out, err)}")
        return out


def rows_of(args, bench, seconds, metric, *options):
    """The rows of one of our benchmarks, of one metric unless it is empty, each with a number; and the command."""
    command = [os.path.join(args.bin, "plumb-" + bench), *options, "--csv", "--width", "0%",
               "--warmup", f"{seconds / 4}s", "--budget", f"{seconds}s"]
    status, out, err = args.runs.run(command)
    rows = list(csv.DictReader(io.StringIO(out)))
    wrong = [row["reason"] for row in rows if row["status"] == "wrong"]
    if wrong:
        raise Wrong(f"plumb-{bench}: {wrong[0]}")
    rows = [row for row in rows if not metric or row["metric"] in (metric, "")]
    why = "; ".join(dict.fromkeys(f"{row['status']}: {row['reason']}" for row in rows if row["status"] not in ("ok", "noisy")))
    if why or status or not rows:
        why = why or (end_of(status, out, err) if status else "no rows")
        raise CannotRun(f"'{' '.join(command)}' gives no number: {why}")
    args.simulated |= any(row["origin"] != "measured" for row in rows)
    return rows, command


def made_by(row):
    """NVIDIA's library that a row of ours is by, with its version, or nothing."""
    found = re.search(r"(cuBLASLt|NCCL) [0-9.]*[0-9]", f"{row.get('kernel')} {row.get('detail')}")
    return found.group() if found else ""


def of_pairs(args, pairs):
    return f"{len(pairs)} pairs" if len(pairs) == args.pairs else f"{len(pairs)} of {args.pairs} pairs, {args.runs.no_time()}"


def told(args, line):
    """A result, as soon as it is known."""
    print(line + ("; rows are simulated" if args.simulated else ""), flush=True)


def interval(ratios):
    """Of the median, 95 %, of order statistics: distribution-free. None of fewer than six."""
    n, ordered, k, tail = len(ratios), sorted(ratios), 0, 0.0
    while k < n and 2 * (tail + math.comb(n, k) / 2**n) <= 0.05:
        tail += math.comb(n, k) / 2**n
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else None


def origin(args):
    return "simulated" if args.simulated else "measured"
