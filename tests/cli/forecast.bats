#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2030,SC2031 # each test has variables of its own
# plumb forecast, the command: from made-up runs to an answer, what is missing, what is refused, and its files.

bats_require_minimum_version 1.5.0

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    cd "$BATS_TEST_TMPDIR" || return 1
    python3 "$top/tests/tools/make-cluster.py" run
    # two layers of 4 million numbers
    printf 'layer,parameters,m,n,k,count,backward,output\na,4194304,1,2048,2048,1,2,2048\nb,4194304,1,2048,2048,1,2,2048\n' > toy.csv
    job=(run --model ./toy.csv --compute 60ms --update none --bucket 16M --over 'backend=ring transport=tcp')
}

# ring RANKS BYTES: seconds of make-cluster.py's ring over TCP: 38 us a message, 0.118 GB/s.
ring() {
    python3 -c "print(2 * ($1 - 1) * (38e-6 + $2 / $1 / 0.118e9))"
}

near() { # near VALUE EXPECTED SHARE
    python3 -c "import math, sys; sys.exit(abs(($1) / ($2) - 1) > $3)" || { echo "$1 is not $2"; return 1; }
}

@test "a step is what the model says of measured sums, by number of nodes" {
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 8,16 --no-overlap --json
    [ "$status" -eq 0 ]
    echo "$output" > out.json
    sum8="$(ring 8 16777216)" sum16="$(ring 16 16777216)"
    near "$(jq '.points[0].step_s' out.json)" "0.06 + 2 * $sum8" 0.01
    near "$(jq '.points[1].step_s' out.json)" "0.06 + 2 * $sum16" 0.01
    near "$(jq '.points[1].samples_per_s' out.json)" "16 / (0.06 + 2 * $sum16)" 0.01
    near "$(jq '.points[0].compute_s' out.json)" 0.06 1e-6
    near "$(jq '.points[0].held_out' out.json)" 1 0.02
    jq -e '.points[1] | .step_low_s < .step_s and .step_s < .step_high_s and .bound == "network"' out.json
    # while the first layer's backward pass of 20 ms goes on, the second's sum does
    "$plumb" forecast "${job[@]}" --nodes 8 --json > with.json
    jq -e '.points[0].step_s < '"$(jq '.points[0].step_s' out.json)" with.json
}

@test "numbers of nodes are shown once each, the fewest first" {
    "$plumb" forecast "${job[@]}" --nodes 8,2,1,8 --json > out.json
    [ "$(jq -c '[.points[].nodes]' out.json)" = "[1,2,8]" ]
    # nothing was held out of a step without sums
    [ "$(jq -c '[.points[] | has("held_out")]' out.json)" = "[false,true,true]" ]
    "$plumb" forecast "${job[@]}" --nodes 8,2,1 | grep -q 'Bound by  compute from 1 node on .*; network from 2 nodes on'
}

@test "beyond three doublings there is no forecast, and it says what to measure" {
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 4..1024x2
    [ "$status" -eq 0 ]
    [[ "$output" == *"Refused   128 to 1024 nodes: more than three doublings beyond the 8 ranks"* ]]
    [[ "$output" == *"measure at 16 ranks for 128 nodes, at 128 for all: plumb run cluster --hosts FILE"* ]]
    # one row, as one line of the answer, with the numbers of ranks
    [ "$(grep -c 'refused (1)' <<< "$output")" -eq 1 ]
    grep -Eq '^ *128 to 1024 +128 to 1024 +refused \(1\)$' <<< "$output"
    "$plumb" forecast "${job[@]}" --nodes 4..1024x2 --out group > /dev/null
    grep -Eq '^\| *128 to 1024 *\|.*\| \*\*refused\*\*' group/forecast/forecast.md
    [ "$(grep -c '\*\*refused\*\*' group/forecast/forecast.md)" -eq 1 ]
    grep -q '128 to 1024 nodes: more than three doublings' group/report.html
    "$plumb" forecast "${job[@]}" --nodes 64,128 --json > out.json
    [ "$(jq -r '[.points[].refused] | join(",")' out.json)" = ",too far" ]
    jq -e '.points[1] | has("step_s") | not' out.json
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 512
    [ "$status" -eq 3 ]
    [[ "$output" == *"512 nodes: more than three"*"measure at 64 ranks: plumb"* ]]
    # two layers of 16 MiB, and as many gradients: fewer activations change nothing
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 512 --memory 50M
    [[ "$output" == *"it does not fit, even without activations"* && "$output" != *"it fits only if"* ]]
}

