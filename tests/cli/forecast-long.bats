#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2030,SC2031,SC2154 # each test has variables of its own
# plumb forecast, the command: from made-up runs to an answer, what is missing, what is refused, and its files.

bats_require_minimum_version 1.5.0
load made
load forecast

@test "sums at one number of ranks alone: known there, and nowhere else" {
    python3 - <<'END'
import csv
rows = list(csv.DictReader(open("run/allreduce.csv")))
with open("run/allreduce.csv", "w", newline="") as out:
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(r for r in rows if r["ranks"] == "8")
END
    run -0 --separate-stderr "$plumb" forecast "${job[@]}" --nodes 8,16 --no-overlap
    [[ "$output" == *"16 nodes: "*" 8 ranks"* ]]
    # one reason, with forecasts between
    "$plumb" forecast "${job[@]}" --nodes 2,4,8,16 | grep -q 'Refused  *2 and 4, 16 nodes: .* 8 ranks'
    "$plumb" forecast "${job[@]}" --nodes 4,8,16 --no-overlap --json > out.json
    near "$(jq '.points[1].step_s' out.json)" "0.06 + 2 * $(ring 8 16777216)" 0.01
    [ "$(jq -r '[.points[].refused] | join(",")' out.json)" = "one number of ranks,,one number of ranks" ]
}

