#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# sanitizers: no, because it starts no program of this build
# scripts/plumb.sbatch: what it makes of its arguments. Slurm is a stand-in; tests/labs/slurm.bats has a real one.

load common

setup() {
    batch="$BATS_TEST_DIRNAME/../../scripts/plumb.sbatch"
    work=$BATS_TEST_TMPDIR
    mkdir "$work/path"
    printf '#!/bin/sh\nprintf "node0\\nnode1\\n"\n' >"$work/path/scontrol"
    # shellcheck disable=SC2016 # the script expands it
    printf '#!/bin/sh\nprintf "%%s|" "$@"\necho\nwhile [ "$1" != --hosts ]; do shift; done; cat "$2"\n' >"$work/plumb"
    chmod +x "$work/path/scontrol" "$work/plumb"
    export PATH="$work/path:$PATH" PLUMB="$work/plumb" SLURM_JOB_NODELIST='node[0-1]' TMPDIR="$work"
}

# begins WORDS: what plumb was called with.
begins() { [[ ${lines[0]} == "run|$1|--launcher|srun|--hosts|$work/"* ]]; }

@test "the suite is cluster unless the first argument is one" {
    run -0 "$batch"
    begins cluster
    [ "${lines[1]} ${lines[2]}" = 'node0 slots=1 node1 slots=1' ]
    SLURM_NTASKS_PER_NODE=4 run "$batch" net --only 'a b'
    begins net
    [[ ${lines[0]} == *'|--only|a b|' ]]
    [ "${lines[2]}" = 'node1 slots=4' ]
    run "$batch" --only net --dry-run
    begins cluster
    [[ ${lines[0]} == *'|--only|net|--dry-run|' ]]
}

@test "without a program it says how to name one" {
    PLUMB=$work/none PATH="$work/path:/usr/bin:/bin" told 2 PLUMB= "$batch"
}
