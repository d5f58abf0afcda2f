#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# What scripts/check-cluster makes of made-up rows: 8 hosts of 12.5 MB/s, one at half.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    folder=$BATS_TEST_TMPDIR
    rows
}

rows() { # [FACTOR]: how far 8 ranks are off the model
    python3 - "$folder" "${1:-1}" <<'END'
import sys

folder, factor = sys.argv[1], float(sys.argv[2])
with open(f"{folder}/allreduce.csv", "w", encoding="ascii") as out:
    print("ranks,vector_bytes,metric,unit,value,status", file=out)
    for n in (1, 2, 4, 8):
        for size in (1 << 20, 1 << 21, 1 << 22):
            us = (2 * (n - 1) * 100 + 2 * (n - 1) / n * size / 12.5) * (factor if n == 8 else 1) + (n == 1)
            print(f"{n},{size},time,us,{us},noisy", file=out)
with open(f"{folder}/net.csv", "w", encoding="ascii") as out:
    print("from,to,metric,unit,value,status", file=out)
    for a in range(8):
        for b in range(a):
            print(f"node{a},node{b},bandwidth,Gb/s,{0.048 if 5 in (a, b) else 0.096},ok", file=out)
END
    echo "slow: bandwidth, transport tcp, size 1M: node5: its 7 links carry 0.50 of the others'" >"$folder/report"
}

judge() {
    run python3 scripts/lab/judge_cluster.py "$folder/allreduce.csv" "$folder/net.csv" "$folder/report" 8 node5
}

@test "a model that predicts, and the host that is slow named: good" {
    exits 0 judge
    [[ $output != *BAD* ]]
    [[ $output == *'4 MiB: the model predicts 1.000'* ]]
}

@test "8 ranks off the model by more than 10 %" {
    rows 1.15
    exits 1 judge
    [[ $output == *'BAD   1 MiB: '*' 0.870'* ]]
    rows 1.05
    exits 0 judge
}

@test "the slow host is not named, or another is" {
    : >"$folder/report"
    exits 1 judge
    [[ $output == *'BAD   '*' no host '* ]]
    echo "slow: bandwidth: node4: its 7 links carry 0.50 of the others'" >"$folder/report"
    exits 1 judge
}

@test "a host that was not slowed is slow, the one that was is not" {
    sed -i 's/\(node[^5],node[^5],.*\),0.096/\1,0.048/' "$folder/net.csv"
    exits 1 judge
    [[ $output == *'BAD   node5: '*' 7 links '*' 1.00 '* ]]
}

@test "a row that was not measured, or a number of ranks that is missing" {
    sed -i '/^4,/s/noisy/failed/' "$folder/allreduce.csv"
    exits 1 judge
    sed -i '/^[48],/d' "$folder/allreduce.csv"
    exits 1 judge
    [[ $output == *'BAD   0 sizes of 1 MiB'* ]]
}
