#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# What a search on a GPU found is kept over the rounds of a run, on the simulated device: the second launch of a case does not
# search, and a choice that is not offered here, or is slow here, is searched for again.

load ../sim/env
load rows

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    top=$PWD bin=${PLUMB_BIN:-$PWD/build/bin} out=$BATS_TEST_TMPDIR/out
}

# best CANDIDATE: this one of the products is 8 % faster than the heuristics' choice.
best()
{
    machine 1 '[gpu]' 'gemm_us = 0' 'l2_bytes = 64K' 'gemm_f16_tflops = .002' 'gemm_bf16_tflops = .002' "gemm_best_candidate = $1" \
        'gemm_best_factor = 1.08'
}

gemm() { "$bin/plumb-gemm" --csv --device cuda --library cublaslt-best --size 64 --dtype f16 --budget 60ms --warmup 10ms "$@" >"$out"; }
memory() { "$bin/plumb-memory" --csv --device cuda --op copy --size 4M --budget 60ms --warmup 10ms "$@" >"$out"; }

# again OPTION: the choice was searched for again, said so, and is not the one that was given.
again()
{
    [ "$(cells "$1" | sed '/^$/d')" != "$choice" ]
    [ -n "$(cells "$1" | sed '/^$/d')" ]
    cells reason | grep -q "$2"
}

@test "the second launch of a case does not search" {
    best 3
    cd "$BATS_TEST_TMPDIR" || return 1
    printf '%s\n' 'suite: t' 'defaults: {repeat: 2, budget: 60ms, warmup: 10ms}' cases: \
        '  - {bench: gemm, device: gpu, library: cublaslt-best, dtype: [f16, bf16], size: 64}' \
        '  - {bench: memory, device: gpu, op: copy, size: 4M}' >t.yaml
    PLUMB_CONFIGS=$top/configs "$bin/plumb" run t.yaml --out r --no-report
    python3 - <<'END'
import csv
by = {}
for row in csv.DictReader(open("r/gemm.csv")):
    by[row["case"], row["repeat"]] = row
    assert abs(float(row["value"]) / .00216 - 1) < .05 and abs(float(row["gap_percent"]) - 8) < .5, row
    assert "algo 66" in row["evidence"], row
for case in "1", "2":
    first, second = by[case, "1"], by[case, "2"]
    assert first["candidates"] == "6" and second["candidates"] == "", (first, second)
    assert first["algorithm"] == second["algorithm"] != "", (first, second)
    assert "heuristics" in first["reason"] and "heuristics" not in second["reason"], (first, second)
rows = {(r["repeat"], r["launch"]): r for r in csv.DictReader(open("r/memory.csv"))}
assert rows["1", "tuned"]["tuning"] == rows["2", "tuned"]["tuning"] != "", rows
assert rows["1", "tuned"]["shape"] == rows["2", "tuned"]["shape"], rows
END
    run ! grep -e --algorithm -e --tuning r/plan.csv
    grep -q -- '--tuning .* launch ' r/log/3-2.txt
}

@test "a kept algorithm that is slower than the heuristics' choice now does not pass for the best" {
    best 3
    gemm
    choice=$(cells algorithm)
    best 2 # candidate 3 is 13 % slower than the first, and 2 is the best
    gemm --algorithm "$choice"
    again algorithm
    cells value | awk '{ exit !($1 > .00216 * .95) }'
    # What was spoilt by hand is no choice.
    gemm --algorithm 0123456789abcdef
    again algorithm
    memory --launch tuned --tuning 3x7
    cells reason | grep -q again
}
