#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run on simulated GPUs: suites that find them, pairs, limits, faults, and what is said where there is none.

load common
load ../sim/env
load run-gpu

@test "a GPU that is lost fails its own cases; the others have their values" {
    in_work eight
    fault lost:gpu=5
    suite <<< '  - {bench: copy, engine: ce, source: node0, destination: gpus, memory: pinned, size: 4M}'
    run -4 "$plumb" run t.yaml --out r
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

@test "without a GPU: a skipped row for each benchmark, one line in the summary and the page, and exit 4" {
    cd "$work" || return 1
    export PLUMB_CUDA_MODULE=$work/none.so
    ends 4 "$plumb" run quick --only cuda --out r > said 2> errors
    [ "$(grep -cE "^plumb run: .*'(gemm|memory|copy|launch)'" errors)" -eq 4 ]
    "$plumb" run quick --only cuda --out allowed --allow-skip --no-report
    for bench in gemm memory copy launch; do
        [ "$(wc -l < "r/$bench.csv")" -eq 2 ]
        grep -q ',skipped,.*none.so' "r/$bench.csv"
    done
    [ "$(grep -c none.so said)" -eq 1 ]
    ! grep -q 'GPU matrix core' said || return 1
    [ "$(grep -c '<dd>.*none.so' r/report.html)" -eq 1 ]
    ! grep -q "class='d-word d-low\|class='d-word d-bad" r/report.html || return 1
    [ "$(cut -d, -f1 r/plan.csv | sort | uniq -c | tr -s ' ' | tr '\n' ';')" = " 4 skip; 1 state;" ]
}

@test "a place that is misspelt, or an option in vain: refused with the line, before anything is measured" {
    in_work two
    for device in foo cuda: cuda:01 node0; do
        suite <<END
  - {bench: launch, device: gpu, op: event}
  - {bench: gemm, device: "$device", dtype: f32, size: 64}
END
        told 2 "t.yaml:5: *'--device': '$device' * host, cuda:[01], gpus" "$plumb" run t.yaml --out r
        [ ! -e r ]
    done
    suite <<END
  - {bench: gemm, device: "cuda:0", dtype: f32, threads: 1, size: 64}
END
    told 2 "t.yaml:4: *'threads'" "$plumb" run t.yaml --out r
}

# eight_with_slow: GPU 3 takes data from the host at half the rate of the others.
eight_with_slow() {
    printf '[machine]\ngpus = 8\n[gpu 3]\nh2d_gbps = 6.5\n' > "$work/slow.conf"
    in_work "$work/slow.conf"
    { printf 'suite: t\nagain: 10m\ndefaults: {repeat: 1, budget: 20ms, warmup: 0s}\ncases:\n'; cat; } > t.yaml <<'END'
  - {bench: copy, engine: ce, source: nodes, destination: gpus, memory: pinned, size: 1M}
END
}

@test "a GPU that looks slow in its one repetition is measured again until that is proven" {
    eight_with_slow
    "$plumb" run t.yaml --out r --no-report
    [ "$(grep -c 'destination cuda:3 ' r/plan.csv)" -ge 3 ]
    [ "$(grep -c 'destination cuda:3 ' r/plan.csv)" -le 5 ]
    # What is judged is measured, and the same at each time.
    python3 - <<'END'
import csv
rows = list(csv.DictReader(open("r/copy.csv")))
for i, row in enumerate(rows):
    slow = row["destination"] == "cuda:3"
    row.update(value=(6.4 if slow else 12.8) + 0.01 * (i % 5), origin="measured", status="ok", ci_low="", ci_high="", disturbed="")
with open("r/copy.csv", "w", newline="") as out:
    w = csv.DictWriter(out, rows[0], lineterminator="\n")
    w.writeheader()
    w.writerows(rows)
END
    "$plumb" report r > said
    flat said > unbroken
    grep -q '^Answer  *1 problem.*cuda:3 is slower than the others: host to GPU, pinned' unbroken
    "$plumb" report r --notes > said
    flat said > notes
    grep -q '[^0-9][67] cases of one repetition ' notes # of a single one: no case that shows nothing
    "$plumb" run t.yaml --out none --again 0 --no-report
    [ "$(wc -l < none/plan.csv)" -eq 9 ]
}

@test "what is measured again is part of the plan: a kill in it loses nothing, and --resume goes on" {
    eight_with_slow
    "$plumb" run t.yaml --out r --no-report --again 10m 2>said &
    local pid=$!
    until [ "$(wc -l < r/plan.csv 2>/dev/null || echo 0)" -gt 9 ]; do kill -0 $pid || break; sleep 0.01; done
    kill -9 $pid || true
    wait $pid || true
    "$plumb" run --resume r --no-report
    [ "$(grep -c '^todo' r/plan.csv)" -eq 0 ]
    [ "$(grep -c 'destination cuda:3 ' r/plan.csv)" -ge 3 ]
    [ "$(($(wc -l < r/plan.csv)))" -eq "$(wc -l < r/copy.csv)" ]
}
