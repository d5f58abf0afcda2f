#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-step on one machine: what holds where nothing else runs.

# takes: machine
load rows
load ../sim/env
load step

@test "no step is shorter than its compute; rates and shares follow from the times" {
    step --np 2 --batch 6 --compute-time 60ms --overlap none
    all_good
    paste -d' ' <(cells metric) <(cells ranks) <(cells value) | awk '
        $1 == "step_time" { t[$2] = $3 }
        $1 == "throughput" { rate[$2] = $3 }
        $1 == "exposed" { exposed = $3 }
        END {
            print t[1], t[2], rate[1], rate[2], exposed
            off = exposed - 100 * (1 - 60 / t[2])
            exit !(t[1] >= 60 && t[2] >= 60 && rate[2] * t[2] > 11990 && rate[2] * t[2] < 12010 && off < 3 && off > -3)
        }' || { echo 'fell short' && false; }
    [ "$(of throughput limit 2)" = 200 ]
    [ "$(of throughput percent_of_limit 2 | cut -d. -f1)" -le 100 ]
    [ "$(of step_time dp 2)" = 2 ]
    [ "$(of step_time compute_ms 2)" = 60 ]
}

# A forecast reads these columns of a step that was measured.
@test "a step is a part that a forecast is held against: the compute of the whole model, and the columns of its shape" {
    "$bin" --describe >"$out"
    jq -e '.rows.parts == [{where: "metric=step_time", of: "step", measure: "plumb run train --hosts FILE"}]' "$out"
    printf '%s\n' 'block,layer,parameters,m,n,k,output' '0..3,l.{},10,1,100,100,10' >"$model"
    step --np 2 --ranks 2 --batch 4 --tflops 0.0001 --pp 2 --micro-batches 4 --bucket 3K --seq 7
    all_good
    # 4 samples, 4 layers, 3 products of 2 x 100 x 100 operations, at 1e8 a second
    [ "$(of step_time compute_ms)" = 9.6 ]
    [ "$(of compute_alone value)" = 4.8 ]
    [ "$(for name in ranks dp nodes batch seq bucket overlap zero tp pp ep micro_batches dtype; do of step_time "$name"; done | paste -sd,)" = \
        2,1,1,4,7,3072,backward,0,1,2,1,4,f32 ]
    step --np 1 --batch 400 --compute product --update adam
    [ "$(of step_time update_ms)" = "$(of update_time value)" ]
    awk -v a="$(of step_time compute_ms)" -v b="$(of compute_alone value)" 'BEGIN { print a, b; exit !(a > b / 2 && a < 2 * b) }'
}
