#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2030,SC2031 # each test has variables of its own
# plumb-allreduce over libraries: MPI under its own launcher, and NCCL on the simulated device.

# waits: for launchers and time-outs

bats_require_minimum_version 1.5.0
load rows
load processes
load ../sim/env

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=$PWD/build/bin/plumb-allreduce
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
    quick=(--csv --no-cpu --budget 60ms --warmup 20ms)
    every=allreduce,reduce-scatter,all-gather,broadcast,all-to-all,send-receive
    rooted=reduce,gather,scatter
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    mpirun=mpirun backend=mpi mpicc=mpicc of=openmpi says_yes=()
    unset PLUMB_MPI_MODULE NCCL_DEBUG NCCL_DEBUG_FILE NCCL_ALGO NCCL_PROTO NCCL_HOSTID
}

# alone ARGUMENTS...: runs the benchmark; sets status, and leaves stdout and stderr in $out and $err.
alone()
{
    status=0
    timeout 120 "$bin" "${quick[@]}" "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# launched N MPIRUN'S OPTIONS -- ARGUMENTS...: the same, by mpirun.
launched()
{
    local n=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    command -v "$mpirun" >/dev/null || skip "there is no mpirun here"
    [ -e "${PLUMB_MPI_MODULE:-build/lib/plumbline/plumb-mpi.so}" ] || skip "plumb-mpi.so was not built: there is no MPI here"
    status=0
    timeout 120 "$mpirun" -np "$n" ${options[@]+"${options[@]}"} "$bin" "${quick[@]}" --backend "$backend" "$@" \
        >"$out" 2>"$err" </dev/null || status=$?
}

open_mpi()
{
    mpirun --version 2>/dev/null | grep -q 'Open MPI' || skip "this mpirun is not Open MPI's"
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

nccl()
{
    [ -e build/sim/libnccl.so.2 ] || skip "the simulated NCCL was not built (it needs nccl.h): make sim"
    alone --backend nccl "$@"
}

# times COLUMN: its cells in rows of times.
times() { paste -d'|' <(cells metric) <(cells "$1") | sed -n 's/^time|//p'; }

# Every time was measured, nothing is wrong; N of them.
all_good()
{
    [ "$status" -eq 0 ] || { cat "$err" "$out"; return 1; }
    [ "$(times status | grep -cxE 'ok|noisy')" -eq "$1" ] || { times status; times reason; return 1; }
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
    for _ in $(seq 1100); do
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

# at_work_of_3 PATTERN COMMAND...: starts the command in the background, as $job, until 3 ranks are at work. A launcher that starts none in 30 s, as Open MPI's was once
# seen to, is ended and started again, twice.
at_work_of_3()
{
    local pattern=$1 tries state start_s=30
    shift
    for tries in 1 2 3; do
        "$@" &
        job=$!
        state=0
        until_at_work "$pattern" || state=$?
        ((state == 2)) || return "$state"
        kill -KILL "$job" $(pgrep -P "$job")
        wait "$job" || true
        echo "try $tries: the launcher started nothing in 30 s"
    done
    return 1
}

# strike SIGNAL RANK ARGUMENTS...: sends it to that rank of 3 when they are at work; leaves how long it took from then on in $took.
strike()
{
    local signal=$1 rank=$2 job began ranks
    shift 2
    [ -n "${PLUMB_MPI_MODULE-}" ] || open_mpi
    [ -e "${PLUMB_MPI_MODULE:-build/lib/plumbline/plumb-mpi.so}" ] || skip "plumb-mpi.so was not built: there is no MPI here"
    at_work_of_3 "^$bin --csv --no-cpu --budget 60s" quiet "$out" "$err" \
        timeout 150 "$mpirun" -np 3 ${says_yes[@]+"${says_yes[@]}"} "$bin" --csv --no-cpu --budget 60s --min-samples 100000000 \
        --backend "$backend" --size 64K "$@" || { cat "$err"; return 1; }
    kill -"$signal" "${ranks[rank]}"
    began=$SECONDS status=0
    wait "$job" || status=$?
    took=$((SECONDS - began))
    echo "took $took s, status $status"
    cut -c 1-400 "$out"
    cat "$err"
    ! pgrep -f "$bin --csv --no-cpu --budget 60s" || return 1
}

@test "mpi: a rank that hangs in a call ends the case within 10 s with its name; what cannot run any more says why" {
    strike STOP 2 --ranks 3,2,1 --size 64K,128K
    ((took <= 15)) # a busy machine's seconds: the case would last 60
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
    ((took <= 10))
    # mpirun may end rank 0 before it gives a row: it has said so before.
    grep -q '^rank 1 (.*) is gone: it was killed, or has ended$' "$err"
    [ -z "$(times reason)" ] || times reason | head -n 1 | grep -q '^rank 1 (.*) is gone: it was killed, or has ended$'
}

# run_and_kill RANK SIGNAL: plumb run of two cases by mpirun with 3 ranks; sends it to that rank in the smaller one, whichever is first. Rows are in $out.
run_and_kill()
{
    local plumb=${PLUMB_BIN:-$PWD/build/bin}/plumb job ranks
    open_mpi
    [ -e build/lib/plumbline/plumb-mpi.so ] || skip "plumb-mpi.so was not built: there is no MPI here"
    cd "$BATS_TEST_TMPDIR" || return 1
    printf 'suite: t\nabout: a test\ndefaults: {repeat: 1, warmup: 20ms}\ncases:\n' >t.yaml
    printf '  - {bench: allreduce, backend: mpi, size: 64K, budget: 30s, min-samples: 100000000}\n' >>t.yaml
    printf '  - {bench: allreduce, backend: mpi, size: 128K, budget: 100ms}\n' >>t.yaml
    echo 'localhost slots=3' >hosts
    timeout 100 "$plumb" run t.yaml --hosts hosts --launcher mpirun --out r --no-report --launcher-args --oversubscribe \
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
    ((took <= 20))
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
    ((took <= 40))
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
    ((SECONDS - began <= 45)) # twice 10 s
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
    ((took <= 15))
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
    ((took <= 11))
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

@test "nccl: every operation and type between 2 GPUs, data compared; rows say that it is simulated" {
    simulate two
    nccl --np 2 --ranks 1,2 --op "$every" --dtype all --size 40K
    all_good 108
    [ "$(times origin | sort -u)" = simulated ]
    times detail | grep -q '^NCCL 2.*, via P2P/CUMEM$'
    [ "$(times chosen | grep -cx 'ring/simple, channels 0-1')" -eq 36 ] # of four operations between two
}

@test "nccl: every reduction of every type, also between three, where an average is rounded; a wrong one is found" {
    simulate eight
    nccl --np 3 --ranks 2,3 -d all -o all --size 24K
    all_good 90
    nccl --np 3 --ranks 3 -d all -o all --size 24K --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status | grep -cx wrong)" -eq 45 ]
    printf 'include = %s/tests/sim/machines/two.conf\n[gpu]\ncapability = 8.0\n' "$PWD" >"$BATS_TEST_TMPDIR/old.conf"
    simulate "$BATS_TEST_TMPDIR/old.conf"
    nccl --np 2 --ranks 2 -d e4m3,e5m2 --op allreduce,all-gather --size 24K
    [ "$(times reason | grep -c 'fp8 is reduced by GPUs of compute capability 9.0 or newer')" -eq 2 ]
    [ "$(times status | grep -cxE 'ok|noisy')" -eq 2 ]
}

@test "nccl, mpi: reduce, gather and scatter between 2 and 3 ranks, in place or not, data compared, wrong ones found" {
    simulate eight
    nccl --np 3 --ranks 1,2,3 --op "$rooted" --dtype f32,i8 --size 24K
    all_good 18
    nccl --np 3 --ranks 3 --op "$rooted" --in-place --size 24K
    all_good 3
    nccl --np 3 --ranks 3 --op "$rooted" --size 24K --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status | grep -cx wrong)" -eq 3 ]
    launched 3 -- --ranks 2,3 --op "$rooted" --dtype f32,bf16,i64 --size 24K
    all_good 18
    launched 3 -- --ranks 3 --op "$rooted" --in-place --size 24K
    all_good 3
    launched 3 -- --ranks 3 --op "$rooted" --overlap --size 24K
    all_good 3
    PLUMB_MPI_ELEMENTS=700 launched 3 -- --ranks 3 --op "$rooted" --size 24K
    all_good 3
    launched 3 -- --ranks 3 --op "$rooted,broadcast" --root 1,2 --size 24K
    all_good 8
    launched 3 -- --ranks 3 --op "$rooted,broadcast" --root 2 --in-place --size 24K
    all_good 4
    nccl --np 3 --ranks 3 --op "$rooted,broadcast" -r -1 --size 24K
    all_good 12
    [ "$(times root | sort -u | xargs)" = "0 1 2" ]
    nccl --np 3 --ranks 3 --op "$rooted,broadcast" -r 2 --in-place --size 24K
    all_good 4
    nccl --np 3 --ranks 3 --op "$rooted,broadcast" -r 1 --size 24K --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status | grep -cx wrong)" -eq 4 ]
}

@test "nccl: several GPUs in a process, by group calls: a communicator of all ranks, every operation right, a wrong one found" {
    local ops=allreduce,reduce-scatter,all-gather,broadcast,all-to-all,send-receive,reduce,gather,scatter
    simulate eight
    nccl --np 2 --ranks 2,4 --per-process 2 --op "$ops" --size 24K
    all_good 18
    [ "$(times per_process | sort -u)" = 2 ]
    [ "$(times ranks | sort | uniq -c | xargs)" = "9 2 9 4" ]
    # of 4 ranks 2 x 3 / 4: not of the 2 processes
    paste -d' ' <(cells metric) <(cells op) <(cells ranks) <(cells value) | awk '
        $2 != "allreduce" || $3 != 4 { next }
        $1 == "algbw" { rate = $4 }
        $1 == "busbw" { n++; if ($4 / rate < 1.4999 || $4 / rate > 1.5001) exit 1 }
        END { exit !(n == 1) }'
    nccl --ranks 4 --per-process 4 --in-place --op allreduce,reduce-scatter,all-gather --size 24K
    all_good 3
    nccl --ranks 4 --per-process 4 --in-place --op broadcast,gather,scatter,reduce --root 3 --size 24K
    all_good 4
    nccl --ranks 4 --per-process 4 --pipelined 5 --aggregate 3 --register symmetric --size 24K
    all_good 1
    nccl --ranks 4 --per-process 4 --op "$ops" --size 24K --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status | grep -cx wrong)" -eq 9 ]
    times reason | grep -q 'rank [0-3] of the communicator: element '
}

