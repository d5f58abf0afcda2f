#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills runs at random instants and checks what is left.

After every kill: each row that was committed before is still there, every CSV is whole, and nothing of the run is still alive. At the
end of every resumed run: the same launches as an undisturbed run, each with its rows and samples once.

usage: crash.py PLUMB WORKDIR [KILLS] [SEED] [RULE]      RULE: of plumb run --processes
"""
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import time

PF_EXITING = 0x4  # among the flags of /proc/PID/stat, from the kernel's sched.h

SUITE = """suite: crash
cases:
  - bench: "null"
    number: 1..8+1
    noise: [normal, two-levels]
    sleep: 1ms
    repeat: 2
    warmup: 0s
    max-samples: 50
"""


def rows_of(path):
    """All rows of a CSV as lists; fails on a torn or ragged file."""
    with open(path, newline="", encoding="utf-8") as f:
        text = f.read()
    assert text.endswith("\n"), f"{path}: the last line is torn"
    rows = list(csv.reader(text.splitlines(keepends=True), strict=True))
    for i, row in enumerate(rows):
        assert len(row) == len(rows[0]), f"{path}: line {i + 1} has {len(row)} cells of {len(rows[0])}"
    return rows


def committed(run):
    """{(case, repeat): its rows} of the launches that plan.csv calls done."""
    plan = os.path.join(run, "plan.csv")
    if not os.path.exists(plan):
        return {}
    done = {}
    for row in rows_of(plan)[1:]:
        if row[0] != "todo":
            done[(row[3], row[4])] = int(row[1])
    found = {key: [] for key in done}
    path = os.path.join(run, "null.csv")
    if os.path.exists(path):
        table = rows_of(path)
        case, repeat = table[0].index("case"), table[0].index("repeat")
        for row in table[1:]:
            found.setdefault((row[case], row[repeat]), []).append(tuple(row))
    for key, count in done.items():
        assert len(found[key]) == count, f"{run}: launch {key} says {count} rows, {len(found[key])} are there"
    return {key: found[key] for key in done}


def samples_by_launch(run):
    count = {}
    for row in rows_of(os.path.join(run, "samples", "null.csv"))[1:]:
        count[(row[0], row[1])] = count.get((row[0], row[1]), 0) + 1
    return count


def alive(run):
    """Processes whose command line names this run's benchmark launch."""
    mine = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if f"PLUMB_CRASH={run}".encode() in f.read().split(b"\0"):
                    mine.append(int(pid))
        except OSError:
            pass
    return [p for p in mine if p != os.getpid()]


def is_ending(pid):
    """Is it killed already, and lacks but a CPU to end on; or a fork of plumb's that still has to look whether plumb lives?"""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
            pending = [int(line.split()[1], 16) for line in f if line.startswith(("SigPnd", "ShdPnd"))]
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            flags = int(f.read().rsplit(")", 1)[1].split()[6])
        if any(mask & 1 << signal.SIGKILL - 1 for mask in pending) or flags & PF_EXITING:
            return True
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "plumb"
    except OSError:
        return True  # it has ended meanwhile


def check_alone(run):
    """Plumb has ended and is reaped: its children were sent their SIGKILL before that, so one without it is an orphan.

    No time is given for that (an orphan ends by itself soon), only for the end of those that have it.
    """
    until = time.monotonic() + 10
    while left := alive(run):
        orphans = [pid for pid in left if not is_ending(pid)]
        assert not orphans, f"{run}: processes are left: {orphans}"
        assert time.monotonic() < until, f"{run}: processes were killed and do not end: {left}"
        time.sleep(0.01)


def start(plumb, run, suite, rule):
    args = ["--resume", run] if os.path.exists(os.path.join(run, "plan.csv")) else [suite, "--out", run, "--processes", rule]
    # LeakSanitizer looks from a process of its own, which ends a little after the benchmark that was killed: it would be an orphan.
    env = dict(os.environ, PLUMB_CRASH=run, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    return subprocess.Popen([plumb, "run", *args, "--no-report"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_one(rng, plumb_pid, run):
    """kill -9 of plumb, or of the benchmark that runs just now."""
    victims = [p for p in alive(run) if p != plumb_pid]
    victim = rng.choice(victims) if victims and rng.random() < 0.3 else plumb_pid
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return victim == plumb_pid


def check_whole(run, wanted, killed_benches):
    done = committed(run)
    assert set(done) == wanted, f"{run}: other launches than an undisturbed run: {set(done) ^ wanted}"
    statuses = [row for rows in done.values() for row in rows]
    failed = sum("failed" in row for row in statuses)
    assert failed <= killed_benches, f"{run}: {failed} failed rows, {killed_benches} benchmarks were killed"
    samples = samples_by_launch(run)
    for key, rows in done.items():
        if "failed" not in rows[0]:
            assert samples.get(key, 0) == 50, f"{run}: launch {key} has {samples.get(key, 0)} samples of 50"


def main():
    plumb, work = sys.argv[1], sys.argv[2]
    kills, seed = int(sys.argv[3]) if len(sys.argv) > 3 else 100, int(sys.argv[4]) if len(sys.argv) > 4 else 1
    rule = sys.argv[5] if len(sys.argv) > 5 else "auto"
    rng = random.Random(seed)
    suite = os.path.join(work, "crash.yaml")
    with open(suite, "w", encoding="utf-8") as f:
        f.write(SUITE)

    calm = os.path.join(work, "calm")
    subprocess.run([plumb, "run", suite, "--out", calm, "--no-report"], check=True, stderr=subprocess.DEVNULL)
    wanted = set(committed(calm))
    span = 2.0

    done_kills, runs = 0, 0
    while done_kills < kills:
        runs += 1
        run = os.path.join(work, f"run{runs}")
        before, killed_benches = {}, 0
        while True:
            process = start(plumb, run, suite, rule)
            time.sleep(rng.random() * span * 0.4)
            if process.poll() is None and done_kills < kills:
                done_kills += 1
                if not kill_one(rng, process.pid, run):
                    killed_benches += 1
            else:
                process.wait()
            if process.poll() is None and done_kills >= kills:
                process.wait()
            finished = False
            try:
                process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            check_alone(run)
            message = process.stderr.read().decode()
            assert "damaged" not in message and "Sanitizer" not in message, message
            if not os.path.exists(os.path.join(run, "plan.csv")):
                shutil.rmtree(run, ignore_errors=True)  # killed before there was a plan: nothing was promised
                continue
            now = committed(run)
            for key, rows in before.items():
                assert now.get(key) == rows, f"{run}: launch {key} was committed and is lost or changed"
            before = now
            finished = len(now) == len(wanted)
            if finished:
                break
        check_whole(run, wanted, killed_benches)
        shutil.rmtree(run)
    print(f"{done_kills} kills over {runs} runs: nothing committed was lost")


main()