@test "sums at one number of ranks alone: known there, and nowhere else" {
    python3 - <<'END'
import csv
rows = list(csv.DictReader(open("run/allreduce.csv")))
with open("run/allreduce.csv", "w", newline="") as out:
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(r for r in rows if r["ranks"] == "8")
END
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 8,16 --no-overlap
    [ "$status" -eq 0 ]
    [[ "$output" == *"16 nodes: sums over ranks: measured at 8 ranks alone"* ]]
    # one reason, with forecasts between
    "$plumb" forecast "${job[@]}" --nodes 2,4,8,16 | grep -q 'Refused  *2 and 4, 16 nodes: sums over ranks: measured at 8 ranks alone'
    "$plumb" forecast "${job[@]}" --nodes 4,8,16 --no-overlap --json > out.json
    near "$(jq '.points[1].step_s' out.json)" "0.06 + 2 * $(ring 8 16777216)" 0.01
    [ "$(jq -r '[.points[].refused] | join(",")' out.json)" = "one number of ranks,,one number of ranks" ]
}

@test "sums inside one node show no link between nodes" {
    python3 "$top/tests/tools/make-cluster.py" inside --per-node 8
    words=(inside --model ./toy.csv --compute 60ms --update none --bucket 16M --over 'backend=ring transport=tcp' --no-overlap)
    "$plumb" forecast "${words[@]}" --nodes 1,2 --json > out.json
    [ "$(jq -r '[.points[] | [.ranks, .refused // "given"] | join(" ")] | join(",")' out.json)" = "8 given,16 other ranks of a node" ]
    near "$(jq '.points[0].step_s' out.json)" "0.06 + 2 * $(ring 8 16777216)" 0.01
    run --separate-stderr "$plumb" forecast "${words[@]}" --nodes 2
    [ "$status" -eq 3 ]
    [[ "$output" == *"on one node alone"* ]]
}

@test "measured steps of the model are held against their forecasts" {
    python3 - <<'END'
import csv
like = next(csv.DictReader(open("run/allreduce.csv")))
columns = [name for name in like if name not in "op redop size fill scaling in_place segment algorithm gap buffer vector_bytes chosen".split()]
columns = "schedule seq batch tp pp ep micro_batches zero ps dp update compute_ms update_ms".split() + columns
with open("run/step.csv", "w", newline="") as out, open("run/plan.csv", "a") as plan:
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    # two layers of 16 MiB, 40 ms backward: the first sum begins at 40 of 60 ms
    none = dict(batch=1, pp=1, zero=0, ps=0, update="none", schedule="1f1b")
    for case, (model, ranks, overlap, transport, ms, more) in enumerate((("/x/toy.csv", 8, "none", "tcp", 600, {}), ("toy", 4, "backward", "tcp", 500, {}),
                                                                  ("toy", 2, "none", "rdma", 1, {}), ("other", 8, "none", "tcp", 1, {}),
                                                                  ("toy", 8, "none", "tcp", 900, {}), ("toy", 8, "none", "tcp", 300, {}),
                                                                  ("toy", 2, "none", "tcp", 700, dict(update="adam", update_ms=100)),
                                                                  ("toy", 2, "none", "tcp", 701, dict(update="adam", update_ms="")),
                                                                  ("toy", 2, "none", "tcp", 702, dict(ps=1)), ("toy", 2, "none", "tcp", 704, dict(pp=2, schedule="gpipe")),
                                                                  ("toy", 2, "none", "tcp", 703, dict(zero=3)),
                                                                  ("toy", 1, "none", "tcp", 61, {}), ("toy", 1, "none", "tcp", 63, dict(batch=2)),
                                                                  ("toy", 1, "none", "tcp", 90, dict(batch=3, origin="measured")),
                                                                  ("other", 1, "none", "tcp", 460, dict(batch=4, origin="measured")), ("other", 1, "none", "tcp", 260, {})), 8001):
        plan.write(f"done,0001,{case},{case},1,step,,60,,,node1;node2\n")
        writer.writerow(dict(like, case=case, model=model, ranks=ranks, nodes=ranks, seq=0, tp=1, ep=1, micro_batches=1,
                             dp=ranks, bucket=16 << 20, dtype={900: "f64", 300: "i8"}.get(ms, "f32"), overlap=overlap, backend="ring", transport=transport, compute_ms=60,
                             metric="step_time", unit="ms", value=ms, ci_low=ms, ci_high=ms, limit="", percent_of_limit="", **{"origin": "simulated", **none, **more}))
END
    run --separate-stderr "$plumb" forecast run --model ./toy.csv --dtype f64 --nodes 8
    [ "$status" -eq 2 ]
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
    "$plumb" forecast run --model ./third.csv --compute 1s --update none --nodes 1 | tr -s ' \n' ' ' | grep -q 'operations: 215.0 ms, of measured steps of other models on one rank'
    [ "$(jq -c '[.checks_left_out[] | [.measured_s, .left_out, .refused]] | sort' out.json)" = \
        '[[0.001,"another way",null],[0.701,"update",null],[0.702,"servers",null],[0.703,"refused","not measured"],[0.704,"order",null]]' ]
    # elements of 8 bytes, and of 1: twice the buckets, and both layers in one of 8 MiB
    near "$(jq '.checks[1].step_s' out.json)" "0.062 + 2 * $(ring 8 33554432)" 0.01
    near "$(jq '.checks[2].step_s' out.json)" "0.062 + $(ring 8 8388608)" 0.01
    run --separate-stderr "$plumb" forecast run --model ./toy.csv --compute 1s --update none --over 'backend=ring transport=tcp' --nodes 8
    output="$(tr -s ' \n' ' ' <<< "$output")" # lines are wrapped
    [[ "$output" == *"Check forecasts of 5 measured steps are "*" % of their measured times: "*"5 more are left out"* ]]
    [[ "$output" == *"parameter servers are not modelled"* && "$output" == *"another backend or transport"* && "$output" == *"how long the update took"* &&
        "$output" == *"scattered sums over ranks: not measured (plumb run cluster"* ]]
    # however many there are
    python3 - <<'END'
import csv
rows = list(csv.DictReader(open("run/step.csv")))
with open("run/step.csv", "w", newline="") as out, open("run/plan.csv", "a") as plan:
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for case in range(9001, 9101):
        plan.write(f"done,0001,{case},{case},1,step,,60,,,node1;node2\n")
        writer.writerow(dict(rows[0], case=case, bucket=4 * case))
END
    "$plumb" forecast run --model ./toy.csv --compute 1s --update none --over 'backend=ring transport=tcp' --nodes 8 --json > out.json
    [ "$(jq '.checks | length' out.json)" -eq 105 ]
    # alone, too: what is missing is named
    mkdir alone
    cp run/run.json run/step.csv alone/
    { head -1 run/plan.csv; grep ,step, run/plan.csv; } > alone/plan.csv
    run --separate-stderr "$plumb" forecast alone --model ./toy.csv --compute 1s --update none --nodes 8
    output="$(tr -s ' \n' ' ' <<< "$output")"
    [[ "$output" == *"Check no measured step has a forecast: sums over ranks: not measured (plumb run cluster"* ]]
}