@test "nccl: several GPUs in a process: the GPUs of all its ranks are watched and named, and what cannot be is refused" {
    simulate eight
    for gpu in 1 3; do # of the first process the second GPU, of the second one, too
        fault "throttle:gpu=$gpu:factor=0.6:reason=power"
        nccl --np 2 --ranks 4 --per-process 2 --size 24K
        [ "$(times gpu_addresses)" = 0000:1b:00.0+0000:1c:00.0+0000:3b:00.0+0000:3c:00.0 ]
        [[ $(times disturbed) == *"GPU held back"* ]] || { times disturbed; return 1; }
    done
    unset PLUMB_SIM_FAULT
    nccl --np 1 --ranks 3 --per-process 3 --size 24K
    [[ $(times reason) == *"--per-process 3 does not divide the GPUs of this machine, of which there are 8"* ]]
    nccl --np 2 --ranks 3 --per-process 2 --size 24K
    [[ $(times reason) == *"--per-process 2 does not divide 3 ranks"* ]]
    nccl --np 1 --ranks 2 --per-process 2 --graph 2 --size 24K
    [[ $(times reason) == *"a graph is of one GPU in each process"* ]]
    simulate two
    nccl --np 2 --ranks 4 --per-process 2 --size 24K
    [[ $(times reason) == *"two processes of this machine would have the same GPUs"* ]]
    # nccl-tests: -g is of each process that a launcher started, else of the command
    simulate eight
    backend=nccl launched 2 -- -g 2 -b 24K -e 24K
    all_good 1
    [ "$(times ranks) $(times per_process)" = "4 2" ]
    alone -g 4 --per-process 4 -b 24K -e 24K -n 20
    all_good 1
    [ "$(times ranks) $(times per_process) $(times pipelined)" = "4 4 20" ]
}

