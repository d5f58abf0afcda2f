#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run: its expected time, its costs, and what kills lose, on the null benchmark.

bats_require_minimum_version 1.5.0
load run

# waits: for launches that hang

@test "the expected time holds within its stated factor, of cases that use their time" {
    # Samples that sleep and an interval that is never narrow: what a busy machine adds is little beside it.
    printf 'suite: t\nabout: t\ndefaults: {repeat: 2, budget: 900ms, warmup: 100ms, min-samples: 1000000}\ncases:\n' > t.yaml
    printf '  - {bench: "null", number: 1..4+1, sleep: 20ms}\n' >> t.yaml
    local began=$EPOCHREALTIME
    "$plumb" run t.yaml --out r --no-report 2> said
    local ended=$EPOCHREALTIME
    python3 - "$(grep -o 'about [0-9]* s' said | grep -o '[0-9]*')" "$began" "$ended" << 'END'
import sys
expected, began, ended = map(float, sys.argv[1:])
took = ended - began
assert expected / 2 <= took <= 2 * expected + 5, (expected, took)
END
}

@test "the cost of a session that was killed stays, and --resume adds its own" {
    suite <<< '  - {bench: "null", number: 1..3+1, level: 100us, spread: 30%, sleep: 1ms, budget: 600ms}'
    "$plumb" run t.yaml --out r --no-report 2> err &
    pid=$!
    # shellcheck disable=SC2016 # wait_for expands it
    wait_for $pid eval '[ "$(wc -l < r/null.csv)" -ge 5 ]'
    kill -9 $pid
    wait $pid || true
    cost() { python3 -c 'import json; print((json.load(open("r/run.json")).get("harness_cost") or {}).get("benchmarks_ms", 0))'; }
    before=$(cost)
    kept=$(wc -l < r/null.csv)
    "$plumb" run --resume r --no-report
    [ "$(wc -l < r/null.csv)" -eq 7 ]
    python3 - "$before" "$(cost)" "$kept" <<'END'
import csv, sys
before, after, kept = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) - 1
elapsed = [1000 * float(row["elapsed_s"]) for row in csv.DictReader(open("r/null.csv"))]
assert before >= 1000, before
assert after >= before + sum(elapsed[kept:]), (before, after, elapsed)
END
}

@test "kill -9 of plumb and of benchmarks at sixty random instants loses nothing that was committed" {
    run -0 python3 "$top/tests/tools/crash.py" "$plumb" "$work" "${PLUMB_KILLS:-60}" 3
}