@test "groups inside nodes are refused, with what a forecast needs" {
    sed -i 's/output$/output,kind,split/;s/^[ab].*/&,,column/' toy.csv
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 8 --per-node 4 --tp 2
    [ "$status" -eq 3 ]
    [[ "$output" == *"--tp, --pp and --ep beside several ranks a node"*"--per-node 1"* ]]
    run "$plumb" forecast "${job[@]}" --nodes 8 --per-node 4 --tp 2 --json
    [ "$(jq -r '.points[0].refused' <<< "$output")" = "groups in nodes" ]
}

@test "ranks of a node other than measured, and nodes beside a single one, are refused" {
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 2 --per-node 4
    [ "$status" -eq 3 ]
    output="$(tr -s ' \n' ' ' <<< "$output")"
    [[ "$output" == *"measure with 4 ranks on each node, or say --per-node 1"*"plumb run cluster --hosts FILE"* ]]
    run "$plumb" forecast "${job[@]}" --nodes 2 --per-node 4 --json
    [ "$(jq -r '.points[0].refused' <<< "$output")" = "other ranks of a node" ]
    "$plumb" forecast "${job[@]}" --nodes 1 --json | jq -e '.points[0].step_s == 0.06'
    # four ranks of one node, and no other node
    python3 "$top/tests/tools/make-cluster.py" single --per-node 8
    single=(single --model ./toy.csv --compute 60ms --update none --over 'backend=ring transport=tcp')
    run --separate-stderr "$plumb" forecast "${single[@]}" --nodes 2
    [ "$status" -eq 3 ]
    [[ "$output" == *"measure on several nodes"* ]]
    "$plumb" forecast "${single[@]}" --nodes 1 --json | jq -e '.points[0].ranks == 8 and .points[0].step_s > 0.06'
}