@test "nccl: operations that are queued, given at once or kept as a graph: each is right, and a wrong one is found" {
    simulate two
    nccl --np 2 --ranks 2 --size 64K --pipelined 1,20
    all_good 2
    [ "$(times pipelined | xargs)" = "1 20" ]
    nccl --np 2 --ranks 2 --size 64K --pipelined 5 -m 2 -G 0,3 --op "$every" --dtype i32
    all_good 12
    [ "$(times graph | sort | uniq -c | xargs)" = "6 0 6 3" ]
    [ "$(times aggregate | sort -u)" = 2 ]
    nccl --np 2 --ranks 2 --size 64K --pipelined 4 -G 2 --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status)" = wrong ]
    nccl --np 2 --ranks 2 --size 64K --pipelined 4 -G 2 --in-place
    all_good 1
    fault corrupt:kernel=AllReduce:after=40:times=1000000
    nccl --np 2 --ranks 2 --size 64K --pipelined 4 -G 2
    [ "$status" -eq 1 ] && [ "$(times status)" = wrong ]
    fault hang:kernel=AllReduce:after=200
    nccl --np 2 --ranks 2 --size 64K --pipelined 20 --budget 2s
    [ "$status" -eq 4 ] && [ "$(times status)" = failed ]
    fault ''
    alone --np 2 --ranks 2 --backend ring,nccl --size 64K --pipelined 8 # ours wait for each
    all_good 2
    [ "$(times pipelined)" = "$(printf '\n8')" ]
    nccl --np 2 --ranks 2 --size 64K --pipelined 8 --overlap
    times reason | grep -q -- '--overlap is of single operations'
}