@test "measured steps of the model are held against their forecasts" {
    python3 - <<'END'
import csv
like = next(csv.DictReader(open("run/allreduce.csv")))
columns = [name for name in like if name not in "op redop size fill scaling in_place segment algorithm gap buffer vector_bytes chosen".split()]
columns = "schedule seq batch tp pp ep micro_batches zero dp update compute_ms update_ms".split() + columns
with open("run/step.csv", "w", newline="") as out, open("run/plan.csv", "a") as plan:
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    # two layers of 16 MiB, 40 ms backward: the first sum begins at 40 of 60 ms
    none = dict(batch=1, pp=1, zero=0, update="none", schedule="1f1b")
    for case, (model, ranks, overlap, transport, ms, more) in enumerate((("/x/toy.csv", 8, "none", "tcp", 600, {}), ("toy", 4, "backward", "tcp", 500, {}),
                                                                  ("toy", 2, "none", "rdma", 1, {}), ("other", 8, "none", "tcp", 1, {}),
                                                                  ("toy", 8, "none", "tcp", 900, {}), ("toy", 8, "none", "tcp", 300, {}),
                                                                  ("toy", 2, "none", "tcp", 700, dict(update="adam", update_ms=100)),
                                                                  ("toy", 2, "none", "tcp", 701, dict(update="sgd", update_ms="")),
                                                                  ("toy", 2, "none", "tcp", 704, dict(pp=2, schedule="gpipe")),
                                                                  ("toy", 2, "none", "tcp", 703, dict(zero=3)),
                                                                  ("toy", 1, "none", "tcp", 61, {}), ("toy", 1, "none", "tcp", 63, dict(batch=2)),
                                                                  ("toy", 1, "none", "tcp", 90, dict(batch=3, origin="measured")),
                                                                  ("other", 1, "none", "tcp", 460, dict(batch=4, origin="measured")), ("other", 1, "none", "tcp", 260, {})), 8001):
        plan.write(f"done,0001,{case},{case},1,step,,60,,,node1;node2\n")
        writer.writerow(dict(like, case=case, model=model, ranks=ranks, nodes=ranks, seq=0, tp=1, ep=1, micro_batches=1,
                             dp=ranks, bucket=16 << 20, dtype={900: "f64", 300: "i8"}.get(ms, "f32"), overlap=overlap, backend="ring", transport=transport, compute_ms=60,
                             metric="step_time", unit="ms", value=ms, ci_low=ms, ci_high=ms, limit="", percent_of_limit="", **{"origin": "simulated", **none, **more}))
END
    run -2 --separate-stderr "$plumb" forecast run --model ./toy.csv --dtype f64 --nodes 8
    # another job of the same model: each step is forecast as it was measured
    "$plumb" forecast run --model ./toy.csv --compute 1s --update none --batch 7 --over 'backend=ring transport=tcp' --nodes 8 --json > out.json
    [ "$(jq -c '[.checks[] | [.ranks, .measured_s]]' out.json)" = '[[8,0.6],[8,0.9],[8,0.3],[4,0.5],[2,0.7]]' ]
    # two steps on one rank: 2 ms beside their compute, which was a wait
    near "$(jq '.checks[0].step_s' out.json)" "0.062 + 2 * $(ring 8 16777216)" 0.01
    near "$(jq '.checks[0].host_s' out.json)" 0.002 1e-6
    near "$(jq '.checks[3].step_s' out.json)" "0.042 + 2 * $(ring 4 16777216)" 0.01
    near "$(jq '.checks[4].step_s' out.json)" "0.062 + 2 * $(ring 2 16777216) + 0.1" 0.01
    # of real compute it is 30 ms
    near "$(jq '.answer.host_s' out.json)" 0.03 1e-6
    # the memory of a step that is known, and none of one that is not: no product was measured here
    jq -e '.memory.parameters > 0' out.json
    run -3 --separate-stderr "$plumb" forecast run --model ./toy.csv --update none --over 'backend=ring transport=tcp' --nodes 8 --json
    jq -e 'has("memory") | not' <<< "$output"
    # of other models only where there is no step of this one: 400 ms beside 60, and 30
    sed 's/^a,/c,/' toy.csv > third.csv
    "$plumb" forecast run --model ./third.csv --compute 1s --update none --over 'backend=ring transport=tcp' --nodes 1 --json > third.json
    near "$(jq '.answer.host_s' third.json)" "(0.4 + 0.03) / 2" 1e-6
    "$plumb" forecast run --model ./third.csv --compute 1s --update none --nodes 1 | tr -s ' \n' ' ' | grep -q 'operations: 215.0 ms'
    [ "$(jq -c '[.checks_left_out[] | [.measured_s, .left_out, .refused]] | sort' out.json)" = \
        '[[0.001,"another way",null],[0.701,"update",null],[0.703,"refused","not measured"],[0.704,"order",null]]' ]
    # elements of 8 bytes, and of 1: twice the buckets, and both layers in one of 8 MiB
    near "$(jq '.checks[1].step_s' out.json)" "0.062 + 2 * $(ring 8 33554432)" 0.01
    near "$(jq '.checks[2].step_s' out.json)" "0.062 + $(ring 8 8388608)" 0.01
    run --separate-stderr "$plumb" forecast run --model ./toy.csv --compute 1s --update none --over 'backend=ring transport=tcp' --nodes 8
    output="$(tr -s ' \n' ' ' <<< "$output")" # lines are wrapped
    [[ "$output" == *"Check "*" 5 "*" % "*": "*"5 "*"plumb run cluster"* ]]
    # alone, too: what is missing is named
    mkdir alone
    cp run/run.json run/step.csv alone/
    { head -1 run/plan.csv; grep ,step, run/plan.csv; } > alone/plan.csv
    run --separate-stderr "$plumb" forecast alone --model ./toy.csv --compute 1s --update none --nodes 8
    output="$(tr -s ' \n' ' ' <<< "$output")"
    [[ "$output" == *"Check "*"plumb run cluster"* ]]
}

@test "ranks of a node other than measured, and nodes beside a single one, are refused" {
    run -3 --separate-stderr "$plumb" forecast "${job[@]}" --nodes 2 --per-node 4
    output="$(tr -s ' \n' ' ' <<< "$output")"
    [[ "$output" == *" 4 ranks "*"--per-node 1"*"plumb run cluster --hosts FILE"* ]]
    run "$plumb" forecast "${job[@]}" --nodes 2 --per-node 4 --json
    [ "$(jq -r '.points[0].refused' <<< "$output")" = "other ranks of a node" ]
    "$plumb" forecast "${job[@]}" --nodes 1 --json | jq -e '.points[0].step_s == 0.06'
    # four ranks of one node, and no other node
    made_by tools/make-cluster.py single --per-node 8
    single=(single --model ./toy.csv --compute 60ms --update none --over 'backend=ring transport=tcp')
    run -3 --separate-stderr "$plumb" forecast "${single[@]}" --nodes 2
    "$plumb" forecast "${single[@]}" --nodes 1 --json | jq -e '.points[0].ranks == 8 and .points[0].step_s > 0.06'
}