@test "groups that do not divide the ranks are refused, and jobs that are none are wrong use" {
    refused() { # refused PATTERN OPTION...
        run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 8 "${@:2}"
        # shellcheck disable=SC2154 # run sets it
        [ "$status" -eq 2 ] && [[ "$stderr" == "plumb forecast: "*$1* ]] || { echo "$*: $status $stderr"; return 1; }
    }
    refused "a batch of 5 cannot be cut into 3 equal micro-batches: --batch 6" --batch 5 --micro 3
    refused "no layer how it is split: leave --tp out" --tp 2
    refused "has no experts: leave --ep out" --ep 2
    refused "a batch is a whole number of samples, from 1 on" --batch 0
    refused "a batch is a whole number of samples, from 1 on" --batch 1.5
    refused "has no sequences: leave --seq out" --seq 128
    printf 'experts,8\nlayer,parameters,m,n,k,kind\na,4194304,1,2048,2048,expert\n' > moe.csv
    refused "8 experts cannot be spread over 3 ranks evenly" --model ./moe.csv --ep 3
    refused "8 experts cannot be spread over 16 ranks evenly" --model ./moe.csv --ep 16
    printf 'layer,parameters\na,4194304\n' > flat.csv
    refused "no layer of the model has a product, by which --compute is divided" --model ./flat.csv
    sed -i 's/output$/output,kind,split/;s/^[ab].*/&,,column/' toy.csv
    refused "no number of nodes holds the model once" --tp 16
    "$plumb" forecast "${job[@]}" --nodes 7,8 --tp 2 --json > out.json
    [ "$(jq -r '[.points[] | .refused // "given"] | join(",")' out.json)" = "unequal groups,given" ]
    "$plumb" forecast "${job[@]}" --nodes 7,8 --tp 2 | tr -s ' \n' ' ' | grep -q 'do not divide these ranks into equal groups choose ranks that are a multiple of 2: --nodes'
}

@test "efficiency is in percent, and a number of samples is a plain number" {
    "$plumb" forecast "${job[@]}" --nodes 1,8 --out out > out.txt
    grep -q 'toy, 1 sample a rank' out.txt
    grep -q '  Efficiency against 1 node  ' out.txt
    grep -q '| Efficiency against 1 node |' out/forecast/forecast.md
    grep -q 'no loss against 1 node' out/forecast/plots.gp
    grep -Eq '^ *1 .* 100 % ' out.txt
    # on 8 nodes: the step alone, of a step with sums
    "$plumb" forecast "${job[@]}" --nodes 1,8 --json > out.json
    share="$(jq '.points[0].step_s / .points[1].step_s * 100' out.json)"
    grep -Eq "^ *8 .* $(printf '%.3g' "$share")[0-9.]* % " out.txt || { cat out.txt; echo "$share"; false; }
    near "$(jq '.points[1].efficiency' out.json)" "$share / 100" 1e-6
    [ "$(jq .efficiency_against_nodes out.json)" = 1 ]
    # the smallest that was asked for, and has a forecast
    "$plumb" forecast "${job[@]}" --nodes 8,4 --json > out.json
    [ "$(jq -c '[.efficiency_against_nodes, .points[0].efficiency]' out.json)" = "[4,1]" ]
    near "$(jq '.points[1].efficiency' out.json)" "$(jq '.points[0].step_s / .points[1].step_s' out.json)" 1e-6
}

@test "a part that no run has is named with the command that measures it" {
    run --separate-stderr "$plumb" forecast run --model ./toy.csv --nodes 8
    [ "$status" -eq 3 ]
    [[ "$output" == *"the rate of matrix products"*"plumb run node --only gemm"* ]]
    [[ "$output" == *"memory bandwidth"*"plumb run node --only memory"* ]]
    run --separate-stderr "$plumb" forecast "${job[@]}" --zero 3 --nodes 8
    [[ "$output" == *"gathering over ranks"* ]]
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
    if command -v gnuplot > /dev/null; then
        [ -s out/forecast/forecast.svg ]
    fi
}