@test "nccl: registered buffers, as a window the kernels of windows, and an end to each; where it takes none, a reason" {
    simulate two
    export PLUMB_SIM_NCCL_TALLY=$BATS_TEST_TMPDIR/tally
    nccl --np 2 --ranks 2 --size 64K -R 0,1,2 --op allreduce,all-gather
    all_good 6
    [ "$(times register | sort | uniq -c | xargs)" = "2 local 2 none 2 symmetric" ]
    [ "$(times library_algorithm | sort | uniq -c | xargs)" = "4 ring 2 symmetric" ]
    [ "$(times library_protocol | sort -u | xargs)" = "AllGather_STMC AllReduce_RSxLDMC_AGxSTMC simple" ]
    [ "$(times library_channels | sort -n | uniq -c | xargs)" = "4 2 2 16" ]
    [ "$(grep -c 'registered=0$' "$PLUMB_SIM_NCCL_TALLY")" -eq "$(wc -l <"$PLUMB_SIM_NCCL_TALLY")" ]
    nccl --np 2 --ranks 2 --size 64K -R 2 --in-place --pipelined 3 -G 1
    all_good 1
    NCCL_LOCAL_REGISTER=0 nccl --np 2 --ranks 2 --size 64K -R 1
    [ "$(times status)" = skipped ]
    times reason | grep -q 'it did not register the buffers (--register local)'
    nccl --np 4 --ranks 4 --size 64K -R 2 # ranks that share GPUs are machines of their own
    [ "$(times status)" = skipped ]
    fault error:call=ncclMemAlloc:code=1
    nccl --np 2 --ranks 2 --size 64K
    times reason | grep -q 'ncclMemAlloc: unhandled cuda error'
    fault error:call=ncclCommWindowRegister:code=3
    nccl --np 2 --ranks 2 --size 64K -R 2
    times reason | grep -q 'ncclCommWindowRegister: internal error'
}

