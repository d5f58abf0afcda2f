#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# Many cases in one process: plumb run --processes, and --commands of the benchmarks.

load ../sim/env
load common
load batch

left() { # how many of the watched processes are there
    grep -lsz "^PLUMB_WATCHED=$work\$" /proc/[0-9]*/environ | wc -l
}

values() { # values RUN BENCH: case, repeat, status, samples and value of each row, sorted
    python3 - "$1/$2.csv" <<'END'
import csv, sys
for row in sorted((int(r["case"]), int(r["repeat"]), r["metric"], r["status"], r["samples"], r["value"]) for r in csv.DictReader(open(sys.argv[1]))):
    print(*row)
END
}

@test "a round of a benchmark has one process, another round another; rows, order and seeds are those of a process for each" {
    cd "$work"
    watched null
    suite "repeat: 3, warmup: 0s, max-samples: 30" <<< '  - {bench: "null", number: 1..6+1}'
    "$plumb" run t.yaml --out shared --processes round --no-report
    [ "$(wc -l < starts)" -eq 3 ]
    [ "$(left)" -eq 0 ]
    rm starts
    "$plumb" run t.yaml --out each --processes case --no-report
    [ "$(wc -l < starts)" -eq 18 ]
    [ "$(values shared null)" = "$(values each null)" ]
    cmp <(cut -d, -f3- shared/plan.csv) <(cut -d, -f3- each/plan.csv)
    cmp shared/samples/null.csv each/samples/null.csv
    # By itself, a benchmark whose start is cheap has a process for each.
    rm starts
    "$plumb" run t.yaml --out itself --no-report
    [ "$(wc -l < starts)" -eq 18 ]
}

@test "an interrupt ends the process, and resume goes on by the run's own rule" {
    cd "$work"
    watched null
    suite "repeat: 2, warmup: 0s, max-samples: 50, sleep: 10ms" <<< '  - {bench: "null", number: 1..6+1}'
    "$plumb" run t.yaml --out r --processes round --no-report 2> said &
    in_time 300 eval "[[ \$(grep -cs ^done, r/plan.csv) -ge 2 ]]"
    kill -INT $!
    wait $! || true
    grep -q 'interrupted' said
    [ "$(left)" -eq 0 ]
    rm starts
    "$plumb" run --resume r --no-report
    [ "$(grep -c ^done, r/plan.csv)" -eq 12 ]
    [ "$(wc -l < starts)" -le 2 ]
    run -2 "$plumb" run --resume r --processes case
}

@test "kill -9 of plumb and of the process of a round at random instants loses the running case at most" {
    command -v python3 > /dev/null || skip "needs python3"
    cd "$work"
    run -0 python3 "$top/tests/tools/crash.py" "$plumb" "$work" "${PLUMB_KILLS:-40}" 7 round
}

@test "on simulated GPUs cases share a process by themselves, and their rows agree with those of a process for each" {
    simulate two
    cd "$work"
    watched copy
    suite "repeat: 2, budget: 60ms, warmup: 20ms" <<'END'
  - {bench: copy, engine: ce, source: gpus, destination: gpus, op: [write, read], access: "on", size: 4M}
  - {bench: copy, engine: memcpy, size: 1M}
END
    "$plumb" run t.yaml --out shared --no-report
    [ "$(grep -c -- --commands starts)" -eq 2 ]
    [ "$(grep -c -- --csv starts)" -eq 2 ]
    "$plumb" run t.yaml --out each --processes case --no-report
    python3 - <<'END'
import csv, statistics
def medians(run):
    rows = {}
    for row in csv.DictReader(open(f"{run}/copy.csv")):
        if row["engine"] == "ce":
            assert row["origin"] == "simulated" and row["status"] in ("ok", "noisy"), row
            rows.setdefault((row["source"], row["destination"], row["op"]), []).append(float(row["value"]))
    return {key: statistics.median(values) for key, values in rows.items()}
shared, each = medians("shared"), medians("each")
assert shared.keys() == each.keys() and len(shared) == 4
for key in shared:
    assert 0.9 < shared[key] / each[key] < 1.1, (key, shared[key], each[key])
END
}
