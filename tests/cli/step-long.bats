#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-step on one machine: what its rows say, what it finds, and what it refuses.

# takes: spinners
load rows
load ../sim/env
load step

@test "over NCCL on simulated GPUs: all data are right" {
    simulate two
    step --backend nccl --np 2 --ranks 2 --overlap none,backward
    all_good
    [ "$(cells origin | sort -u)" = simulated ]
}

@test "each way, and what goes together: all data are right, over shared memory and TCP" {
    local options raw=$BATS_TEST_TMPDIR/raw
    for options in '--ranks 1,2,3,4' '--ranks 4 --overlap none,backward --bucket 1,20K,1M --transport tcp' '--ranks 3 --zero 1,2,3' \
        '--ranks 4 --tp 2' '--ranks 4 --tp 2 --zero 3 --prefetch 0,2 --transport tcp' '--ranks 4 --ep 2,4' \
        '--ranks 4 --pp 2,4 --micro-batches 4 --schedule gpipe,1f1b' '--ranks 4 --pp 2 --tp 2 --micro-batches 2 --transport tcp' \
        '--ranks 4 --pp 2 --ep 2 --micro-batches 2' '--ranks 2 --dtype bf16 --backend halving,doubling'; do
        # shellcheck disable=SC2086
        step --np 4 --batch 4 --compute-time 2ms --budget 50ms --raw "$raw" $options
        all_good || { echo "$options" && return 1; }
        # compute and all waits of a rank are no more than its step
        awk -F, -v OFS=, '$2 ~ /^(compute|sums|pipe|tail)$/ { sum[$1, $3, $4] += $5; n++ } $2 == "whole" { whole[$1, $3, $4] = $5 }
            END { for (i in whole) if (sum[i] > whole[i]) { print i, sum[i], whole[i]; bad = 1 }
                exit bad || !n }' "$raw" || { echo "$options: waits are counted twice" && return 1; }
    done
    [ "$(cells origin | sort -u)" = simulated ]
}

@test "the limit of a pipeline has its bubble" {
    # 80 ms of compute in two stages take (4 + 1) / 4 x 40 ms
    printf '%s\n' 'unit,sample' 'block,layer,parameters,m,n,k,output' '0..3,l.{},10,1,100,100,10' >"$model"
    step --np 2 --ranks 2 --batch 4 --compute-time 80ms --pp 2 --micro-batches 4
    all_good
    [ "$(of throughput limit)" = 80 ]
    [ "$(of compute_alone value)" = 40 ]
    [[ $(of throughput limit_source) == *compute*bubble* ]]
    # stages that multiply on one host share it when they compute alone, and not in the step: what they computed in it bounds it
    step --np 2 --ranks 2 --batch 4 --compute product --pp 2
    all_good
    [[ $(of throughput limit_source) == *"slowest stage"* ]]
    awk -v p="$(of throughput percent_of_limit)" -v most="$(of throughput max)" -v limit="$(of throughput limit)" \
        'BEGIN { print p, most, limit; exit !(p > 0 && p <= 100.000001 && most <= limit * 1.000001) }'
    [[ -n $(of compute_alone value) && -z $(of compute_slowdown value) ]]
}

@test "real compute: the products of the layers, alone and beside communication" {
    step --np 2 --batch 400 --compute product
    all_good
    [ "$(cells origin | sort -u)" = measured ]
    [ -n "$(of compute_slowdown value 2)" ]
    [ "$(of throughput limit_kind 2)" = measured ]
    [[ $(of step_time kernel 2) =~ ^(onednn|openblas)[a-z-]*' '[0-9] ]]
    # 4 x 1 and 4 x 2 products of 4000 x 100 x 100 forward, twice that back: at 1 TFLOP/s, which no core has, 2.88 ms
    step --np 1 --batch 4000 --compute product
    awk -v v="$(of compute_alone value 1)" 'BEGIN { print v; exit !(v > 2.88) }' || { echo 'too short' && false; }
    exits 2 step --np 1 --compute product --tflops 3 # says nothing of it
    step --np 2 --ranks 2 --compute product --dtype f16 # no library of the host has it
    [[ $(of step_time status) == skipped && $(of step_time reason) == *'--dtype f32, bf16 or f64'* ]]
}

