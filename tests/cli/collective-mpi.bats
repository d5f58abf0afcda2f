#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2030,SC2031,SC2154 # each test has variables of its own, setup sets the others
# plumb-allreduce over MPI under its own launcher, with memory of the host and of the simulated device.

# takes: spinners
# Ranks that an MPI library starts spin where they wait: beside another such file each of both would be late.

bats_require_minimum_version 1.5.0
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
    times detail | grep -q 'sum of 16-bit numbers by plumb'
    launched 2 -- --ranks 2 --op all-gather,broadcast --dtype e4m3,e5m2 --size 64K
    all_good 4
    launched 2 -- --ranks 2 --redop min,prod --dtype f32,bf16,i8,i64 --size 64K
    all_good 8
    launched 2 -- --ranks 2 --redop avg --size 64K
    times reason | grep -q 'averages are made by NCCL alone'
    launched 2 -- --ranks 2 --dtype e4m3 --size 64K
    times reason | grep -q 'fp8 is reduced by NCCL alone'
}

@test "mpi: maxima, in place, and communicators of some of the ranks" {
    launched 3 -- --ranks 1,2,3 --redop max --dtype f32,bf16 --size 24K
    all_good 6
    launched 2 -- --ranks 2 --in-place --op allreduce,all-gather,broadcast --size 64K
    all_good 3
    launched 2 -- --ranks 2 --in-place --op reduce-scatter --size 64K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'at the beginning of the vector'
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
    [ "$(times detail | grep -c 'sum of parts by plumb')" -eq 1 ] # reduce-scatter of f32
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

@test "mpi: the calls of a vector that is cut are as long as the row says" {
    open_mpi
    cat >"$BATS_TEST_TMPDIR/takes.c" <<'END'
#include <mpi.h>
#include <stdio.h>
int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    static int seen;
    int rank;
    PMPI_Comm_rank(comm, &rank);
    if (rank == 0 && seen++ < 50)
        fprintf(stderr, "takes %d\n", n);
    return PMPI_Allreduce(in, out, n, type, op, comm);
}
END
    mpicc -shared -fPIC "$BATS_TEST_TMPDIR/takes.c" -o "$BATS_TEST_TMPDIR/takes.so" || skip "no compiler here"
    PLUMB_MPI_ELEMENTS=1000 launched 2 -x LD_PRELOAD="$BATS_TEST_TMPDIR/takes.so" -- --ranks 2 --size 8K
    in_parts 1
    [ "$(grep -h '^takes ' "$err" | sort -u)" = $'takes 44\ntakes 501' ] # 2048 = 4 x 501 + 44
}

@test "mpi: beside a matrix product" {
    launched 2 -- --ranks 2 --overlap --op allreduce,send-receive --size 256K
    all_good 2
}

@test "mpi: the algorithm that was asked for is taken, for that case alone, and told" {
    open_mpi
    launched 2 -- --ranks 2 --algorithm ring --size 64K
    all_good 1
    [ "$(times chosen)" = 'ring, as asked for' ]
    launched 2 -- --ranks 2 --size 64K
    all_good 1
    [ "$(times chosen)" = 'its own choice' ]
    launched 2 --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 3 -- --ranks 2 --size 64K
    [ "$(times chosen)" = 'recursive-doubling, forced by its settings' ]
}

# A function of Open MPI's that is called through its table of symbols says so.
@test "mpi: the algorithm that was asked for is the one that runs" {
    open_mpi
    cat >"$BATS_TEST_TMPDIR/tell.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#define TELL(name)                                                                                 \
    int name(void *a, void *b, long c, void *d, void *e, void *f, void *g)                         \
    {                                                                                              \
        int (*real)(void *, void *, long, void *, void *, void *, void *) = dlsym(RTLD_NEXT, #name); \
        fprintf(stderr, "runs %s\n", #name);                                                       \
        return real(a, b, c, d, e, f, g);                                                          \
    }
TELL(ompi_coll_base_allreduce_intra_ring)
TELL(ompi_coll_base_allreduce_intra_basic_linear)
END
    cc -shared -fPIC "$BATS_TEST_TMPDIR/tell.c" -o "$BATS_TEST_TMPDIR/tell.so" -ldl || skip "no compiler here"
    launched 2 -x LD_PRELOAD="$BATS_TEST_TMPDIR/tell.so" --mca coll_tuned_use_dynamic_rules 1 \
        --mca coll_tuned_allreduce_algorithm 4 -- --ranks 2 --size 64K
    grep -q 'runs ompi_coll_base_allreduce_intra_ring' "$err" || skip "this Open MPI calls them another way"
    launched 2 -x LD_PRELOAD="$BATS_TEST_TMPDIR/tell.so" -- --ranks 2 --algorithm basic-linear --size 64K
    all_good 1
    grep -q 'runs ompi_coll_base_allreduce_intra_basic_linear' "$err"
    launched 2 -x LD_PRELOAD="$BATS_TEST_TMPDIR/tell.so" -- --ranks 2 --size 64K # ring, or one that is made of it
    all_good 1
    [ "$(grep -c 'runs ompi_coll_base_allreduce_intra_basic_linear' "$err")" -eq 0 ]
}

