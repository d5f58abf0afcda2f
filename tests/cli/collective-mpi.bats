#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2030,SC2031,SC2154 # each test has variables of its own, setup sets the others
# plumb-allreduce over MPI under its own launcher, with memory of the host and of the simulated device.

# takes: spinners
# Ranks that an MPI library starts spin where they wait: beside another such file each of both would be late.

load rows
load processes
load ../sim/env
load collective

# What a test that failed left running would run for twenty minutes.
teardown()
{
    [ -z "${job-}" ] || kill "$job" 2>/dev/null || return 0
    [ -z "${job-}" ] || wait "$job" 2>/dev/null || true
}

# mpich: from here on launched and strike are by MPICH's launcher, with a module of its own, made once.
setup_file()
{
    mpich_folder=$BATS_FILE_TMPDIR/mpich
    export mpich_folder
}

mpich()
{
    local wrapper=mpicc.mpich
    mpirun=mpirun.mpich of=mpich
    if ! command -v "$wrapper" >/dev/null && mpirun --version 2>/dev/null | grep -qi hydra; then
        wrapper=mpicc mpirun=mpirun # it is the only one
    fi
    command -v "$wrapper" "$mpirun" >/dev/null || skip "MPICH is not here: install libmpich-dev and mpich"
    [ -e build/config.mk ] || skip "nothing was built with this Makefile"
    PLUMB_MPI_MODULE=$mpich_folder/mpi/$wrapper/plumb-mpi.so
    [ -e "$PLUMB_MPI_MODULE" ] ||
        env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make BUILD="$mpich_folder" mpi-module MPICC="$wrapper" >"$out" 2>&1 || {
        cat "$out"
        return 1
    }
    export PLUMB_MPI_MODULE
    mpicc=$wrapper
}

@test "mpi: every operation and type between 2 ranks, data compared" {
    launched 2 -- --ranks 2 --op "$every" --dtype f32,f16,bf16,f64,i32,i8,i64 --size 64K
    all_good 42
    times detail | grep -q 'sum .*by plumb'
    launched 2 -- --ranks 2 --op all-gather,broadcast --dtype e4m3,e5m2 --size 64K
    all_good 4
    launched 2 -- --ranks 2 --redop min,prod --dtype f32,bf16,i8,i64 --size 64K
    all_good 8
    launched 2 -- --ranks 2 --redop avg --size 64K
    times reason | grep -q NCCL
    launched 2 -- --ranks 2 --dtype e4m3 --size 64K
    times reason | grep -q 'fp8 .*NCCL'
}

@test "mpi: maxima, in place, and communicators of some of the ranks" {
    launched 3 -- --ranks 1,2,3 --redop max --dtype f32,bf16 --size 24K
    all_good 6
    launched 2 -- --ranks 2 --in-place --op allreduce,all-gather,broadcast --size 64K
    all_good 3
    launched 2 -- --ranks 2 --in-place --op reduce-scatter --size 64K
    [ "$(times status)" = skipped ]
}

# in_parts N: so many times were measured, and each was of calls of at most 1000 elements.
in_parts()
{
    all_good "$1"
    [ "$(times detail | grep -cE ', calls of (501|500) eleme')" -eq "$1" ] || { times detail; return 1; }
}

# 1000 elements stand for the 2^31 - 1 of MPI 3: parts, and a rest, of the vector or of each block.
@test "mpi: a vector that has more elements than a call takes is cut, data compared" {
    export PLUMB_MPI_ELEMENTS=1000
    launched 3 -- --ranks 3 --op "$every" --dtype f32,bf16 --size 60K
    in_parts 12
    [ "$(times detail | grep -c 'parts .*plumb')" -eq 1 ] # reduce-scatter of f32
    launched 2 -- --ranks 2 --op "$every" --dtype f64,i32,f16 --redop max --size 40K
    in_parts 18
    launched 3 -- --ranks 3 --in-place --op allreduce,all-gather,broadcast --size 60K
    in_parts 3
    launched 3 -- --ranks 3 --overlap --op "$every" --size 60K
    in_parts 6
    launched 3 -- --ranks 3 --op "$every" --size 60K --inject corrupt
    [ "$(times status | grep -cx wrong)" -eq 6 ]
    launched 2 -- --ranks 2 --op allreduce,reduce-scatter --size 4000
    all_good 2
    [ "$(times detail | grep -cE 'calls of|by plumb')" -eq 0 ]
}