@test "nccl: --gpus 0 is every GPU that this machine shows, by 1, 2, 4 .. of them; of none it is a reason" {
    simulate eight
    alone --gpus 0 --size 64K
    all_good 4
    [ "$(times ranks | xargs)" = "1 2 4 8" ]
    [ "$(times backend | sort -u)" = nccl ]
    [ "$(cells rehearsal | sort -u)" = "" ] # no two on one GPU
    PLUMB_LIBCUDA=/nowhere/libcuda.so.1 alone --gpus 0 --size 64K
    [ "$(times status | sort -u)" = skipped ]
}

@test "nccl-tests' command lines mean the same, and what is not done is refused with a sentence" {
    local line
    simulate two
    alone -b 8 -e 64K -f 8 -g 2 -n 20 -w 5 -c 1 -o sum -d float -R 1 -a 3 -z 0 -N 1 -T 0
    all_good 5
    [ "$(times backend | sort -u) $(times ranks | sort -u) $(times pipelined | sort -u)" = "nccl 2 20" ]
    alone -b 64K -e 2112K -g 1 -t 2 -n 2 -z 0
    [ "$(times vector_bytes | xargs)" = "65536 1114112 2162688" ] # nccl-tests adds 1 MiB where there is no factor
    alone -b 64 -e 64 -g 1 -t 2 -n 1000 -z 0
    [ "$(times pipelined)" = 512 ]
    alone -b 64K -e 64K -g 2 -n 40 -z 2
    all_good 1
    [ "$(times pipelined)" = 1 ]
    for line in '-a 1' '-z 1' '-N 2' '-y 1' '-T 5' '-C 1' '-S 1' '-J x.json' '--cta-policy 1' '-D 1' '-V 4' '-M 1' '-u 1' '-I 1' '-K 1'; do
        # shellcheck disable=SC2086 # an option and its value
        alone -b 8 -e 8 -g 2 $line
        [ "$status" -eq 2 ] && [ ! -s "$out" ] || { echo "$line"; return 1; }
        grep -qE -- "^plumb-allreduce: --[a-z-]+ [^ ]+: .{10}" "$err"
    done
}

@test "nccl: in place, maxima, beside a matrix product" {
    simulate two
    nccl --np 2 --ranks 2 --in-place --op allreduce,reduce-scatter,all-gather,broadcast --size 64K
    all_good 4
    nccl --np 2 --ranks 2 --redop max --dtype f32,bf16 --size 64K
    all_good 2
    nccl --np 2 --ranks 2 --overlap --size 64K
    all_good 1
    nccl --np 2 --ranks 2 --in-place --op all-to-all --size 64K
    [ "$(times status)" = skipped ]
}

@test "nccl: no faster than the links of the simulated machine" {
    printf 'include = %s/tests/sim/machines/two.conf\n[link all]\npcie_gbps = 0.05\n' "$PWD" >"$BATS_TEST_TMPDIR/slow.conf"
    simulate "$BATS_TEST_TMPDIR/slow.conf"
    nccl --np 2 --ranks 2 --size 1M
    all_good 1
    times value | awk '{ exit !($1 >= 20970) }' # 1 MiB at 0.05 GB/s
}

@test "nccl: the algorithm that was asked for; a name that there is not" {
    simulate two
    nccl --np 2 --ranks 2 --size 64K --algorithm tree/ll
    all_good 1
    [ "$(times chosen)" = 'tree/ll, channels 0-1' ]
    nccl --np 2 --ranks 2 --size 64K --algorithm trees
    [ "$(times status)" = skipped ]
    times reason | grep -q "no such algorithm: 'trees'; there are tree, ring"
}