@test "mpi: an algorithm that cannot be had is a reason with the names, or with what to give mpirun" {
    open_mpi
    launched 2 -- --ranks 2 --algorithm rings --size 64K
    [ "$(times status)" = skipped ]
    times reason | grep -q "no such algorithm: 'rings'; this MPI has .*recursive-doubling, ring,"
    launched 2 -- --ranks 2 --op send-receive --algorithm ring --size 64K
    times reason | grep -q 'MPI has no algorithms for send-receive'
    launched 2 --mca coll_tuned_use_dynamic_rules 0 -- --ranks 2 --algorithm ring --size 64K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'give mpirun --mca coll_tuned_use_dynamic_rules 1'
}

@test "mpi: each name of --device is that of an interface or RDMA port; one that there is not is a reason with those that there are" {
    launched 2 -- --size 4K --device lo+lo
    [ "$status" -eq 0 ]
    launched 2 -- --size 4K --device lo+nobody0
    grep -q "mpi: no interface or RDMA device 'nobody0' here; there are .*lo" "$out"
    [ "$(grep -c ',ok,' "$out")" -eq 0 ]
}

@test "mpi: without a launcher it is skipped, and a launcher of another MPI is an error" {
    [ -e build/lib/plumbline/plumb-mpi.so ] || skip "plumb-mpi.so was not built: there is no MPI here"
    alone --backend mpi --ranks 2 --size 64K
    [ "$(times status | sort -u)" = skipped ]
    times reason | grep -q 'mpirun -np 4 plumb-allreduce'
    OMPI_COMM_WORLD_SIZE=4 alone --backend mpi --size 64K
    [ "$status" -eq 2 ]
    grep -q 'the launcher started 4 processes, but this is rank 0 of 1' "$err"
    [ ! -s "$out" ]
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
        sleep 0.1
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
    [ -e "${PLUMB_MPI_MODULE:-build/lib/plumbline/plumb-mpi.so}" ] || skip "plumb-mpi.so was not built: there is no MPI here"
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
    times reason | head -n 1 | grep -q '^rank 2 (.*) does not answer: it hangs or was cut off$'
    [ "$(times reason | tail -n +2 | grep -c '^a rank was lost in an earlier case: rank 2 (.*) does not answer')" -eq 5 ]
}

@test "mpi: a rank that is killed is named at once" {
    strike KILL 1 --ranks 3
    ((took <= NAMED_S))
    # mpirun may end rank 0 before it gives a row: it has said so before.
    grep -q '^rank 1 (.*) is gone: it was killed, or has ended$' "$err"
    [ -z "$(times reason)" ] || times reason | head -n 1 | grep -q '^rank 1 (.*) is gone: it was killed, or has ended$'
}

# run_and_kill RANK SIGNAL: plumb run of two cases by mpirun with 3 ranks; sends it to that rank in the smaller one, whichever is first. Rows are in $out.
run_and_kill()
{
    local plumb=${PLUMB_BIN:-$PWD/build/bin}/plumb ranks
    open_mpi
    [ -e build/lib/plumbline/plumb-mpi.so ] || skip "plumb-mpi.so was not built: there is no MPI here"
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
        grep -qE '^65536\|rank 2 \(.*\) is gone: it was killed, or has ended( \(said by rank 0\))?$'
    other_case_ran
}

@test "mpi: plumb run names rank 0 where that is killed, not those that end for it" {
    run_and_kill 0 KILL
    paste -d'|' <(cells size) <(cells reason) |
        grep -qE '^65536\|rank 0 \(.*\) is gone: it was killed, or has ended \(said by rank [12]\)$'
    other_case_ran
}

@test "mpi: where rank 0 hangs the others say so and end" {
    strike STOP 0 --ranks 3
    ((took <= NAMED_S))
    [ "$status" -ne 0 ]
    grep -q '^rank [12] (.*): rank 0 (.*) does not answer: it hangs or was cut off: this process ends$' "$err"
    # Woken up by the launcher's signals it does not blame them.
    times reason | while read -r reason; do [[ $reason = "rank 0 ("*") itself stood still for "* ]] || return 1; done
}

