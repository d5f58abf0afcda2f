# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: step.bats, step-long.bats, step-alone.bats.

setup() {
    paths_of step
    no_launcher
    model=$BATS_TEST_TMPDIR/blocks.csv
    quick="--csv --model $model --budget 200ms --warmup 20ms --min-samples 5"
    printf '%s\n' 'unit,sample' 'experts,4' 'block,layer,parameters,m,n,k,output,split,sum,kind' \
        '0..3,dense.{},5000,1,100,100,100,row,1000' '4..7,experts.{},8000,2,100,100,100,,,expert' >"$model"
}

all_good() { good 'wrong|failed|skipped'; }

step() { measure "$@"; }