@test "another network has other bytes a second, and the time of a message stays" {
    "$plumb" forecast "${job[@]}" --nodes 8 --no-overlap --swap network=1:10 --json > out.json
    near "$(jq '.points[0].step_s' out.json)" "0.06 + 2 * 2 * 7 * (38e-6 + 16777216 / 8 / 1.18e9)" 0.01
    [ "$(jq -r .swapped out.json)" = "network: 1 to 10 Gb/s" ]
    jq -e '.points[0] | .step_high_s / .step_s > 1.06' out.json
    # a wrong FROM would show: a byte takes 1 / 0.118 GB/s, which is 0.944 Gb/s, within the noise of the rows
    "$plumb" forecast "${job[@]}" --nodes 8 --swap network=100:400 | tr -s ' \n' ' ' |
        grep -q 'Swapped network: 100 to 400 Gb/s: not measured; the measured sums moved 0\.94[0-9] Gb/s over the links of a node'
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
    refused network=10 "lacks its unit"
    refused network=10GB/s "in another than Gb/s"
    refused network=-1:10 "above 0"
    refused network=1:10,network=1:20 "stands twice"
    refused network=0.05:1 "Gb/s over the links of a node, which no links of 0.05 Gb/s carry"
    refused disk=1:10 "network=, products= or memory="
    refused network=ethernet.11gbe "has no rate of network"
    refused network=gone.yaml:ethernet.x "gone.yaml"
    refused products=gpu.mi300x "rate"
    refused memory=1000GB/s "no run tells the rate of the measured memory: say memory=FROM:TO in GB/s"
    refused products=1:2 "changes nothing beside --compute"
    # two rates fit the limit of the rows: which link carried them is not known
    sed -i 's/"speed_mbps": 10000,/"speed_mbps": 960,/' run/run.json
    refused network=10Gb/s "no run tells the rate of the measured network"
    # so would four of another rate
    sed -i 's/"speed_mbps": 960,/"speed_mbps": 250,/' run/run.json
    refused network=10Gb/s "no run tells the rate of the measured network"
}