@test "mpi: without signs of life it is said at the start, and a hang ends the case all the same" {
    cat >"$BATS_TEST_TMPDIR/refuse.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
int connect(int fd, const struct sockaddr *to, socklen_t n)
{
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    Dl_info who;

    if (to->sa_family != AF_INET || !dladdr(__builtin_return_address(0), &who) ||
        !strstr(who.dli_fname, "plumb-allreduce"))
        return real(fd, to, n);
    errno = ECONNREFUSED;
    return -1;
}
END
    cc -shared -fPIC "$BATS_TEST_TMPDIR/refuse.c" -o "$BATS_TEST_TMPDIR/refuse.so" -ldl || skip "no compiler here"
    LD_PRELOAD=$BATS_TEST_TMPDIR/refuse.so strike STOP 2 --ranks 3
    ((took <= NAMED_S))
    grep -q '^no signs of life can be had from rank 1 (.*), rank 2 (' "$err"
    # Rank 0 waits in the library, or for the others' word after its own part; or only rank 2 is not back from the library,
    # or was stopped between two requests and does not take the next.
    times reason | head -n 1 | grep -qE -e "'mpi' has not ended after .* s; there are no signs of life of rank 1 " \
        -e '^rank 1 \(.*, rank 2 \(.*\) do not answer, and there are no signs of life' \
        -e '^rank 2 \(.*\) (does not answer|has not taken a message in time): it hangs or was cut off'
}

