#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
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
    python3 -c "import sys; sys.exit(abs(($1) / ($2) - 1) > $3)" || { echo "$1 is not $2"; return 1; }
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

@test "beyond three doublings there is no forecast, and it says what to measure" {
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 4..1024x2
    [ "$status" -eq 0 ]
    [[ "$output" == *"Refused   from 128 nodes on: more than three doublings beyond the 8 ranks"* ]]
    [[ "$output" == *"plumb run cluster --hosts FILE"* ]]
    [ "$(grep -c 'refused (1)' <<< "$output")" -eq 4 ]
    "$plumb" forecast "${job[@]}" --nodes 64,128 --json > out.json
    [ "$(jq -r '[.points[].refused] | join(",")' out.json)" = ",too far" ]
    jq -e '.points[1] | has("step_s") | not' out.json
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 512
    [ "$status" -eq 3 ]
}

@test "groups inside nodes are refused, with what a forecast needs" {
    run --separate-stderr "$plumb" forecast "${job[@]}" --nodes 8 --per-node 4 --tp 2
    [ "$status" -eq 3 ]
    [[ "$output" == *"--tp, --pp and --ep beside several ranks a node"*"--per-node 1"* ]]
    run "$plumb" forecast "${job[@]}" --nodes 8 --per-node 4 --tp 2 --json
    [ "$(jq -r '.points[0].refused' <<< "$output")" = "groups in nodes" ]
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
    run --separate-stderr "$plumb" forecast "${job[@]}" --swap network=10
    [ "$status" -eq 2 ]
}

@test "wrong use is refused with what to do" {
    for words in "" "run" "run --model nothing" "run --model ./toy.csv --pp 3 --nodes 8 --compute 1ms" "run --model ./toy.csv --tp 64 --nodes 8" "gone --model ./toy.csv"; do
        run --separate-stderr "$plumb" forecast $words
        [ "$status" -eq 2 ] || { echo "$words: $status"; return 1; }
        [[ "$stderr" == "plumb forecast: "* ]]
    done
    "$plumb" forecast --help | grep -q 'plumb forecast RUN --model llama3-8b'
}