@test "nccl: ranks that share a GPU are a rehearsal, and each row of such says so" {
    simulate two
    nccl --np 4 --ranks 2,4 --size 64K
    all_good 2
    # Of two, each has one; of four, the third and the fourth share the first two's, and are machines of their own for NCCL.
    [ "$(paste -d' ' <(times ranks) <(times chosen) | grep -c '^4 rehearsal, ranks share GPUs')" -eq 1 ]
    [ "$(paste -d' ' <(times ranks) <(times chosen) | grep -c '^2 .*rehearsal')" -eq 0 ]
}

# As Slurm starts them with --gpus-per-task=1: each sees one GPU, its first.
@test "nccl: ranks of which each sees a GPU of its own alone share none: by peer access, no rehearsal" {
    local program=$bin rank
    open_mpi
    simulate one
    for rank in 0 1; do
        sed "s/^name = .*/&\nuuid = GPU-51300000-0000-0000-0000-00000000000$rank/" "$PLUMB_SIM_MACHINE" >"$BATS_TEST_TMPDIR/$rank.conf"
    done
    # shellcheck disable=SC2016 # the script expands them
    printf '#!/bin/sh\nPLUMB_SIM_MACHINE=%s/$OMPI_COMM_WORLD_RANK.conf exec %s "$@"\n' "$BATS_TEST_TMPDIR" "$program" >"$BATS_TEST_TMPDIR/own"
    chmod +x "$BATS_TEST_TMPDIR/own"
    bin=$BATS_TEST_TMPDIR/own backend=nccl
    launched 2 -- --ranks 2 --size 64K
    all_good 1
    [ "$(times chosen | grep -c rehearsal)" -eq 0 ]
    times detail | grep -q 'via P2P'
    bin=$program
    launched 2 -- --ranks 2 --size 64K # now it is one and the same
    all_good 1
    times chosen | grep -q '^rehearsal, ranks share GPUs'
    times detail | grep -q 'via NET/Socket, network lo$'
}

@test "nccl: somebody's own NCCL_DEBUG is left alone, and then its choice is not told" {
    simulate two
    NCCL_DEBUG=WARN nccl --np 2 --ranks 2 --size 64K
    all_good 1
    [ -z "$(times chosen)" ]
    times detail | grep -q 'debug output was not read'
}

@test "nccl: wrong data, a failure of NCCL's and a GPU that hangs end a case with their reason" {
    simulate two
    fault corrupt:kernel=AllReduce
    nccl --np 2 --ranks 2 --size 64K
    [ "$(times status)" = wrong ]
    fault error:call=ncclCommInitRankConfig:code=2
    nccl --np 2 --ranks 2 --size 64K
    [ "$(times status)" = failed ]
    times reason | grep -q 'ncclCommInitRankConfig: unhandled system error'
    fault error:call=ncclCommGetAsyncError:code=6:after=2
    nccl --np 2 --ranks 2 --size 64K
    [ "$(times status)" = failed ]
    times reason | grep -q 'remote process exited'
    fault hang:kernel=AllReduce:after=8:gpu=1
    nccl --np 2 --ranks 2 --size 64K,1M
    [ "$(times status | sort -u)" = failed ]
    times reason | head -n 1 | grep -q 'nothing has moved for'
    times reason | tail -n 1 | grep -q 'the GPU did not answer in a case before this one'
}

# ranks COLUMN...: of each rank's row of late_share the rank and these columns.
ranks() {
    python3 - "$out" "$@" <<'END'
import csv, sys
for row in csv.DictReader(open(sys.argv[1])):
    if row["metric"] == "late_share":
        print(",".join([row["rank"]] + [row[c] for c in sys.argv[2:]]))
END
}

