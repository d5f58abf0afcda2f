#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # the made-up programs expand it themselves
# scripts/peer-gpu with programs that answer made-up numbers: which of them are compared, how, and what it makes of it.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    fake=$BATS_TEST_TMPDIR/fake
    mkdir -p "$fake"
    export ORDER=$BATS_TEST_TMPDIR/order
    : >"$ORDER"
    value gemm 800 900
    value memory 4400 4500
    value copy 55 56
    program python 'echo theirs >>"$ORDER"; case "$1:$2" in -c:*) exit 0 ;; *:matmul) echo 790 ;; *:copy) echo 4300 ;; esac'
    program cuda-stream 'echo "Function    MBytes/sec  Min (sec)"; echo "Copy 1.0 1"; echo "Triad       4200000.000 0.001"'
    program nvbandwidth 'echo "nvbandwidth Version: v0.8"; echo "{\"nvbandwidth\": {\"testcases\": [{\"name\": \"$2\", \"status\": \"Passed\", \"bandwidth_matrix\": [[\"55.40\"]]}]}}"'
}

# program NAME TEXT: an executable that does this.
program() {
    printf '#!/bin/sh\n%s\n' "$2" >"$fake/$1"
    chmod +x "$fake/$1"
}

# value BENCH MEDIAN BEST [STATUS]: our benchmark, as if it had measured that.
value() {
    program "plumb-$1" "echo ours >>\"\$ORDER\"; echo \"\$@\" >>\"$fake/$1.args\"; echo status,reason,origin,value,max; echo ${4:-ok},why,measured,$2,$3"
}

peer() {
    run --separate-stderr scripts/peer-gpu --bin "$fake" --python "$fake/python" --babelstream "$fake/cuda-stream" \
        --nvbandwidth "$fake/nvbandwidth" --pairs 3 "$@"
}

@test "every comparison: median against median, the best against BabelStream's best" {
    peer
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "matmul: ratio 1.0127 (1.0127 to 1.0127, 3 pairs; asked 1.00: met); plumb 800, torch.matmul 790 TFLOP/s" ]]
    [[ ${lines[1]} == "copy: ratio 1.0233 "*"plumb 4400, torch copy_ 4300 GB/s" ]]
    [[ ${lines[2]} == "triad: ratio 1.0714 "*"plumb 4500, BabelStream, best 4200 GB/s" ]]
    [[ ${lines[3]} == "to-device: ratio 0.9928 "*"asked 0.99: met"* ]]
    [[ ${lines[4]} == "from-device: ratio 0.9928 "* ]]
    [ "${#lines[@]}" -eq 5 ]
}

@test "pairs alternate in order" {
    peer --only matmul
    [ "$(grep -v '^$' "$ORDER" | tail -n +2 | paste -sd' ')" = "ours theirs theirs ours ours theirs" ]
}

@test "below what is asked: said, and exit 1" {
    value memory 4200 4250
    peer --only copy,triad
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "copy: ratio 0.9767 "*"asked 1.00: NOT met"* ]]
    [[ ${lines[1]} == "triad: ratio 1.0119 "*": met"* ]]
}

@test "a row that is skipped, failed or wrong is no number" {
    value gemm 800 900 wrong
    peer --only matmul
    [ "$status" -eq 2 ]
    [[ ${lines[0]} == "matmul: not compared: "*"gives no number: wrong: why" ]]
}

@test "a peer that is not there is said, with what to do, and the others are compared" {
    run --separate-stderr scripts/peer-gpu --bin "$fake" --python "$fake/python" --pairs 1
    [ "$status" -eq 0 ]
    [[ ${lines[2]} == "triad: not compared: no BabelStream: build "* ]]
    [[ ${lines[3]} == "to-device: not compared: no nvbandwidth: "* ]]
    program python 'exit 1'
    run --separate-stderr scripts/peer-gpu --bin "$fake" --python "$fake/python" --pairs 1
    [ "$status" -eq 2 ]
    [[ ${lines[0]} == *"has no torch that sees a GPU"* ]]
}

@test "what is asked of our benchmarks is what the peers do" {
    peer
    grep -q -- '--dtype bf16 --library cublaslt-best --size 8192' "$fake/gemm.args"
    grep -q -- '--op copy .*--launch tuned' "$fake/memory.args"
    grep -q -- '--source node0 --destination cuda:0 .*--memory pinned' "$fake/copy.args"
    grep -q -- '--source cuda:0 --destination node0' "$fake/copy.args"
}

@test "the GPU that is asked for is the only one that anybody sees" {
    program plumb-gemm "echo ours \$CUDA_VISIBLE_DEVICES \$CUDA_DEVICE_ORDER \$* >>\"$fake/seen\"; echo status,reason,origin,value,max; echo ok,,measured,800,900"
    program python "echo theirs \$CUDA_VISIBLE_DEVICES >>\"$fake/seen\"; case \"\$1:\$2\" in -c:*) exit 0 ;; *) echo 790 ;; esac"
    peer --only matmul --device cuda:3
    [ "$status" -eq 0 ]
    [ "$(grep -c '^theirs 3$' "$fake/seen")" -eq 4 ]
    [ "$(grep -c '^ours 3 PCI_BUS_ID --device cuda:0 ' "$fake/seen")" -eq 3 ]
    : >"$fake/seen"
    CUDA_VISIBLE_DEVICES=5,7 peer --only matmul --device cuda:1
    [ "$(grep -c '^theirs 7$' "$fake/seen")" -eq 4 ]
    CUDA_VISIBLE_DEVICES=5 peer --only matmul --device cuda:1
    [ "$status" -ne 0 ]
}
