# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: step.bats, step-long.bats, step-alone.bats.

setup() {
    local name
    cd "$BATS_TEST_DIRNAME/../.." || exit
    for name in OMPI_COMM_WORLD_SIZE PMI_SIZE MV2_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS FLUX_JOB_SIZE JSM_NAMESPACE_SIZE PMIX_RANK; do
        unset "$name"
    done
    bin=${PLUMB_BIN:-$PWD/build/bin}/plumb-step out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err model=$BATS_TEST_TMPDIR/blocks.csv
    [[ -x $bin ]] || skip 'plumb-step is not built'
    printf '%s\n' 'unit,sample' 'experts,4' 'block,layer,parameters,m,n,k,output,split,sum,kind' \
        '0..3,dense.{},5000,1,100,100,100,row,1000' '4..7,experts.{},8000,2,100,100,100,,,expert' >"$model"
}

all_good() {
    [ "$status" -eq 0 ] || { cat "$err" && cut -c 1-400 "$out" && return 1; }
    [ "$(cells status | grep -cE 'wrong|failed|skipped')" -eq 0 ]
}

# step OPTIONS: rows to $out, its exit status to $status.
step() {
    status=0
    timeout 600 "$bin" --csv --model "$model" --budget 200ms --warmup 20ms --min-samples 5 "$@" >"$out" 2>"$err" || status=$?
}