@test "wrong use is refused with what to do" {
    for words in "" "run" "run --model nothing" "run --model ./toy.csv --pp 3 --nodes 6 --compute 1ms" "run --model ./toy.csv --tp 64 --nodes 8" "gone --model ./toy.csv"; do
        # shellcheck disable=SC2086 # several words
        run --separate-stderr "$plumb" forecast $words
        [ "$status" -eq 2 ] || { echo "$words: $status"; return 1; }
        [[ "$stderr" == "plumb forecast: "* ]]
    done
    run --separate-stderr "$plumb" forecast run --model gpt2xl
    [[ "$stderr" == *"no model 'gpt2xl': did you mean 'gpt2-xl'? the models are bert-large, dlrm, gpt2-xl, "* ]]
    "$plumb" forecast --help | grep -q 'plumb forecast RUN --model llama3-8b'
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

# offers.yaml: as measured, with ten times the network, and twice the nodes that draw less.
make_offers() {
    cat > offers.yaml <<'END'
currency: EUR
energy_price: 0.25 EUR/kWh
time: 4 years
use: 80 %
cooling: 30 %
offers:
  - {name: measured, nodes: 8, node_price: 20000 EUR, node_power: 1000 W, idle_power: 100 W, switches: 1, switch_price: 4000 EUR, switch_power: 200 W}
  - {name: fast, nodes: 8, node_price: 21500 EUR, node_power: 1.02 kW, switches: 1, switch_price: 14000 EUR, switch_power: 400 W, swap: network=10Gb/s}
  - {name: frugal, nodes: 16, node_price: 20900 EUR, node_power: 700 W, once: 5000 EUR, yearly: 1000 EUR/year}
END
}

@test "offers are compared by samples for money and energy, as a program of its own computes them" {
    make_offers
    run --separate-stderr "$plumb" forecast "${job[@]}" --no-overlap --price offers.yaml --nodes 1..64x2 --json
    [ "$status" -eq 0 ]
    echo "$output" > out.json
    python3 - <<'END'
import json
out = json.load(open("out.json"))
def ring(n, rate): return 2 * (n - 1) * (38e-6 + 16777216 / n / rate)
def step(n, rate): return 0.06 + 2 * ring(n, rate)
hours, use = 4 * 365.25 * 24, 0.8
def bill(nodes, price, watts, idle=0, switches=0, switch_price=0, switch_watts=0, once=0, yearly=0):
    kwh = (nodes * (watts * use + idle * (1 - use)) + switches * switch_watts) / 1000 * 1.3 * hours
    return kwh, nodes * price + switches * switch_price + once + 4 * yearly + 0.25 * kwh
want = {"measured": (8, 0.118e9, bill(8, 20000, 1000, 100, 1, 4000, 200)), "fast": (8, 1.18e9, bill(8, 21500, 1020, 0, 1, 14000, 400)),
        "frugal": (16, 0.118e9, bill(16, 20900, 700, once=5000, yearly=1000))}
per = {}
for offer in out["offers"]:
    nodes, rate, (kwh, cost) = want[offer["name"]]
    samples = nodes / step(nodes, rate) * hours * 3600 * use
    assert abs(offer["cost"] / cost - 1) < 1e-7, offer
    assert abs(offer["energy_j"] / (kwh * 3.6e6) - 1) < 1e-7, offer
    assert abs(offer["samples_per_money"]["value"] / (samples / cost) - 1) < 0.01, offer
    assert abs(offer["samples_per_joule"]["value"] / (samples / kwh / 3.6e6) - 1) < 0.01, offer
    per[offer["name"]] = offer["samples_per_money"]["value"]
assert len(out["pairs"]) == 3
for pair in out["pairs"]:
    money = pair["money"]
    assert abs(money["value"] / (per[pair["first"]] / per[pair["second"]]) - 1) < 1e-6
    assert money["low"] <= money["alike"]["low"] <= money["value"] <= money["alike"]["high"] <= money["high"]
    apart = "first" if money["low"] > 1 else "second" if money["high"] < 1 else "cannot be told apart"
    assert money["verdict"] == apart, pair
END
    [ "$(jq -r '.offers[1].swapped' out.json)" = "network: 1 to 10 Gb/s" ]
}

@test "a page for a manager has the answer first, and says what cannot be told apart" {
    make_offers
    "$plumb" forecast "${job[@]}" --price offers.yaml --nodes 1..64x2 --out out > out.txt
    sed -n 3,5p out/forecast/offers.md > first.txt
    grep -q '^- \*\*Question\*\*: which of 3 offers trains toy best, over 4 years' first.txt
    grep -q '^- \*\*Per EUR\*\*: fast: .* times (.* to .*) as many samples as' first.txt
    grep -q "id='offers'" out/report.html
    grep -q 'as stated' out/forecast/offers.md
    grep -q 'cooling takes 30 %' out/forecast/offers.md
    # the same machines, one for a little more: only the prices differ, and hosts are luck
    sed -i '/name: fast/d;/name: frugal/d' offers.yaml
    sed -n '/name: measured/{s/measured/dearer/;s/20000/21000/;p}' offers.yaml > dearer
    cat dearer >> offers.yaml
    run "$plumb" forecast run --model ./toy.csv --compute 600ms --update none --over 'backend=ring transport=tcp' --price offers.yaml
    output="$(tr -s ' \n' ' ' <<< "$output")" # lines are wrapped
    [[ "$output" == *"undecided: these cannot be told apart by what was measured: 'measured' and 'dearer'"* ]]
    [[ "$output" == *"Decides"*"with equally good hosts and network cores, 'measured' gives 1.0"* ]]
}

@test "a file of offers that is wrong, or offers without a forecast, are refused" {
    make_offers
    sed 's/21500 EUR/21500/' offers.yaml > bad.yaml
    run --separate-stderr "$plumb" forecast "${job[@]}" --price bad.yaml
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"bad.yaml:8: '21500' lacks its unit: it is in EUR"* ]]
    sed 's/10Gb.s/10/' offers.yaml > bad.yaml
    run --separate-stderr "$plumb" forecast "${job[@]}" --price bad.yaml
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"bad.yaml: 'fast': --swap: '10' lacks its unit"* ]]
    sed 's/nodes: 16/nodes: 512/' offers.yaml > far.yaml
    run "$plumb" forecast "${job[@]}" --price far.yaml
    [ "$status" -eq 0 ]
    [[ "$output" == *"'frugal' has no forecast of 512 nodes: more than three doublings"* ]]
    sed 's/nodes: 8/nodes: 512/' far.yaml > bad.yaml
    run --separate-stderr "$plumb" forecast "${job[@]}" --price bad.yaml
    [ "$status" -eq 3 ]
    run --separate-stderr "$plumb" forecast "${job[@]}" --price gone.yaml
    [ "$status" -eq 2 ]
    sed 's/swap: network=10Gb.s/runs: [gone]/' offers.yaml > bad.yaml
    run --separate-stderr "$plumb" forecast "${job[@]}" --price bad.yaml
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"'fast': "*gone* ]]
    # --compute is of the command line's runs
    python3 "$top/tests/tools/make-cluster.py" other --seed 2
    sed 's/swap: network=10Gb.s/runs: [other]/' offers.yaml > bad.yaml
    run --separate-stderr "$plumb" forecast "${job[@]}" --price bad.yaml
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"'fast': --compute is of other runs: say its own"* ]]
    sed 's/swap: network=10Gb.s/runs: [other], compute: 60 ms/' offers.yaml > other.yaml
    "$plumb" forecast "${job[@]}" --price other.yaml --json > out.json
    jq -e '.offers[1].step_s / .offers[0].step_s | . > 0.98 and . < 1.02 and . != 1' out.json
}

