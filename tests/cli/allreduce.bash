# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: allreduce.bats, allreduce-long.bats, allreduce-alone.bats.

teardown() {
    local pid
    for pid in "${ranks[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

all_good() {
    [ "$status" -eq 0 ] || { cat "$err" && cut -c 1-300 "$out" && return 1; }
    [ "$(cells status | grep -cE 'wrong|failed')" -eq 0 ]
}

setup() {
    local name
    cd "$BATS_TEST_DIRNAME/../.." || exit
    # Nothing of a launcher that these tests run under.
    for name in OMPI_COMM_WORLD_SIZE PMI_SIZE MV2_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS FLUX_JOB_SIZE JSM_NAMESPACE_SIZE PMIX_RANK \
        PALS_RANKID PMI_RANK FLUX_TASK_RANK MPI_LOCALRANKID MPI_LOCALNRANKS WORLD_SIZE RANK LOCAL_RANK; do
        unset "$name"
    done
    ranks=()
    export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS} # of Open MPI, in a build with sanitizers
    bin=${PLUMB_BIN:-$PWD/build/bin}/plumb-allreduce out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
    [[ -x $bin ]] || skip 'plumb-allreduce is not built'
}

# allreduce OPTIONS: rows to $out, its exit status to $status.
allreduce() {
    status=0
    timeout 600 "$bin" --csv --budget 100ms --warmup 10ms --min-samples 5 --no-cpu "$@" >"$out" 2>"$err" || status=$?
}
