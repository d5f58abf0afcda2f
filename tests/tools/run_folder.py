# SPDX-License-Identifier: Apache-2.0
"""The files of a made-up run's folder, whose rows have the columns of the programs."""
import csv
import json
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("PLUMB_BIN") or os.path.join(ROOT, "build/bin")


def row_columns():
    """As core/row.c has them, from which they so cannot drift."""
    with open(os.path.join(ROOT, "core", "row.c"), encoding="utf-8") as source:
        return re.findall(r'\{"([a-z0-9_]+)", ROW_', source.read())


def told(names):
    """The member "benchmarks" of run.json: what they say of their rows; names that are no benchmark's have no entry."""
    programs = {name: os.path.join(BIN, "plumb-" + name) for name in names}
    return {name: json.loads(subprocess.run([program, "--describe"], check=True, capture_output=True).stdout)["rows"]
            for name, program in programs.items() if os.access(program, os.X_OK)}


def write_rows(folder, bench, columns, rows):
    with open(os.path.join(folder, bench + ".csv"), "w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.9g}" if isinstance(value, float) else value for key, value in row.items()})


def write_plan(folder, launches, more=""):
    """launches: state, rows, case, repeat, bench, arguments, and what the columns `more` have, in the order that they ran."""
    with open(os.path.join(folder, "plan.csv"), "w", encoding="utf-8") as out:
        out.write(f"state,rows,order,case,repeat,bench,arguments,timeout_s{more}\n")
        for i, (state, n, case, repeat, bench, words, *rest) in enumerate(launches, 1):
            out.write(",".join(map(str, [state, f"{n:04}", i, case, repeat, bench, words, 60, *rest])) + "\n")


def write_meta(folder, machine, benches, **said):
    """run.json of a run of the suite node; said: what is otherwise in it."""
    meta = {"schema": 3, "program": "plumbline", "version": "0.1.0", "commit": "1234abc", "run": os.path.basename(folder),
            "suite": "node", "seed": 1, "command": ["plumb", "run", "node"], "started_utc": "2026-01-02T03:00:00Z",
            "finished_utc": "2026-01-02T03:20:00Z", "state": "complete", "config_hash": "00112233aabbccdd",
            "config": "suite: node\n", "machine": machine, "limits": [], "benchmarks": told(benches)}
    with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as out:
        json.dump({**meta, **said}, out, indent=1)