@test "an update takes as long as its bytes at the stated rate, of a part of the parameters with ZeRO; memory is by the book" {
    # 4 x 5000 + 4 x 8000 parameters of f32: adam moves 28 bytes of each, at 0.1 GB/s in 14.56 ms, and keeps 8 beside; 8 x 100 outputs
    step --np 2 --ranks 2 --batch 4 --compute-time 10ms --update adam --memory-rate 0.1 --zero 0,1
    all_good
    [ "$(paste -d' ' <(cells zero) <(cells metric) <(cells part) <(cells value) | grep -E 'update|memory' | paste -sd,)" = \
        '0 update_time  14.56,0 update_moved  1.456,0 memory parameters 0.208,0 memory gradients 0.208,0 memory update 0.416,0 memory activations 0.0128,0 memory all 0.8448,1 update_time  7.28,1 update_moved  0.728,1 memory parameters 0.208,1 memory gradients 0.208,1 memory update 0.208,1 memory activations 0.0128,1 memory all 0.6368' ]
    [ "$(of compute_alone value)" = 24.56 ]
    [ "$(of step_time compute_ms)" = 10 ]
    awk -v v="$(of step_time value)" 'BEGIN { print v; exit !(v >= 24.56) }'
    step --np 1 --compute product --update sgd
    all_good
    [ "$(of update_moved value)" = 0.624 ]
    awk -v v="$(of update_time value)" 'BEGIN { print v; exit !(v > 0.001) }' # 1 TB/s is no memory
    # both passes without the update, by the same samples
    awk -v passes="$(of step_time compute_ms)" -v all="$(of compute_alone value)" -v update="$(of update_time value)" \
        'BEGIN { print passes, all, update; off = passes / (all - update) - 1; exit !(off < 1e-4 && off > -1e-4) }'
    exits 2 step --np 1 --memory-rate 3
}

@test "what is sent is what the way sends: sums, scatters and gathers, activations, tokens" {
    sent() {
        step --np 4 --ranks 4 --batch 4 --compute-time 2ms --budget 50ms --transport tcp --bucket 1K "${@:2}"
        all_good
        awk -v v="$(of sent value)" -v w="$1" 'BEGIN { print v, w; exit !(v < 1.002 * w && v > 0.998 * w) }'
    }
    sent "$(awk 'BEGIN { print 52000 * 4 * 2 * .75 / 1e6 }')"
    sent "$(awk 'BEGIN { print 52000 * 4 * 2 * .75 / 1e6 }')" --zero 1
    sent "$(awk 'BEGIN { print 52000 * 4 * 3 * .75 / 1e6 }')" --zero 3
    # each of four micro-batches is scattered; parameters are gathered once, or twice for each
    sent "$(awk 'BEGIN { print 52000 * 4 * 5 * .75 / 1e6 }')" --zero 2 --micro-batches 4
    sent "$(awk 'BEGIN { print 52000 * 4 * 12 * .75 / 1e6 }')" --zero 3 --micro-batches 4
    # 2 ranks sum half of the dense layers' gradients, and the experts' whole; and 4 x 4000 activations
    sent "$(awk 'BEGIN { print (42000 * 4 + 4 * 4000 * 4) / 1e6 }')" --tp 2
    # 4 blocks of experts, in and out, forward and back: 4 x 2 x 100 numbers of which 3/4 leave; the dense layers' sums
    sent "$(awk 'BEGIN { print (16 * 800 * 4 * .75 + 20000 * 4 * 2 * .75) / 1e6 }')" --ep 4
    # rows of two tables of 100 numbers for each of 4 samples, out and back; the tables' gradients are not summed
    printf '%s\n' 'block,layer,parameters,output,m,n,k,kind' '0,a,1000,10,1,100,100' '0,t.0,5000,100,,,,table' \
        '0,t.1,7000,100,,,,table' '1,b,1000,10,1,100,100' >"$model"
    sent "$(awk 'BEGIN { print (2000 * 4 * 2 * .75 + 2 * 200 * 4 * 4 * .75) / 1e6 }')"
}

@test "a rank that never comes ends the step, by name" {
    exits 4 step --np 2 --ranks 2 --compute-time 2ms --inject absent
    [[ $(of step_time reason) == *"rank 1"* ]]
}