@test "what is hidden is of the way that sums go and of its largest vector, also where that is nothing" {
    python3 - <<'END'
import csv
rows = list(csv.DictReader(open("run/allreduce.csv")))
like = next(r for r in rows if r["metric"] == "time" and r["backend"] == "ring" and r["transport"] == "tcp" and r["ranks"] == "8" and not r["model"])
with open("run/allreduce.csv", "a", newline="") as out, open("run/plan.csv", "a") as plan:
    for case, (transport, size, hidden) in enumerate((("rdma", 65536, 95), ("tcp", 65536, 80), ("tcp", 67108864, 0), ("rdma", 67108864, 90)), 9001):
        plan.write(f"done,0001,{case},{case},1,allreduce,,60,,,node1;node2\n")
        more = dict(like, case=case, transport=transport, size=size, vector_bytes=size, overlap="true", metric="overlap", unit="percent", value=hidden,
                    ci_low=hidden, ci_high=hidden, min=hidden, max=hidden, mean=hidden, p50=hidden, limit="", percent_of_limit="")
        csv.DictWriter(out, rows[0].keys(), lineterminator="\n").writerow(more)
END
    "$plumb" forecast "${job[@]}" --nodes 8 --json > out.json
    # nothing hidden: each takes as long as if it went alone, one after another
    near "$(jq '.points[0].step_s' out.json)" "0.06 + 2 * $(ring 8 16777216)" 0.01
    "$plumb" forecast run --model ./toy.csv --compute 60ms --update none --bucket 16M --over 'backend=ring transport=rdma' --nodes 8 --json > other.json
    jq -e '.points[0].step_s < '"$(jq '.points[0].step_s' out.json)" other.json
}

@test "--out writes a report with the forecast, Markdown and a plot" {
    "$plumb" forecast "${job[@]}" --nodes 2..64x2 --out out > /dev/null
    grep -q "<section id='forecast'>" out/report.html
    grep -q '^# Forecast: toy' out/forecast/forecast.md
    grep -q '^| *Nodes' out/forecast/forecast.md
    [ -s out/forecast/forecast.svg ]
}

@test "another network has other bytes a second, and the time of a message stays" {
    "$plumb" forecast "${job[@]}" --nodes 8 --no-overlap --swap network=1:10 --json > out.json
    near "$(jq '.points[0].step_s' out.json)" "0.06 + 2 * 2 * 7 * (38e-6 + 16777216 / 8 / 1.18e9)" 0.01
    [ "$(jq -r .swapped out.json)" = "network: 1 to 10 Gb/s" ]
    jq -e '.points[0] | .step_high_s / .step_s > 1.06' out.json
    # a wrong FROM would show: a byte takes 1 / 0.118 GB/s, which is 0.944 Gb/s, within the noise of the rows
    "$plumb" forecast "${job[@]}" --nodes 8 --swap network=100:400 | tr -s ' \n' ' ' |
        grep -q 'Swapped network: 100 to 400 Gb/s: .*0\.94[0-9] Gb/s'
    # the measured link is eth0 of 1000 Mbit/s: rows have 0.956 of it as their limit
    step="$(jq '.points[0].step_s' out.json)"
    for to in 10Gb/s ethernet.10gbe; do
        "$plumb" forecast "${job[@]}" --nodes 8 --no-overlap --swap "network=$to" --json > out.json
        [ "$(jq -r .swapped out.json)" = "network: 1 to 10 Gb/s" ]
        near "$(jq '.points[0].step_s' out.json)" "$step" 1e-9
    done
}

@test "a swap that nobody can compute is refused with what to say" {
    refused() { # refused SWAP PATTERN
        run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 8 --swap "$1"
        # shellcheck disable=SC2154 # run sets it
        [ "$status" -eq 2 ] && [[ "$stderr" == "plumb forecast: --swap"*$2* ]] || { echo "$1: $status $stderr"; return 1; }
    }
    refused network=10 "'10'"
    refused network=10GB/s Gb/s
    refused network=-1:10 " 0"
    refused network=1:10,network=1:20 network
    refused network=0.05:1 "0.05 Gb/s"
    refused disk=1:10 "network=, products= or memory="
    refused network=ethernet.11gbe "network"
    refused network=gone.yaml:ethernet.x "gone.yaml"
    refused products=gpu.mi300x "rate"
    refused memory=1000GB/s "memory=FROM:TO"
    refused products=1:2 --compute
    # two rates fit the limit of the rows: which link carried them is not known
    sed -i 's/"speed_mbps": 10000,/"speed_mbps": 960,/' run/run.json
    refused network=10Gb/s "measured network"
    # so would four of another rate
    sed -i 's/"speed_mbps": 960,/"speed_mbps": 250,/' run/run.json
    refused network=10Gb/s "measured network"
}

