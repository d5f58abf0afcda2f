#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2030,SC2031,SC2154 # each test has variables of its own
# plumb forecast, the command: from made-up runs to an answer, what is missing, what is refused, and its files.

load common
load made
load forecast

@test "a step is what the model says of measured sums, by number of nodes" {
    run -0 --separate-stderr "$plumb" forecast "${job[@]}" --nodes 8,16 --no-overlap --json
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

# hidden PERCENT...: of the run's sums over TCP, in a repetition each, how much is hidden.
hidden() {
    python3 - "$@" <<'END'
import csv, sys
rows = [row for row in csv.DictReader(open("run/allreduce.csv")) if not row["overlap"]]
like = next(row for row in rows if row["backend"] == "ring" and row["transport"] == "tcp" and row["ranks"] == "8" and row["metric"] == "time"
            and row["op"] == "allreduce" and not row["model"] and not row["rank"])
with open("run/allreduce.csv", "w", newline="") as out, open("run/plan.csv", "a") as plan:
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for repeat, percent in enumerate(sys.argv[1:], 1):
        writer.writerow(dict(like, overlap="yes", metric="overlap", unit="percent", value=percent, ci_low=percent, ci_high=percent, case=9000, repeat=repeat))
        plan.write(f"done,0001,9000,9000,{repeat},allreduce,,60,,,node1;node2\n")
END
    "$plumb" forecast "${job[@]}" --nodes 8 --json > "$1.json"
}

@test "an overlap that was measured counts, and one that says nothing is as if it were not" {
    "$plumb" forecast "${job[@]}" --nodes 8 --json > none.json
    hidden 81 82 80
    jq -e '.points[0].step_s < '"$(jq '.points[0].step_s' none.json)" 81.json
    hidden 5 4 6
    jq -e '.points[0].step_s > '"$(jq '.points[0].step_s' none.json)" 5.json
    hidden 61 -740 30
    [ "$(jq '.points[0].step_s' 61.json)" = "$(jq '.points[0].step_s' none.json)" ]
}

@test "numbers of nodes are shown once each, the fewest first" {
    "$plumb" forecast "${job[@]}" --nodes 8,2,1,8 --json > out.json
    [ "$(jq -c '[.points[].nodes]' out.json)" = "[1,2,8]" ]
    # nothing was held out of a step without sums
    [ "$(jq -c '[.points[] | has("held_out")]' out.json)" = "[false,true,true]" ]
}

@test "beyond three doublings there is no forecast, and it says what to measure" {
    run -0 --separate-stderr "$plumb" forecast "${job[@]}" --nodes 4..1024x2
    [[ "$output" == *"128 to 1024 nodes: "*" 8 ranks"*" 16 ranks "*": plumb run cluster --hosts FILE"* ]]
    # one row, as one line of the answer, with the numbers of ranks
    [ "$(grep -c 'refused (1)' <<< "$output")" -eq 1 ]
    grep -Eq '^ *128 to 1024 +128 to 1024 +refused' <<< "$output"
    "$plumb" forecast "${job[@]}" --nodes 64,128 --json > out.json
    [ "$(jq -r '[.points[].refused] | join(",")' out.json)" = ",too far" ]
    jq -e '.points[1] | has("step_s") | not' out.json
    told 3 '512 nodes: * 64 ranks: plumb' "$plumb" forecast "${job[@]}" --nodes 512
}

@test "groups that do not divide the ranks are refused, and jobs that are none are wrong use" {
    refused() { # refused PATTERN OPTION...
        run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 8 "${@:2}"
        # shellcheck disable=SC2154 # run sets it
        [ "$status" -eq 2 ] && [[ "$stderr" == "plumb forecast: "*$1* ]] || { echo "$*: $status $stderr"; return 1; }
    }
    refused "5 * 3 *: --batch 6" --batch 5 --micro 3
    refused --ep --ep 2
    refused '--batch 1' --batch 1.5
    refused --seq --seq 128
    printf 'experts,8\nlayer,parameters,m,n,k,kind\na,4194304,1,2048,2048,expert\n' > moe.csv
    refused "8 * 3 " --model ./moe.csv --ep 3
    printf 'layer,parameters\na,4194304\n' > flat.csv
    refused --compute --model ./flat.csv
    sed -i 's/output$/output,kind,split/;s/^[ab].*/&,,column/' toy.csv
    refused nodes --tp 16
    "$plumb" forecast "${job[@]}" --nodes 7,8 --tp 2 --json > out.json
    [ "$(jq -r '[.points[] | .refused // "given"] | join(",")' out.json)" = "unequal groups,given" ]
}

@test "a part that no run has is named with the command that measures it" {
    told 3 'plumb run node --only gemm*plumb run node --only memory' "$plumb" forecast run --model ./toy.csv --nodes 8
    run -3 --separate-stderr "$plumb" forecast "${job[@]}" --zero 3 --nodes 8
}

@test "wrong use is refused with what to do" {
    for words in "" "run" "run --model nothing" "run --model ./toy.csv --pp 3 --nodes 6 --compute 1ms" "run --model ./toy.csv --tp 64 --nodes 8" "gone --model ./toy.csv"; do
        # shellcheck disable=SC2086 # several words
        told 2 'plumb forecast: ' "$plumb" forecast $words
    done
    told 2 "'gpt2xl'*'gpt2-xl'* bert-large, dlrm, gpt2-xl, " "$plumb" forecast run --model gpt2xl
    "$plumb" forecast --help | grep -q 'plumb forecast RUN --model llama3-8b'
}

@test "offers have samples for money and energy, as a program of its own computes them" {
    make_offers
    run -0 --separate-stderr "$plumb" forecast "${job[@]}" --no-overlap --price offers.yaml --json
    echo "$output" > out.json
    python3 - <<'END'
import json
out = json.load(open("out.json"))
def ring(n, rate): return 2 * (n - 1) * (38e-6 + 16777216 / n / rate)
def step(n, rate): return 0.06 + 2 * ring(n, rate)
hours, use = 4 * 365.25 * 24, 0.8
def bill(nodes, price, watts):
    kwh = nodes * watts * use / 1000 * hours
    return kwh, nodes * price + 0.25 * kwh
want = {"measured": (8, 0.118e9, bill(8, 20000, 1000)), "fast": (8, 1.18e9, bill(8, 21500, 1020)), "frugal": (16, 0.118e9, bill(16, 20900, 700))}
per = {}
for offer in out["offers"]:
    nodes, rate, (kwh, cost) = want[offer["name"]]
    samples = nodes / step(nodes, rate) * hours * 3600 * use
    assert abs(offer["cost"] / cost - 1) < 1e-7, offer
    assert abs(offer["energy_j"] / (kwh * 3.6e6) - 1) < 1e-7, offer
    assert abs(offer["samples_per_money"]["value"] / (samples / cost) - 1) < 0.01, offer
    assert abs(offer["samples_per_joule"]["value"] / (samples / kwh / 3.6e6) - 1) < 0.01, offer
    per[offer["name"]] = offer["samples_per_money"]["value"], offer["samples_per_joule"]["value"]
assert "money_to_first" not in out["offers"][0]
for offer in out["offers"][1:]:
    for i, of in enumerate(("money", "energy")):
        ratio = offer[of + "_to_first"]
        assert abs(ratio["value"] / (per[offer["name"]][i] / per["measured"][i]) - 1) < 1e-6
        assert ratio["low"] <= ratio["value"] <= ratio["high"]
END
    [ "$(jq -r '.offers[1].swapped' out.json)" = "network: 1 to 10 Gb/s" ]
}

@test "a file of offers that is wrong, or offers without a forecast, are refused" {
    make_offers
    # offers EXIT PATTERN FROM TO [OPTION...]: what becomes of the file with that in place of this
    offers() {
        sed "s/$3/$4/" offers.yaml > bad.yaml
        told "$1" "$2" "$plumb" forecast "${job[@]}" --price bad.yaml "${@:5}"
    }
    offers 2 "bad.yaml: 'fast': --swap: '10' " 10Gb.s 10
    offers 2 --nodes 'nodes: 16' 'nodes: 512' --nodes 8
    offers 0 "'frugal' * 512 nodes" 'nodes: 16' 'nodes: 512'
    offers 3 512 'nodes: [0-9]*' 'nodes: 512'
    told 2 gone.yaml "$plumb" forecast "${job[@]}" --price gone.yaml
    offers 2 "'fast': *gone" 'swap: network=10Gb.s' 'runs: [gone]'
    made_by tools/make-cluster.py other --seed 2
    offers 2 "'fast': --compute " 'swap: network=10Gb.s' 'runs: [other]' # --compute is of the command line's runs
    offers 0 '"offers"' 'swap: network=10Gb.s' 'runs: [other], compute: 60 ms' --json
    jq -e '.offers[1].step_s / .offers[0].step_s | . > 0.98 and . < 1.02 and . != 1' <<< "$output"
}
