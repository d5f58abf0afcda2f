#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2034,SC2154 # paths_of and measure share variables
# plumb-step with its products on GPUs, over simulated devices and NCCL: how long they take, and that they are checked.

# takes: machine
load ../sim/env
load rows

setup() {
    paths_of step
    model=$BATS_TEST_TMPDIR/blocks.csv
    quick="--csv --np 2 --ranks 2 --backend nccl --model $model --batch 100 --compute product --budget 1s --warmup 100ms --min-samples 5"
    # slow enough for this machine to do the arithmetic
    machine 2 '[gpu]' 'gemm_us = 0' 'l2_bytes = 64K' 'gemm_f32_tflops = .0005' 'gemm_bf16_tflops = .001'
    printf '%s\n' 'unit,sample' 'block,layer,parameters,m,n,k,count,backward,output' '0,first,5000,1,100,100,1,1' \
        '1..3,block.{},5000,1,100,100' >"$model"
}

step() { measure "$@"; }

# lasts METRIC MS: no shorter than what the device's rate leaves, in one of four goes not much longer.
lasts() {
    local go
    for ((go = 0; go < 4; go++)); do
        step "${@:3}"
        good failed || return 1
        echo "$1: $(of "$1" value) ms of $2"
        awk -v v="$(of "$1" value)" -v w="$2" 'BEGIN { exit !(v >= 0.98 * w) }' || { echo 'too short' && return 1; }
        ! awk -v v="$(of "$1" value)" -v w="$2" 'BEGIN { exit !(v < 1.2 * w) }' || return 0
    done
    echo 'fell short' && return 1
}

@test "products take as long as their operations do at the rate of the device, all passes together" {
    # forward 4 products of 100 x 100 x 100, backward 7: the first layer's input is data
    lasts compute_alone "$(awk 'BEGIN { print 11 * 2e6 / 0.5e9 * 1e3 }')"
    [ "$(cells origin | sort -u)" = simulated ]
    [[ $(of step_time detail) == *'products by cuBLASLt '* ]]
    [ "$(cells status | grep -cE 'wrong|failed|skipped')" -eq 0 ]
    lasts compute_alone "$(awk 'BEGIN { print 11 * 2e6 / 1e9 * 1e3 }')" --dtype bf16 --update adam
    [ -n "$(of update_time value)" ]
}

@test "a wrong product is found" {
    fault corrupt:kernel=gemm:times=100000000
    exits 1 step
    [[ $(of step_time status) == wrong && $(of step_time reason) == *'a product of '*': entry '* ]]
}
