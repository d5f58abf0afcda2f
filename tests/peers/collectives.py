# SPDX-License-Identifier: Apache-2.0
"""NCCL's allreduce, timed by plumb-allreduce and by nccl-tests: the comparison `collectives` of scripts/peer-gpu."""
import collections
import os
import statistics
import sys
import time

import nccl_tests
from runs import CannotRun, OutOfTime, Wrong, end_of, interval, of_pairs, origin, rows_of, told

PLACES = ("out of place", "in place")
MARGIN = 0.02
BUILDS_S = 300


def bytes_of(word):
    """K, M and G are binary, as in our options. ValueError."""
    unit = {"K": 10, "M": 20, "G": 30}.get(word[-1:], 0)
    return int(word[:-1] if unit else word) << unit


def verdict(ratios):
    """Is it within the margin, with its interval: words, and whether it is bad or inconclusive."""
    between = interval(ratios)
    if not between:
        return "not decided, an interval takes 6 pairs", False, True
    low, high = between
    if 1 - MARGIN <= low and high <= 1 + MARGIN:
        return "yes", False, False
    if low > 1 + MARGIN or high < 1 - MARGIN:
        return f"NO, ours takes {'longer' if low > 1 else 'less'}", True, False
    return "not decided", False, True


class Collectives:
    """NCCL's allreduce, timed by plumb-allreduce and by nccl-tests: 1, 2 and 4 ranks on one GPU in a process each, or a rank on each GPU, all
    in one process. Both sides have as many processes. A pair is, with that many ranks, one run of ours for each place and one of theirs for
    each size."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.sizes = args.sizes
        self.seconds = args.seconds / 2
        self.pairs = collections.defaultdict(list)  # (ranks, place, size): ours and theirs, us
        self.mine = {}  # the same: our last one
        self.program, self.why, self.wrong, self.longest = {}, {}, {}, collections.Counter()
        self.library = ""

    def prepare(self):
        args, programs, why = self.args, [], ""
        os.environ.pop("NCCL_HOSTID", None)  # each rank's own
        nccl_tests.share_settings(os.environ)
        library = os.environ.get("PLUMB_LIBNCCL") or nccl_tests.library_in_python(args.python)
        home = library and "NCCL_HOME" not in os.environ and nccl_tests.home_of(library, self.folder)
        if home:
            os.environ["NCCL_HOME"] = home
        try:
            programs = nccl_tests.find(args.nccl_tests, lambda words: args.runs.output_of(words, hangs_s=BUILDS_S))
        except (nccl_tests.Absent, CannotRun) as error:
            why = str(error)
            print(f"peer-gpu: nccl-tests is built by: {' '.join(nccl_tests.build_command('nccl-tests'))}", file=sys.stderr)
        library = os.environ.get("PLUMB_LIBNCCL")
        for program in programs:
            library = library or nccl_tests.linked(program, os.environ).get("libnccl.so.2")
        library = library or nccl_tests.library_in_python(args.python)
        if library:
            os.environ["PLUMB_LIBNCCL"] = library
        self.env = nccl_tests.environment(library, self.folder, args.spread)
        for ranks in self.args.ranks:
            try:
                if why:
                    raise nccl_tests.Absent(why)
                self.program[ranks] = nccl_tests.choose(programs, ranks, args.mpirun, self.env, args.spread)
            except nccl_tests.Absent as error:
                self.why[ranks] = str(error)

    def places(self, ranks):
        """One rank's sum in place is nothing to do: NCCL comes back at once."""
        return PLACES[:1] if ranks == 1 else PLACES

    def run_ours(self, ranks):
        for place in self.places(ranks):
            sizes = ",".join(str(size) for size in self.sizes)
            processes = ["--np", "1", "--per-process", str(ranks)] if self.args.spread else ["--np", str(ranks)]
            rows, _ = rows_of(self.args, "allreduce", self.seconds, "time", "--backend", "nccl", *processes, "--ranks", str(ranks),
                              "--size", sizes, "--no-cpu", *(["--in-place"] if place == PLACES[1] else []))
            for row in rows:
                self.library = row["detail"].split(",")[0].removeprefix("NCCL ")
                self.mine[ranks, place, int(row["size"])] = float(row["mean"])
            lost = [word for size, word in self.sizes.items() if (ranks, place, size) not in self.mine]
            if lost:
                raise CannotRun(f"plumb-allreduce gives no time of {', '.join(lost)}")

    def run_theirs(self, ranks):
        """us by place and size. As many operations as take as long as ours are measured for."""
        took = {}
        for size, word in self.sizes.items():
            count = int(min(max(5, self.seconds * 1e6 / self.mine[ranks, PLACES[0], size]), 100000))
            command = nccl_tests.command(self.program[ranks], ranks, size, count, self.args.mpirun, self.args.spread)
            status, out, err = self.args.runs.run(command, self.env)
            try:
                times, library = nccl_tests.read(out, ranks, size, self.args.spread)
                if library != self.library:
                    raise nccl_tests.NoFigure(f"it runs with NCCL {library}, ours with {self.library}")
                took.update({(ranks, place, size): nccl_tests.precise(times[place]) for place in self.places(ranks)})
            except nccl_tests.WrongData as error:
                raise Wrong(f"nccl-tests: {error}") from None
            except nccl_tests.NoFigure as error:
                end = f"nccl-tests {end_of(status, out, err)}" if status else f"nccl-tests: {error}"
                raise CannotRun(f"{end} ({word})") from None
            if status:
                raise CannotRun(f"nccl-tests {end_of(status, out, err)} ({word})")
        return took

    def pair(self, ranks, i):
        begin, took = time.monotonic(), {}
        if i % 2 == 0:
            self.run_ours(ranks)
        if ranks in self.program:
            took = self.run_theirs(ranks)
        if i % 2:
            self.run_ours(ranks)
        for (_, place, size), theirs in took.items():
            mine = self.mine[ranks, place, size]
            self.pairs[ranks, place, size].append((mine, theirs))
            self.args.runs.pair(self.name(ranks, place, size), i + 1, "theirs" if i % 2 else "ours", mine, theirs, "us")
            print(f"  {self.name(ranks, place, size)} pair {i + 1}: {mine / theirs:.4f}  ({mine:.5g} and {theirs:.5g} us)",
                  file=sys.stderr)
        self.longest[ranks] = max(self.longest[ranks], time.monotonic() - begin)

    def measure(self):
        """Round by round, so that all have as many pairs when the time is up. Without a peer one run of ours is shown."""
        for i in range(self.args.pairs):
            for ranks in self.args.ranks:
                if self.wrong.get(ranks) or (self.why.get(ranks) and i):
                    continue
                if not self.args.runs.has_time(1.1 * self.longest[ranks]):
                    raise OutOfTime(self.args.runs.no_time())
                try:
                    self.pair(ranks, i)
                except OutOfTime:
                    raise
                except CannotRun as error:
                    self.why[ranks] = str(error)
                except Wrong as error:
                    self.wrong[ranks] = str(error)

    def name(self, ranks, place, size):
        return f"collectives {ranks} {'GPU' if self.args.spread else 'rank'}{'s' * (ranks > 1)} {self.sizes[size]} {place}"

    def by(self):
        """Both, or it is not compared: see run_theirs()."""
        return [f"NCCL {self.library}" if self.library else ""] * 2

    def say(self, outcome):
        for ranks in self.args.ranks:
            for place in self.places(ranks):
                for size in self.sizes:
                    self.say_one(outcome, ranks, place, size)

    def say_one(self, outcome, ranks, place, size):
        key, name = (ranks, place, size), self.name(ranks, place, size)
        pairs, mine = self.pairs[key], f"; plumb {self.mine[key]:.5g} us" if key in self.mine else ""
        if ranks in self.wrong:
            outcome.bad += 1
            self.args.runs.figure(name, "wrong-data", *[""] * 8, "nccl-tests", origin(self.args), self.wrong[ranks], *self.by())
            return told(self.args, f"{name}: WRONG DATA: {self.wrong[ranks]}")
        if ranks in self.why or not pairs:
            why = self.why.get(ranks, self.args.runs.no_time())
            self.args.runs.figure(name, "not-compared", *[""] * 8, "nccl-tests", origin(self.args), why, *self.by())
            return told(self.args, f"{name}: not compared: {why}{mine}")
        ratios = [a / b for a, b in pairs]
        words, bad, inconclusive = verdict(ratios)
        outcome.compared += 1
        outcome.bad += bad
        outcome.inconclusive += inconclusive
        low, high = interval(ratios) or (min(ratios), max(ratios))
        shared = "; the ranks share the GPU, by sockets: a rehearsal" if ranks > 1 and not self.args.spread else ""
        self.args.runs.figure(name, "missed" if bad else "inconclusive" if inconclusive else "reached", 1.00,
                              *(f"{value:.5g}" for value in (statistics.median(ratios), low, high)), len(pairs),
                              *(f"{statistics.median(side):.6g}" for side in zip(*pairs)), "us", "nccl-tests", origin(self.args), "", *self.by())
        return told(self.args, f"{name}: ratio {statistics.median(ratios):.4f} ({low:.4f} to {high:.4f}, "
                    f"{of_pairs(self.args, pairs)}; within 2 %: {words}); plumb {statistics.median(a for a, _ in pairs):.5g}, "
                    f"nccl-tests {statistics.median(b for _, b in pairs):.5g} us; NCCL {self.library}{shared}")