@test "mpi: the algorithm that was asked for is taken, for that case alone, and told" {
    open_mpi
    launched 2 -- --ranks 2 --algorithm ring --size 64K
    all_good 1
    [[ $(times chosen) == ring,* ]]
    launched 2 -- --ranks 2 --size 64K
    all_good 1
    [[ $(times chosen) != *,* ]]
    launched 2 --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 3 -- --ranks 2 --size 64K
    [[ $(times chosen) == 'recursive-doubling, '* ]]
}

@test "mpi: Open MPI is started as MPI_Init does, without its locks, unless its environment asks for threads, which is told" {
    open_mpi
    launched 2 -- --ranks 2 --size 64K
    all_good 1
    [ "$(times detail | grep -c threads)" -eq 0 ]
    launched 2 -x OMPI_MPI_THREAD_LEVEL=2 -- --ranks 2 --size 64K
    all_good 1
    times detail | grep -q 'threads serialized'
}

@test "mpi: without a launcher it is skipped, and a launcher of another MPI is an error" {
    [ -e "${PLUMB_BIN:-build/bin}/../lib/plumbline/plumb-mpi.so" ] || skip "plumb-mpi.so was not built: there is no MPI here"
    alone --backend mpi --ranks 2 --size 64K
    [ "$(times status | sort -u)" = skipped ]
    times reason | grep -q 'mpirun -np 4 plumb-allreduce'
    OMPI_COMM_WORLD_SIZE=4 warned 2 ' 4 processes, *rank 0 of 1' alone --backend mpi --size 64K
}

