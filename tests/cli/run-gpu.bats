#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run on simulated GPUs: suites that find them, pairs, limits, faults, and what is said where there is none.

load ../sim/env
load run-gpu

@test "a GPU that is lost fails its own cases; the others have their values" {
    in_work eight
    fault lost:gpu=5
    suite <<'END'
  - {bench: copy, engine: ce, source: node0, destination: gpus, memory: pinned, size: 4M}
END
    run "$plumb" run t.yaml --out r
    [ "$status" -eq 4 ]
    python3 - <<'END'
import csv
rows = {r["destination"]: r for r in csv.DictReader(open("r/copy.csv"))}
assert set(rows) == {f"cuda:{i}" for i in range(8)}, set(rows)
for name, row in rows.items():
    assert row["origin"] == "simulated", row
    if name == "cuda:5":
        assert row["status"] == "failed" and row["reason"] and row["value"] == "", row
    else:
        assert row["status"] in ("ok", "noisy") and float(row["value"]) > 8, row
END
}

@test "plumb list names each GPU once, with the benchmarks that see it" {
    in_work eight
    "$plumb" list > said
    for i in 0 1 2 3 4 5 6 7; do
        [ "$(grep -c "cuda:$i .*present: Simulated GPU.*(simulated)" said)" -eq 1 ]
    done
    grep -q 'gemm.*memory.*cuda:0' said
}

@test "without a GPU: a skipped row for each benchmark, one line in the summary and the page, and exit 0" {
    cd "$work" || return 1
    export PLUMB_CUDA_MODULE=$work/none.so
    "$plumb" run quick --only cuda --out r > said
    for bench in gemm memory copy launch; do
        [ "$(wc -l < "r/$bench.csv")" -eq 2 ]
        grep -q ',skipped,.*none.so' "r/$bench.csv"
    done
    [ "$(grep -c none.so said)" -eq 1 ]
    grep -q '^- no GPU was measured: .*none.so' said
    run grep -c 'GPU matrix core' said
    [ "$output" -eq 0 ]
    [ "$(grep -c "<li>no GPU was measured: " r/report.html)" -eq 1 ]
    run grep -c "class='d-word d-low\|class='d-word d-bad" r/report.html
    [ "$output" -eq 0 ]
    [ "$(cut -d, -f1 r/plan.csv | sort | uniq -c | tr -s ' ' | tr '\n' ';')" = " 4 skip; 1 state;" ]
}

@test "a place that is misspelt, or an option in vain: refused with the line, before anything is measured" {
    in_work two
    for device in foo cuda: cuda:01 node0; do
        suite <<END
  - {bench: launch, device: gpu, op: event}
  - {bench: gemm, device: "$device", dtype: f32, size: 64}
END
        status=0
        "$plumb" run t.yaml --out r > said 2> err || status=$?
        [ "$status" -eq 2 ]
        grep -q "t.yaml:5: .*option '--device': '$device' is .*: host, cuda:[01], gpus" err
        [ ! -e r ]
    done
    suite <<END
  - {bench: gemm, device: "cuda:0", dtype: f32, threads: 1, size: 64}
END
    status=0
    "$plumb" run t.yaml --out r > said 2> err || status=$?
    [ "$status" -eq 2 ]
    grep -q "t.yaml:4: option 'threads' does not apply here: it is for products on the host's CPUs; leave it out" err
}
