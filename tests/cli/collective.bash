# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154 # tests read what setup sets, and cells reads out
# What the tests of plumb-allreduce over libraries share.

setup()
{
    paths_of allreduce
    quick="--csv --no-cpu --budget 60ms --warmup 20ms"
    every=allreduce,reduce-scatter,all-gather,broadcast,all-to-all,send-receive
    rooted=reduce,gather,scatter
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    mpirun=mpirun backend=mpi mpicc=mpicc of=openmpi says_yes=()
    unset PLUMB_MPI_MODULE NCCL_DEBUG NCCL_DEBUG_FILE NCCL_ALGO NCCL_PROTO NCCL_HOSTID
}

alone() { measure "$@"; }

# launched N MPIRUN'S OPTIONS -- ARGUMENTS...: the same, by mpirun.
launched()
{
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    command -v "$mpirun" >/dev/null || skip "there is no mpirun here"
    [ -e "${PLUMB_MPI_MODULE:-${PLUMB_BIN:-build/bin}/../lib/plumbline/plumb-mpi.so}" ] || skip "plumb-mpi.so was not built: there is no MPI here"
    under="$mpirun -np ${options[*]}" measure --backend "$backend" "$@"
}

open_mpi()
{
    mpirun --version 2>/dev/null | grep -q 'Open MPI' || skip "this mpirun is not Open MPI's"
}

nccl()
{
    [ -e "${PLUMB_BIN:-build/bin}/../sim/libnccl.so.2" ] || skip "the simulated NCCL was not built (it needs nccl.h): make sim"
    alone --backend nccl "$@"
}

# row STATUS PATTERN: the row of a time has it, and a reason with the pattern in it.
row()
{
    # shellcheck disable=SC2053 # a pattern is meant
    [[ $(times status) == "$1" && $(times reason) == *$2* ]] || { times status && times reason && echo "no '$2'" && return 1; }
}

# times COLUMN: its cells in rows of times.
times() { paste -d'|' <(cells metric) <(cells "$1") | sed -n 's/^time|//p'; }

# Every time was measured, nothing is wrong; N of them.
all_good()
{
    [ "$status" -eq 0 ] || { cat "$err" "$out"; return 1; }
    [ "$(times status | grep -cxE 'ok|noisy')" -eq "$1" ] || { times status; times reason; return 1; }
}