# make_node DTYPE: a run of three products, of 200, 220 and 240 W.
make_node() {
    python3 - "$top" "$1" <<'END'
import csv, os, sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
columns = __import__("make-run").row_columns()
params = "device dtype data m n k".split()
os.mkdir("node")
with open("node/gemm.csv", "w", newline="") as out, open("node/plan.csv", "w") as plan:
    rows = csv.DictWriter(out, params + columns, restval="", lineterminator="\n")
    rows.writeheader()
    plan.write("state,rows,order,case,repeat,bench,arguments,timeout_s\n")
    for case, (m, watts) in enumerate(((512, 200), (1024, 220), (2048, 240)), 1):
        plan.write(f"done,0001,{case},{case},1,gemm,,60\n")
        rows.writerow(dict(device="host", dtype=sys.argv[2], data="random", m=m, n=2048, k=2048, metric="throughput", unit="TFLOP/s", value=1, ci_low=.99, ci_high=1.01,
                           samples=60, stop="converged", origin="measured", status="ok", run="node", case=case, repeat=1, host="node1", elapsed_s=10, cpu_watts=watts))
END
    sed 's/"suite": "cluster"/"suite": "node"/;s/"run": "run"/"run": "node"/' run/run.json > node/run.json
}

@test "offers are one table with the ratio to the first, whose interval says what cannot be told apart" {
    make_offers
    "$plumb" forecast "${job[@]}" --price offers.yaml --out out > out.txt
    grep -q '^| Offer .*| Cost EUR .*| Samples/EUR .*| Samples/kWh ' out/forecast/offers.md
    grep -q '^| fast | 8 |.*([0-9.]* to [0-9.]*)' out/forecast/offers.md
    [ "$(grep -c '^| [mf][a-z]* |' out/forecast/offers.md)" -eq 3 ]
    grep -q "'fast' .* 0\.94[0-9] Gb/s" out/forecast/offers.md
    grep -q 'Cost EUR' out/report.html
    # the same machines, one for a little more: only the prices differ, and hosts are luck
    sed -i '/name: fast/d;/name: frugal/d' offers.yaml
    sed -n '/name: measured/{s/measured/dearer/;s/20000/21000/;p}' offers.yaml > dearer
    cat dearer >> offers.yaml
    "$plumb" forecast run --model ./toy.csv --compute 600ms --update none --over 'backend=ring transport=tcp' --price offers.yaml --json > out.json
    jq -e '.offers[1].money_to_first | .value < 0.99 and .low < 1 and .high > 1' out.json
}

@test "a GPU whose limit is by its highest clock is swapped from its datasheet's rate" {
    make_node bf16
    # 132 multiprocessors at 1980 MHz: 1070.5 TFLOP/s, of which the datasheet states 989.4
    sed -i 's/^host,/cuda:0,/' node/gemm.csv
    gpu() { # gpu NAME
        jq '.limits = [{"key": "gpu.0.bf16_tflops", "value": 1070.5, "unit": "TFLOP/s", "source": "nvml", "detail": ""}] | .machine.gpus.devices = [{"name": "'"$1"'"}]' \
            node/run.json > tmp.json && mv tmp.json node/run.json
    }
    gpu "NVIDIA H100 80GB HBM3"
    job=(node --model ./toy.csv --update none --nodes 1 --json)
    "$plumb" forecast "${job[@]}" > own.json
    "$plumb" forecast "${job[@]}" --swap products=gpu.h100-sxm5-80gb > same.json
    [ "$(jq -r .swapped same.json)" = "products: 989.4 to 989.4 TFLOP/s" ]
    near "$(jq '.points[0].step_s' same.json)" "$(jq '.points[0].step_s' own.json)" 1e-9
    gpu "a GPU of no datasheet"
    run -2 --separate-stderr "$plumb" forecast "${job[@]}" --swap products=gpu.mi300x
    [[ "$stderr" == *"products=FROM:TO"* ]]
}