# until_at_work PATTERN: until 3 ranks whose command line is this one have been at work for half a second of their CPU time, twice what a start takes; sets ranks, the process of each.
# 2: the launcher $job runs on, and has started none in $start_s.
until_at_work()
{
    local pid number began=$SECONDS
    for _ in $(seq 6000); do
        ranks=()
        while read -r pid; do
            [ "/proc/$pid/cwd" -ef . ] || continue
            number=$(tr '\0' '\n' <"/proc/$pid/environ" | sed -nE 's/^(OMPI_COMM_WORLD|PMI)_RANK=//p') 2>/dev/null
            [ -z "$number" ] || ranks[number]=$pid
        done < <(pgrep -f "$1")
        ((${#ranks[@]} < 3)) || ! at_work 50 "${ranks[@]}" || return 0
        kill -0 "$job" 2>/dev/null || break
        ((${#ranks[@]} > 0 || SECONDS - began < ${start_s-200})) || break
        sleep 0.3
    done
    echo "no 3 ranks are at work, but of these: ${ranks[*]-none}; the launcher and what it started:"
    ps -o pid,ppid,etimes,time,stat,wchan:20,args -p "$job" --ppid "$job" | cut -c1-160
    pgrep -f "$1" | paste -sd, | xargs -r ps -o pid,etimes,time,stat,wchan:20,args -p | cut -c1-160
    ((${#ranks[@]} == 0)) && kill -0 "$job" 2>/dev/null && return 2
    return 1
}

# quiet OUT ERR COMMAND...: becomes the command, with its output in these files.
quiet()
{
    local to=$1 said=$2
    shift 2
    exec "$@" >"$to" 2>"$said" </dev/null 3>&-
}

# at_work_of_3 PATTERN COMMAND...: starts the command in the background, as $job, until 3 ranks are at work. A launcher that starts none in 100 s, as Open MPI's was once
# seen to, is ended and started again, twice.
at_work_of_3()
{
    local pattern=$1 tries state start_s=100
    shift
    for tries in 1 2 3; do
        "$@" &
        job=$!
        state=0
        until_at_work "$pattern" || state=$?
        ((state == 2)) || return "$state"
        kill -KILL "$job" $(pgrep -P "$job")
        wait "$job" || true
        echo "try $tries: the launcher started nothing in 100 s"
    done
    return 1
}

# strike SIGNAL RANK ARGUMENTS...: sends it to that rank of 3 when they are at work; leaves how long it took from then on in $took.
strike()
{
    local signal=$1 rank=$2 began ranks
    shift 2
    [ -n "${PLUMB_MPI_MODULE-}" ] || open_mpi
    [ -e "${PLUMB_MPI_MODULE:-${PLUMB_BIN:-build/bin}/../lib/plumbline/plumb-mpi.so}" ] || skip "plumb-mpi.so was not built: there is no MPI here"
    at_work_of_3 "^$bin --csv --no-cpu --budget 20m" quiet "$out" "$err" \
        timeout 1500 "$mpirun" -np 3 ${says_yes[@]+"${says_yes[@]}"} "$bin" --csv --no-cpu --budget 20m --min-samples 100000000 \
        --backend "$backend" --size 64K "$@" || { cat "$err"; return 1; }
    kill -"$signal" "${ranks[rank]}"
    began=$SECONDS status=0
    wait "$job" || status=$?
    took=$((SECONDS - began))
    echo "took $took s, status $status"
    cut -c 1-400 "$out"
    cat "$err"
    ! pgrep -f "$bin --csv --no-cpu --budget 20m" || return 1
}

@test "mpi: a rank that hangs in a call ends the case within 10 s with its name; what cannot run any more says why" {
    strike STOP 2 --ranks 3,2,1 --size 64K,128K
    ((took <= NAMED_S))
    [ "$status" -ne 0 ]
    # None is silently left out.
    [ "$(paste -d' ' <(times ranks) <(times size) <(times status))" = '3 65536 failed
2 65536 failed
1 65536 failed
3 131072 failed
2 131072 failed
1 131072 failed' ]
    times reason | head -n 1 | grep -q '^rank 2 ('
    [ "$(times code | grep -cx peer-lost)" -eq 5 ]
}

@test "mpi: a rank that is killed is named at once" {
    strike KILL 1 --ranks 3
    ((took <= NAMED_S))
    # mpirun ends the others: rank 0 has said it, or is just about to and its row does.
    { times reason; cat "$err"; } | grep -q '^rank 1 ('
    [ -z "$(times reason)" ] || times reason | head -n 1 | grep -q '^rank 1 ('
}

# run_and_kill RANK SIGNAL: plumb run of two cases by mpirun with 3 ranks; sends it to that rank in the smaller one, whichever is first. Rows are in $out.
run_and_kill()
{
    local plumb=${PLUMB_BIN:-$PWD/build/bin}/plumb ranks
    open_mpi
    [ -e "${PLUMB_BIN:-build/bin}/../lib/plumbline/plumb-mpi.so" ] || skip "plumb-mpi.so was not built: there is no MPI here"
    cd "$BATS_TEST_TMPDIR" || return 1
    printf 'suite: t\nabout: a test\ndefaults: {repeat: 1, warmup: 20ms}\ncases:\n' >t.yaml
    printf '  - {bench: allreduce, backend: mpi, size: 64K, ranks: 3, no-cpu: "true", budget: 20m, timeout: 20m, min-samples: 100000000}\n' >>t.yaml
    printf '  - {bench: allreduce, backend: mpi, size: 128K, budget: 100ms}\n' >>t.yaml
    echo 'localhost slots=3' >hosts
    timeout 1500 "$plumb" run t.yaml --hosts hosts --launcher mpirun --out r --no-report --launcher-args --oversubscribe \
        >said 2>&1 </dev/null 3>&- &
    job=$!
    until_at_work '^[^ ]*plumb-allreduce .*--size 65536 .* --seed' || { cat said; return 1; }
    kill -"$2" "${ranks[$1]}"
    wait $job || status=$?
    cat said r/log/*
    out=r/allreduce.csv
    [ "$status" -eq 4 ]
}

# The case that nobody was killed in.
other_case_ran()
{
    [ "$(paste -d' ' <(cells size) <(cells status) | grep -cE '^131072 (ok|noisy)')" -ge 6 ]
    [ "$(paste -d' ' <(cells size) <(cells status) | grep -cE '^131072 (failed|skipped)')" -eq 0 ]
}

@test "mpi: plumb run names the rank that was killed, and its next case runs" {
    run_and_kill 2 KILL
    # By its row; or, where mpirun ended rank 0 before it could give any, by what it had said at once.
    paste -d'|' <(cells size) <(cells reason) |
        grep -qE '^65536\|rank 2 \('
    other_case_ran
}

@test "mpi: plumb run names rank 0 where that is killed, not those that end for it" {
    run_and_kill 0 KILL
    paste -d'|' <(cells size) <(cells reason) |
        grep -qE '^65536\|rank 0 \('
    other_case_ran
}

@test "mpi: where rank 0 hangs the others say so and end" {
    strike STOP 0 --ranks 3
    ((took <= NAMED_S))
    [ "$status" -ne 0 ]
    grep -q '^rank [12] (.*rank 0 (' "$err"
    # Woken up by the launcher's signals it does not blame them.
    times reason | while read -r reason; do [[ $reason = "rank 0 ("* ]] || return 1; done
}

@test "mpi: a rank that never comes is named, and the next case is asked of all" {
    local began=$SECONDS
    launched 3 -- --ranks 3,2 --size 64K --inject absent
    ((SECONDS - began <= 2 * NAMED_S))
    times reason | head -n 1 | grep -q '^rank 2 ('
    times reason | tail -n 1 | grep -q '^rank 1 (' # asked anew, in the same launch
}

@test "MPICH: every operation between 2 ranks, data compared, and communicators of 4; an algorithm is told where it was asked for alone" {
    mpich
    launched 2 -- --ranks 2 --op "$every" --dtype f32,bf16 --size 64K
    all_good 12
    times detail | grep -q '^MPICH [0-9.]*, device '
    launched 2 -- --ranks 2 --in-place --overlap --op allreduce --size 64K
    all_good 1
    launched 4 -- --ranks 1,2,4 --op allreduce --size 16K
    all_good 3
    own=$(times chosen | sort -u)
    MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=recursive_doubling launched 2 -- --ranks 2 --op allreduce,broadcast --size 16K
    all_good 2
    [[ $(times chosen | head -n 1) == recursive-doubling,* && $(times chosen | tail -n 1) == "$own" ]]
    launched 2 -- --ranks 2 --algorithm ring --size 16K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'set MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM$'
    launched 1 -- --size 16K --ranks 1
    row skipped 'mpirun'
}

@test "MPICH and Open MPI: the launcher of the other one is an error that says so, and nothing is measured" {
    mpich
    mpirun=mpirun
    open_mpi
    launched 2 -- --size 16K
    [ "$status" -ne 0 ]
    grep -q ' 2 processes, .*rank 0 of 1: .*(MPICH ' "$err"
    [ "$(grep -c '^mpi,' "$out")" -eq 0 ]
    unset PLUMB_MPI_MODULE
    mpirun=mpirun.mpich
    launched 2 -- --size 16K
    [ "$status" -ne 0 ]
    grep -q '(Open MPI .*make mpi-module MPICC=' "$err"
    [ "$(grep -c '^mpi,' "$out")" -eq 0 ]
}

# aware: from here on launched is for GPUs' memory, of the simulated machine, by this MPI made CUDA-aware: options of mpirun are in $says_yes.
aware()
{
    local stand_in=$BATS_TEST_TMPDIR/mpi_gpu.so
    simulate two
    command -v "$mpicc" >/dev/null || skip "$mpicc is not here"
    "$mpicc" -std=gnu11 -Wall -Werror -I. -shared -fPIC tests/sim/mpi_gpu.c -o "$stand_in" -ldl
    backend=mpi-cuda
    says_yes=(-x LD_PRELOAD="$stand_in")
    [ "$of" = openmpi ] || says_yes=(-genv LD_PRELOAD "$stand_in")
}

@test "mpi-cuda: every operation between 2 GPUs, data compared, wrong ones found; rows say that they are simulated" {
    open_mpi
    aware
    launched 2 "${says_yes[@]}" -- --ranks 2 --op "$every" --dtype f32,f64,i32 --size 40K
    all_good 18
    [ "$(times origin | sort -u)" = simulated ]
    times detail | grep -q '^Open MPI'
    [ "$(times chosen | grep -c 'share')" -eq 0 ]
    launched 2 "${says_yes[@]}" -- --ranks 2 --op all-gather,broadcast,all-to-all,send-receive --dtype bf16 --size 40K
    all_good 4
    launched 2 "${says_yes[@]}" -- --ranks 2 --in-place --op allreduce,all-gather,broadcast --size 64K
    all_good 3
    launched 2 "${says_yes[@]}" -- --ranks 2 --redop max --model resnet50 --dtype f32
    all_good 1
    exits 1 launched 2 "${says_yes[@]}" -- --ranks 2 --op "$every" --size 40K --inject corrupt
    [ "$(times status | uniq -c | xargs)" = '6 wrong' ]
    PLUMB_MPI_ELEMENTS=1000 launched 2 "${says_yes[@]}" -- --ranks 2 --op "$every" --size 40K
    all_good 5 # a sweep has what can be
    PLUMB_MPI_ELEMENTS=1000 launched 2 "${says_yes[@]}" -- --ranks 2 --op reduce-scatter --size 40K
    row skipped ' 1000 elements'
}

@test "mpi-cuda: what cannot be is a reason with a remedy: an MPI that is not CUDA-aware, a sum of 16-bit numbers, operations that do not block, no GPU" {
    open_mpi
    aware
    launched 2 -- --ranks 2 --size 16K
    row skipped 'mpi-cuda: Open MPI *CUDA-aware'
    MPIR_CVAR_ENABLE_GPU=1 MPICH_GPU_SUPPORT_ENABLED=1 MV2_USE_CUDA=1 launched 2 -- --ranks 2 --size 16K # not its own
    [ "$(times status)" = skipped ]
    launched 2 "${says_yes[@]}" -- --ranks 2 --dtype bf16 --size 16K
    row skipped 'mpi-cuda: *16-bit'
    launched 2 "${says_yes[@]}" -- --ranks 2 --overlap --op allreduce --size 16K
    row skipped '--overlap'
    launched 2 "${says_yes[@]}" -- --ranks 2 --overlap --op send-receive --size 16K
    all_good 1
    alone --backend mpi-cuda --ranks 2 --size 16K
    times reason | grep -q 'mpi-cuda: .*mpirun'
    unset PLUMB_SIM_MACHINE
    launched 2 "${says_yes[@]}" -- --ranks 2 --size 16K
    [ "$(times status)" = skipped ]
    times reason | grep -q '^cuInit: '
}

@test "MPICH, mpi-cuda: refused where it says no; every operation, beside a matrix product, too" {
    mpich
    aware
    MPIR_CVAR_ENABLE_GPU=1 launched 2 -- --ranks 2 --size 16K
    row skipped 'mpi-cuda: MPICH *CUDA-aware'
    launched 2 "${says_yes[@]}" -- --ranks 2 --op "$every" --dtype f32,f64,i32 --size 40K
    all_good 18
    [ "$(times origin | sort -u)" = simulated ]
    launched 2 "${says_yes[@]}" -- --ranks 2 --overlap --op allreduce,broadcast --size 64K
    all_good 2
}
