#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2034,SC2154 # paths_of and measure share variables
# plumb-step over libraries: MPI under its own launcher, and NCCL on the simulated device.

# takes: spinners
# waits: for launchers

load rows
load ../sim/env

setup() {
    paths_of step
    model=$BATS_TEST_TMPDIR/blocks.csv
    quick="--csv --model $model --batch 4 --compute-time 4ms --budget 60ms --warmup 20ms --min-samples 3"
    printf '%s\n' 'unit,sample' 'block,layer,parameters,m,n,k,output,split,sum' '0..3,l.{},5000,1,100,100,100,row,1000' >"$model"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    unset PLUMB_MPI_MODULE NCCL_DEBUG NCCL_DEBUG_FILE NCCL_ALGO NCCL_PROTO NCCL_HOSTID
}

# steps N: so many were measured, none shorter than its compute, and none is wrong.
steps() {
    [ "$status" -eq 0 ] || { cat "$err" "$out" && return 1; }
    paste -d' ' <(cells metric) <(cells status) <(cells value) |
        awk -v n="$1" '$1 == "step_time" && $2 ~ /^(ok|noisy)$/ && $3 >= .999 * least { n-- } END { exit n != 0 }' least="$2" ||
        { cut -c 1-300 "$out" && return 1; }
}

launched() {
    command -v mpirun >/dev/null || skip 'there is no mpirun here'
    [ -e "${PLUMB_BIN:-build/bin}/../lib/plumbline/plumb-mpi.so" ] || skip 'plumb-mpi.so was not built: there is no MPI here'
    under="mpirun -np $1" measure --backend mpi "${@:2}"
}

@test "mpi: sums with and without overlap, ZeRO, and split layers, data compared" {
    launched 3 --ranks 2,3 --overlap none,backward --zero 0,1,3 --bucket 30K
    steps 12 4
    launched 2 --ranks 2 --tp 2 # half of the compute
    steps 1 2
}

@test "mpi: kinds of communication that go on at the same time are refused" {
    launched 2 --ranks 2 --pp 2 --micro-batches 2
    [[ $(cells status | sort -u) == skipped && $(cells reason | sort -u) == *"'mpi'"* ]]
}

@test "nccl on the simulated device: sums, ZeRO and split layers, data compared" {
    [ -e "${PLUMB_BIN:-build/bin}/../sim/libnccl.so.2" ] || skip 'the simulated NCCL was not built (it needs nccl.h): make sim'
    simulate two
    nccl() { measure --np 2 --ranks 2 --backend nccl "$@"; }
    nccl --overlap none,backward --zero 0,3 --bucket 30K
    steps 4 4
    nccl --tp 2
    steps 1 2
    # Communicators of one GPU that are used at once may deadlock (NCCL's guide): a thread for all of them, or none of it.
    nccl --pp 2 --micro-batches 2
    [[ $(cells status | sort -u) == skipped && $(cells reason | sort -u) == *"'nccl'"* ]]
    exits 1 nccl --inject corrupt
    [[ $(cells status | sort -u) == *wrong* ]]
}
