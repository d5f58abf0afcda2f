#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-step on one machine, in short: all data are right, times and rates fit together, what is wrong is found, and what makes no sense is refused.

# takes: spinners
load rows
load step

step() { quick="--csv --model $model --budget 30ms --warmup 5ms --min-samples 3" measure "$@"; }

@test "data parallel, sharded, split, piped and experts: all data are right" {
    local options
    for options in '--ranks 2,4 --overlap none,backward --bucket 20K' '--ranks 3 --zero 3 --transport tcp' '--ranks 4 --pp 2 --tp 2 --micro-batches 2' \
        '--ranks 4 --ep 2'; do
        # shellcheck disable=SC2086
        step --np 4 --batch 4 --compute-time 2ms $options
        all_good || { echo "$options" && return 1; }
    done
    [ "$(cells origin | sort -u)" = simulated ]
}

@test "no step is shorter than its compute, and the rate is that of its time" {
    step --np 2 --ranks 2 --batch 6 --compute-time 20ms --overlap none --max-samples 5 --budget 20s # odd: the median is one of them
    all_good
    awk -v t="$(of step_time value)" -v rate="$(of throughput value)" -v limit="$(of throughput limit)" \
        'BEGIN { print t, rate, limit; exit !(t >= 20 && rate * t > 11990 && rate * t < 12010 && limit == 600) }'
    step --np 2 --ranks 2 --compute product
    all_good
    [ "$(cells origin | sort -u)" = measured ]
}

@test "what makes no sense is refused, in words" {
    warned 2 '4 ranks' step --np 4 --ranks 4 --tp 3
    warned 2 micro-batches step --np 2 --ranks 2 --batch 3 --micro-batches 2
    warned 2 --zero step --np 4 --ranks 4 --pp 2 --zero 3
    exits 2 step --np 2 --ranks 2 --prefetch 2
    step --np 2 --pp 2 --micro-batches 2 # in a sweep, what can be
    [ "$(cells ranks | sort -u)" = 2 ]
}

@test "a wrong element is found, with its rank and what it was of" {
    exits 1 step --np 2 --ranks 2 --compute-time 2ms --inject corrupt
    [[ $(of step_time status) == wrong && $(of step_time reason) == *"rank "*"gradients: "*"element "* ]]
}
