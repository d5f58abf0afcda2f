#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Many cases in one process: plumb run --processes, and --commands of the benchmarks.

bats_require_minimum_version 1.5.0
load ../sim/env

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    bin="${PLUMB_BIN:-$top/build/bin}"
    plumb="$bin/plumb"
    work="$(mktemp -d)"
    export PLUMB_CONFIGS=$top/configs
    cd "$top" || return 1
}

teardown() {
    cd / || return 1
    rm -rf "$work"
}

suite() { # suite DEFAULTS: the cases on stdin
    { printf 'suite: t\nabout: a test\ndefaults: {%s}\ncases:\n' "$1"; cat; } > t.yaml
}

# watched BENCH: there, a plumb and the benchmark; the file `starts` gets a line for each of its processes that measures, with its options.
watched() {
    cp "$bin/plumb" plumb
    plumb=./plumb
    cat > "plumb-$1" <<EOF
#!/bin/bash
[[ " \$* " != *" --csv "* && " \$* " != *" --commands "* ]] || echo "\$*" >> "$work/starts"
PLUMB_WATCHED=$work exec "$bin/plumb-$1" "\$@"
EOF
    chmod +x "plumb-$1"
}

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

@test "--commands: each line is a command line, with its rows, and the marks say where it ends and how" {
    cd "$work"
    printf '%s\n' '--number 1 --max-samples 20 --csv' '--fault fail --csv' '--nonsense' '--describe' '--number 2 --max-samples 20 --csv' > lines
    run --separate-stderr "$bin/plumb-null" --commands marks < lines
    [ "$status" -eq 4 ]
    [ "$(cat marks)" = "$(printf 'begin\nend 0\nbegin\nend 4\nbegin\nend 2\nbegin\nend 2\nbegin\nend 0')" ]
    [ "$(grep -c '^number,' <<< "$output")" -eq 3 ]
    # shellcheck disable=SC2154 # run sets it
    [[ "$stderr" == *"nonsense"* ]]
    # What a line measures is what it would measure alone.
    printf '%s\n' "$output" > many.csv
    "$bin/plumb-null" --number 2 --max-samples 20 --csv > alone.csv
    python3 - <<'END'
import csv
alone = list(csv.DictReader(open("alone.csv")))[0]
last = list(csv.DictReader(open("many.csv")))[-1]
assert [last[k] for k in ("value", "samples", "min", "max")] == [alone[k] for k in ("value", "samples", "min", "max")], (last, alone)
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

@test "a crash, a hang and a failure cost their own case; the rest go on in another process" {
    cd "$work"
    watched null
    suite "repeat: 1, warmup: 0s, max-samples: 30, timeout: 2s" <<'END'
  - {bench: "null", number: 1..4+1}
  - {bench: "null", number: 5..6+1, fault: [crash, hang, fail, wrong]}
END
    run "$plumb" run t.yaml --out r --processes round --no-report
    [ "$status" -eq 1 ]
    python3 - <<'END'
import collections, csv
plan = list(csv.DictReader(open("r/plan.csv")))
states = collections.defaultdict(collections.Counter)
for launch in plan:
    words = launch["arguments"].split()
    fault = words[words.index("--fault") + 1] if "--fault" in words else "none"
    states[fault][launch["state"]] += 1
assert states == {"none": {"done": 4}, "crash": {"fail": 2}, "hang": {"late": 2}, "fail": {"fail": 2}, "wrong": {"fail": 2}}, states
# A process in which a case fails takes no other: as many processes as failures, and one more where the last case is good.
starts = len(open("starts").readlines())
assert 8 <= starts <= 9, starts
reasons = [row["reason"] for row in csv.DictReader(open("r/null.csv"))]
assert any("signal 11" in r and "its process had measured" in r for r in reasons) or all("its process" not in r for r in reasons), reasons
END
}

@test "an interrupt ends the process, and resume goes on by the run's own rule" {
    cd "$work"
    watched null
    suite "repeat: 2, warmup: 0s, max-samples: 50, sleep: 10ms" <<< '  - {bench: "null", number: 1..6+1}'
    "$plumb" run t.yaml --out r --processes round --no-report 2> said &
    for _ in $(seq 6000); do
        [[ $(grep -c ^done, r/plan.csv 2> /dev/null) -lt 2 ]] || break
        sleep 0.05
    done
    kill -INT $!
    wait $! || true
    grep -q 'interrupted' said
    [ "$(left)" -eq 0 ]
    rm starts
    "$plumb" run --resume r --no-report
    [ "$(grep -c ^done, r/plan.csv)" -eq 12 ]
    [ "$(wc -l < starts)" -le 2 ]
    run "$plumb" run --resume r --processes case
    [ "$status" -eq 2 ]
}

@test "what failed in a shared process is retried" {
    cd "$work"
    suite "repeat: 1, warmup: 0s, max-samples: 30" <<< '  - {bench: "null", number: 1..3+1, fault: [none, crash]}'
    run "$plumb" run t.yaml --out r --processes round --no-report
    [ "$status" -eq 4 ]
    run "$plumb" run --resume r --retry --no-report
    [ "$status" -eq 4 ]
    [ "$(grep -c ^done, r/plan.csv)" -eq 3 ]
    [ "$(grep -c ^fail, r/plan.csv)" -eq 3 ]
}

@test "kill -9 of plumb and of the process of a round at random instants loses the running case at most" {
    command -v python3 > /dev/null || skip "needs python3"
    cd "$work"
    run python3 "$top/tests/tools/crash.py" "$plumb" "$work" "${PLUMB_KILLS:-40}" 7 round
    echo "$output"
    [ "$status" -eq 0 ]
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

@test "a GPU that is lost costs its own case alone, also where cases share a process" {
    simulate two
    cd "$work"
    suite "repeat: 1, budget: 60ms, warmup: 20ms" <<< '  - {bench: memory, device: gpus, op: [read, copy, triad, add], launch: plain, size: 1M}'
    fault "ecc:gpu=1:after=40"
    run "$plumb" run t.yaml --out r --no-report
    [ "$status" -eq 4 ]
    python3 - <<'END'
import csv
rows = list(csv.DictReader(open("r/memory.csv")))
assert len(rows) == 8, len(rows)
assert all(row["status"] in ("ok", "noisy") for row in rows if row["device"] == "cuda:0"), [(r["device"], r["status"], r["reason"]) for r in rows]
assert any(row["status"] == "failed" for row in rows)
END
}