@test "mpi: a rank that never comes is named, and the next case is asked of all" {
    local began=$SECONDS
    launched 3 -- --ranks 3,2 --size 64K --inject absent
    ((SECONDS - began <= 2 * NAMED_S))
    times reason | head -n 1 | grep -q '^rank 2 (.*) does not answer'
    times reason | tail -n 1 | grep -q '^rank 1 (.*) does not answer' # asked anew, in the same launch
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
    [ "$(times chosen | sort -u)" = 'its own choice' ]
    MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=recursive_doubling launched 2 -- --ranks 2 --op allreduce,broadcast --size 16K
    all_good 2
    [ "$(times chosen)" = 'recursive-doubling, by its settings, where it can
its own choice' ]
    launched 2 -- --ranks 2 --algorithm ring --size 16K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'set MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM$'
    launched 1 -- --size 16K --ranks 1
    [ "$(times status)" = skipped ]
    times reason | grep -q 'its ranks, two or more, are started by mpirun'
}

@test "MPICH: every operation by its calls with 64-bit counts, and cut" {
    mpich
    launched 2 -- --ranks 2 --op "$every" --dtype f32,bf16 --size 40K
    all_good 12
    PLUMB_MPI_ELEMENTS=1000 launched 2 -- --ranks 2 --op "$every" --dtype f32,bf16 --size 16K
    in_parts 12
    PLUMB_MPI_ELEMENTS=1000 launched 2 -- --ranks 2 --overlap --op "$every" --size 16K
    in_parts 6
}

@test "MPICH: a setting that it does not know is an error, and no crash" {
    mpich
    MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=no_such_algorithm launched 2 -- --ranks 2 --size 16K
    [ "$status" -ne 0 ]
    [ "$(grep -c 'plumb-allreduce: MPI does not take its settings' "$err")" -eq 2 ]
    [ "$(grep -c '^mpi,' "$out")" -eq 0 ]
}

@test "MPICH: a rank that hangs is named" {
    mpich
    strike STOP 2 --ranks 3,2
    ((took <= NAMED_S))
    times reason | head -n 1 | grep -q '^rank 2 (.*) does not answer: it hangs or was cut off$'
    times reason | tail -n 1 | grep -q '^a rank was lost in an earlier case: rank 2 ('
}

@test "MPICH and Open MPI: the launcher of the other one is an error that says so, and nothing is measured" {
    mpich
    mpirun=mpirun
    open_mpi
    launched 2 -- --size 16K
    [ "$status" -ne 0 ]
    grep -q 'the launcher started 2 processes, but this is rank 0 of 1: the launcher is not of the MPI that this build has (MPICH ' "$err"
    [ "$(grep -c '^mpi,' "$out")" -eq 0 ]
    unset PLUMB_MPI_MODULE
    mpirun=mpirun.mpich
    launched 2 -- --size 16K
    [ "$status" -ne 0 ]
    grep -q 'the launcher is not of the MPI that this build has (Open MPI .*make mpi-module MPICC=' "$err"
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

@test "mpi-cuda: every operation between 2 GPUs, data compared; rows say that they are simulated" {
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
    PLUMB_MPI_ELEMENTS=1000 launched 2 "${says_yes[@]}" -- --ranks 2 --op "$every" --size 40K
    all_good 5 # a sweep has what can be
    PLUMB_MPI_ELEMENTS=1000 launched 2 "${says_yes[@]}" -- --ranks 2 --op reduce-scatter --size 40K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'mpi-cuda: a reduce-scatter of more than 1000 elements is cut for this MPI'
}

@test "mpi-cuda: wrong data are found" {
    open_mpi
    aware
    launched 2 "${says_yes[@]}" -- --ranks 2 --op "$every" --size 40K --inject corrupt
    [ "$(times status)" = "$(printf 'wrong\n%.0s' 1 2 3 4 5 6)" ]
    [ "$status" -eq 1 ]
}

@test "mpi-cuda: ranks that share a GPU are a rehearsal, and each row says so" {
    open_mpi
    aware
    launched 3 "${says_yes[@]}" -- --ranks 2,3 --size 16K # rank 2 has the first one's
    all_good 2
    [ "$(paste -d' ' <(times ranks) <(times chosen))" = '2 its own choice
3 rehearsal, ranks share GPUs; its own choice' ]
}

@test "mpi-cuda: what cannot be is a reason with a remedy: an MPI that is not CUDA-aware, a sum of 16-bit numbers, operations that do not block, no GPU" {
    open_mpi
    aware
    launched 2 -- --ranks 2 --size 16K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'mpi-cuda: Open MPI .* says that it is not CUDA-aware: take one that was built for CUDA'
    MPIR_CVAR_ENABLE_GPU=1 MPICH_GPU_SUPPORT_ENABLED=1 MV2_USE_CUDA=1 launched 2 -- --ranks 2 --size 16K # not its own
    [ "$(times status)" = skipped ]
    launched 2 "${says_yes[@]}" -- --ranks 2 --dtype bf16 --size 16K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'mpi-cuda: MPI 3 has no 16-bit floating point'
    launched 2 "${says_yes[@]}" -- --ranks 2 --overlap --op allreduce --size 16K
    [ "$(times status)" = skipped ]
    times reason | grep -q "Open MPI's operations that do not block take no GPU's memory: leave --overlap out"
    launched 2 "${says_yes[@]}" -- --ranks 2 --overlap --op send-receive --size 16K
    all_good 1
    alone --backend mpi-cuda --ranks 2 --size 16K
    times reason | grep -q 'mpi-cuda: its ranks, two or more, are started by mpirun or srun'
    unset PLUMB_SIM_MACHINE
    launched 2 "${says_yes[@]}" -- --ranks 2 --size 16K
    [ "$(times status)" = skipped ]
    times reason | grep -q '^cuInit: '
}

@test "mpi-cuda: a rank that hangs in a call is named, as with mpi" {
    open_mpi
    aware
    strike STOP 2 --ranks 3,2
    ((took <= NAMED_S))
    [ "$(times status)" = 'failed
failed' ]
    times reason | head -n 1 | grep -q '^rank 2 (.*) does not answer: it hangs or was cut off$'
}

@test "mpi-cuda: an MPI that cannot be asked is believed by its own switch alone" {
    open_mpi
    aware
    export PLUMB_SIM_MPI_NAME='MPI VERSION    : CRAY MPICH version 8.1.27 (ANL base 3.4a2)'
    MV2_USE_CUDA=1 MPICH_GPU_SUPPORT_ENABLED=0 launched 2 "${says_yes[@]}" -- --ranks 2 --size 16K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'CRAY MPICH .* is not configured for GPU memory: set MPICH_GPU_SUPPORT_ENABLED=1$'
    MPICH_GPU_SUPPORT_ENABLED=1 launched 2 "${says_yes[@]}" -- --ranks 2 --size 16K
    all_good 1
    export PLUMB_SIM_MPI_NAME='Intel(R) MPI Library 2021.14 for Linux* OS'
    I_MPI_OFFLOAD=1 launched 2 "${says_yes[@]}" -- --ranks 2 --size 16K # may be Intel's GPUs
    [ "$(times status)" = skipped ]
    I_MPI_OFFLOAD=1 I_MPI_OFFLOAD_MODE=cuda launched 2 "${says_yes[@]}" -- --ranks 2 --size 16K
    all_good 1
}

@test "MPICH, mpi-cuda: refused where it says no; every operation, beside a matrix product, too" {
    mpich
    aware
    MPIR_CVAR_ENABLE_GPU=1 launched 2 -- --ranks 2 --size 16K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'mpi-cuda: MPICH .* says that it is not CUDA-aware'
    launched 2 "${says_yes[@]}" -- --ranks 2 --op "$every" --dtype f32,f64,i32 --size 40K
    all_good 18
    [ "$(times origin | sort -u)" = simulated ]
    launched 2 "${says_yes[@]}" -- --ranks 2 --overlap --op allreduce,broadcast --size 64K
    all_good 2
}