@test "nccl: each rank watches its own GPU, and the row says whose was held back" {
    simulate two
    fault throttle:gpu=1:factor=0.6:reason=power
    nccl --np 2 --ranks 2 --size 64K
    all_good 1
    times disturbed | grep -q 'rank 1 (.*): GPU held back in .* (power cap)'
    times disturbed | grep -vq 'rank 0: GPU'
    [ "$(times gpu_clock_mhz_low) $(times gpu_clock_mhz_high) $(times gpu_throttle)" = '900 1500 power cap' ]
    # Each rank's row has its own GPU's alone, rank 0's too.
    [ "$(ranks gpu_clock_mhz_low gpu_clock_mhz_high gpu_throttle gpu_ecc_errors)" = '0,1500,1500,,0
1,900,900,power cap,0' ]
    fault throttle:gpu=0:factor=0.6:reason=thermal
    nccl --np 2 --ranks 2 --size 64K
    times disturbed | grep -q 'rank 0: GPU held back in .* (thermal slowdown)'
    times disturbed | grep -vq 'rank 1'
    [ "$(ranks gpu_clock_mhz_low gpu_throttle)" = '0,900,thermal slowdown
1,1500,' ]
    fault no_nvml # what cannot be read is not known
    nccl --np 2 --ranks 2 --size 64K
    [ "$(ranks gpu_clock_mhz_low gpu_clock_mhz_high gpu_throttle gpu_throttled_looks gpu_ecc_errors)" = '0,,,,,
1,,,,,' ]
    fault ''
    CUDA_DEVICE_MAX_CONNECTIONS=1 nccl --np 2 --ranks 2 --size 64K
    times disturbed | grep -vq 'GPU'
    times detail | grep -q ', CUDA_DEVICE_MAX_CONNECTIONS=1'
}

# What is timed has no thread in it that NCCL would start for each operation of a communicator that does not block.
@test "nccl: no operation has a thread of NCCL's started for it" {
    simulate two
    export PLUMB_SIM_NCCL_TALLY=$BATS_TEST_TMPDIR/tally
    nccl --np 2 --ranks 2 --op allreduce,all-to-all --size 64K
    all_good 2
    [ "$(wc -l <"$PLUMB_SIM_NCCL_TALLY")" -eq 4 ]
    awk -F'[= ]' '{ idle += $2 == 0; threads += $4 } END { exit !(NR == 4 && !idle && threads == 0) }' "$PLUMB_SIM_NCCL_TALLY" # each was used
}

@test "nccl: a rank that never joins ends the case; a call that does not heed that it is aborted, those after it" {
    local fails=error:call=ncclCommInitRankConfig:code=2:gpu=1:times=1
    simulate two
    fault "$fails"
    nccl --np 2 --ranks 2 --size 64K,128K
    [ "$status" -eq 4 ]
    times reason | head -n 1 | grep -q 'ncclCommInitRankConfig: unhandled system error'
    [[ $(times status | tail -n 1) == @(ok|noisy) ]]
    fault "$fails,hang:kernel=ncclCommInitRankConfig:gpu=0"
    nccl --np 2 --ranks 2 --size 64K,128K
    [ "$status" -eq 4 ]
    [ "$(times status | sort -u)" = failed ]
    times reason | tail -n 1 | grep -q 'not tried: the GPU did not answer in a case before this one'
}

@test "nccl: what is missing is a reason with a remedy" {
    simulate two
    [ -e build/lib/plumbline/plumb-nccl.so ] || skip "plumb-nccl.so was not built: there is no nccl.h here"
    PLUMB_LIBNCCL=/nonexistent nccl --np 2 --ranks 2 --size 64K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'named by PLUMB_LIBNCCL does not load'
    PLUMB_NCCL_MODULE=/nonexistent nccl --np 2 --ranks 2 --size 64K
    [ "$(times status)" = skipped ]
    times reason | grep -q 'PLUMB_NCCL_MODULE'
}