@test "memory of the host is swapped from the rate of its channels, not from the limit of a row" {
    python3 - "$top" <<'END'
import csv, os, sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
columns = __import__("make-run").row_columns()
params = "device op node memory_node stores write_allocate working_set".split()
os.mkdir("node")
with open("node/memory.csv", "w", newline="") as out, open("node/plan.csv", "w") as plan:
    rows = csv.DictWriter(out, params + columns, restval="", lineterminator="\n")
    rows.writeheader()
    plan.write("state,rows,order,case,repeat,bench,arguments,timeout_s\n")
    plan.write("done,0001,1,1,1,memory,,60\n")
    rows.writerow(dict(device="host", op="triad", node="any", memory_node="local", stores="regular", write_allocate="yes", working_set=1 << 32, metric="bandwidth", unit="GB/s",
                       value=240, ci_low=239, ci_high=241, samples=60, stop="converged", limit=300, limit_kind="sysfs", percent_of_limit=80, origin="measured", status="ok",
                       run="node", case=1, repeat=1, host="node1"))
END
    jq '.suite = "node" | .run = "node" | .limits = [{"key": "dram.gbytes_per_s", "value": 400, "unit": "GB/s", "source": "sysfs", "detail": ""}]' run/run.json > node/run.json
    swapped=(forecast node "${job[@]}" --update adam --nodes 1 --json)
    "$plumb" "${swapped[@]}" --swap memory=800GB/s > out.json
    [ "$(jq -r .swapped out.json)" = "memory: 400 to 800 GB/s" ]
    # 28 bytes for each of 8388608 parameters
    near "$(jq '.points[0].update_s' out.json)" "28 * 8388608 / 480e9" 1e-6
    sed -i 's/dram.gbytes_per_s/dram.other/' node/run.json
    run --separate-stderr "$plumb" "${swapped[@]}" --swap memory=800GB/s
    [ "$status" -eq 2 ]
}

@test "measured power comes from the rows of products, with the error of its counter" {
    make_node f32
    make_offers
    sed -i 's/node_power: 1000 W, idle_power: 100 W/node_power: measured, rest_power: 300 W/' offers.yaml
    "$plumb" forecast node "${job[@]}" --no-overlap --price offers.yaml --json > out.json
    # 8 nodes of 300 + 220 W, 80 % of the time, and a switch
    near "$(jq '.offers[0].energy_j' out.json)" "(8 * 520 * 0.8 + 200) * 1.3 * 4 * 365.25 * 86400" 1e-8
    # 5 % and 0.1 s of 10 s: at most 240 x 1.051 W
    high="$(jq '.offers[0] | .samples_per_joule.value / .samples_per_joule.low' out.json)"
    slower="$(jq '.offers[0] | .step_high_s / .step_s' out.json)"
    near "math.log($high)" "math.hypot(math.log($slower), math.log((8 * (300 + 240 * (1 + math.hypot(.05, .01))) * .8 + 200) / (8 * 520 * .8 + 200)))" 1e-4
    "$plumb" forecast node "${job[@]}" --price offers.yaml | tr -s ' \n' ' ' | grep -q '220.0 W of its processors (and memory, where RAPL counts it), measured by RAPL, and 300 W as stated'
    run --separate-stderr "$plumb" forecast "${job[@]}" --price offers.yaml
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"'measured': node_power: no row of products in its runs has measured power"* ]]
    sed 's/rest_power: 300 W/rest_power: 300 W, idle_power: 530 W/' offers.yaml > idle.yaml
    run --separate-stderr "$plumb" forecast node "${job[@]}" --price idle.yaml
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"'measured': node_power: a node draws more when it is idle than was measured"* ]]
}

@test "the example of offers is read" {
    "$plumb" forecast "${job[@]}" --price "$top/examples/offers.yaml" --json | jq -e '.offers | length == 2'
}

@test "all offers are of one job: their gradients and products have one data type" {
    make_node bf16
    cp -r run copy
    sed -i 's/"run": "run"/"run": "copy"/' copy/run.json
    make_offers
    sed -i '/name: frugal/d;s/swap: network=10Gb.s/runs: [copy], compute: 60 ms/' offers.yaml
    # gradients are in bf16: half of the bytes, in both
    "$plumb" forecast node "${job[@]}" --no-overlap --price offers.yaml --json > out.json
    near "$(jq '.offers[0].step_s' out.json)" "0.06 + $(ring 8 16777216)" 0.01
    near "$(jq '.offers[1].step_s' out.json)" "$(jq '.offers[0].step_s' out.json)" 1e-9
    # products in another type are another job's
    sed -i 's/runs: .copy., compute: 60 ms/runs: [copy, other]/' offers.yaml
    cp -r node other
    sed -i 's/^host,bf16,/host,f32,/' other/gemm.csv
    sed -i 's/"run": "node"/"run": "other"/' other/run.json
    run --separate-stderr "$plumb" forecast node run --model ./toy.csv --update none --price offers.yaml
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"'fast': its runs have no products in bf16"* ]]
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
    run --separate-stderr "$plumb" forecast "${job[@]}" --swap products=gpu.mi300x
    [ "$status" -eq 2 ]
    [[ "$stderr" == *"no run tells the rate of the measured products: say products=FROM:TO"* ]]
    # memory of 898 GB/s by its clock (877 MHz x 2 x 4096 bits) as a guest's driver tells it, 900 by its datasheet; rows reach 800
    python3 - "$top" <<'END'
import csv, sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
with open("node/memory.csv", "w", newline="") as out, open("node/plan.csv", "a") as plan:
    rows = csv.DictWriter(out, ["device", "op", "working_set"] + __import__("make-run").row_columns(), restval="", lineterminator="\n")
    rows.writeheader()
    plan.write("done,0001,9,9,1,memory,,60\n")
    rows.writerow(dict(device="cuda:0", op="triad", working_set=4 << 30, metric="bandwidth", unit="GB/s", value=800, ci_low=799, ci_high=801, samples=60, stop="converged",
                       limit=898, limit_kind="nvml", origin="measured", status="ok", run="node", case=9, repeat=1, host="node1"))
END
    job=(node --model ./toy.csv --update adam --nodes 1 --json)
    bandwidth() { # bandwidth NAME SOURCE
        gpu "$1"
        jq '.limits += [{"key": "gpu.0.memory_gbytes_per_s", "value": 898, "unit": "GB/s", "source": "'"$2"'", "detail": ""}]' node/run.json > tmp.json && mv tmp.json node/run.json
    }
    swapped() { # swapped TO FROM-RATE TO-RATE
        "$plumb" forecast "${job[@]}" --swap "memory=$1" > same.json
        [ "$(jq -r .swapped same.json)" = "memory: $2 to $3 GB/s" ]
        # the update of 2 x 4 Mi parameters moves 28 bytes of each
        near "$(jq '.points[0].update_s' same.json)" "2 * 4194304 * 28 / 800e9 * $2 / $3" 1e-6
    }
    bandwidth "Tesla V100-SXM2-32GB" nvml
    swapped gpu.v100-sxm2-32gb 900 900
    swapped gpu.mi300x 900 5325
    # of a GPU that no datasheet has, the clock counts; and a limit that is none by the clock
    bandwidth "a GPU of no datasheet" nvml
    swapped gpu.mi300x 898 5325
    bandwidth "Tesla V100-SXM2-32GB" datasheet
    swapped gpu.mi300x 898 5325
}

@test "sums of other ranks on a node are of another law" {
    "$plumb" forecast "${job[@]}" --nodes 8 --json > own.json
    # 16 ranks, two on each of 8 nodes
    python3 - <<'END'
import csv
rows = list(csv.DictReader(open("run/allreduce.csv")))
with open("run/allreduce.csv", "w", newline="") as out:
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for row in rows:
        if row["backend"] == "ring" and row["transport"] == "tcp" and row["ranks"] == "8" and row["metric"] == "time" and not row["model"] and not row["rank"]:
            case = 9000 + int(row["case"])
            writer.writerow(dict(row, ranks=16, **{name: 2.3 * float(row[name]) for name in ("value", "ci_low", "ci_high")}, case=case))
            open("run/plan.csv", "a").write(f"done,0001,{case},{case},1,allreduce,,60,,,node1;node2\n")
END
    "$plumb" forecast "${job[@]}" --per-node 1 --nodes 8,16 --json > out.json
    near "$(jq '.points[0].step_s' out.json)" "$(jq '.points[0].step_s' own.json)" 1e-9
    jq -e '.points[1] | .held_out > 0.95 and .held_out < 1.05' out.json
    "$plumb" forecast "${job[@]}" --nodes 4,8 --json > out.json
    [ "$(jq -r '[.points[] | [.ranks, .refused // "given"] | join(" ")] | join(",")' out.json)" = "8 one number of ranks,16 given" ]
}
