#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb-copy from outside: its rows, both directions, wrong data, peers that die, and refused engines.

load rows

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=build/bin/plumb-copy
    quick="--csv --budget 30ms --warmup 10ms"
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
    two_nodes="pack:2 [numa(memory=8GB)] l3:1(size=8388608) l2:4(size=1048576) l1:1(size=32768) core:1 pu:1"
}

# copy ARGUMENTS...: runs the benchmark; sets status, and leaves stdout and stderr in $out and $err.
copy()
{
    status=0
    # shellcheck disable=SC2086 # quick is several words
    timeout 600 "$bin" $quick "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# Skips the test where the kernel refuses cross-memory attach.
needs_attach()
{
    copy --engine cma --size 8
    [ "$(cells status)" != skipped ] || skip "cross-memory attach is refused here"
}

@test "engines: a row each, with a measured limit and evidence" {
    copy --engine memcpy,shm,pipe --size 8,64K
    [ "$status" -eq 0 ]
    [ "$(cells engine | uniq | paste -sd ' ')" = "memcpy shm pipe" ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    [ "$(cells unit | sort -u)" = GB/s ]
    [ "$(cells direction | sort -u)" = one-way ]
    [ "$(cells source | sort -u)" = "$(cells destination | sort -u)" ]
    cells value | awk '!($1 > 0) { exit 1 }'
    [ "$(cells limit_source | grep -c '^reference: best copy by one core')" -eq 4 ]
    [ "$(cells limit_source | grep -c '^measured: best copy by one core')" -eq 2 ]
    [ "$(cells evidence | grep -c 'source: .*destination: ')" -eq 6 ]
    [[ $(cells evidence | tail -n 1) == *"pipe buffer "*" KiB"* ]]
}

@test "cma: by the receiver and by the sender" {
    needs_attach
    copy --engine cma,cma-write --size 4K,1M --memory pageable,huge
    [ "$status" -eq 0 ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    [[ $(cells evidence | head -n 1) == *process_vm_readv* ]]
    [[ $(cells evidence | tail -n 1) == *process_vm_writev* ]]
}

@test "both: forward, reverse and their sum" {
    for engine in memcpy shm pipe cma; do
        copy --engine $engine --size 256K --direction both
        [ "$status" -eq 0 ]
        [ "$(cells direction | paste -sd ' ')" = "forward reverse sum" ]
        [ "$(cells status | head -n 1)" != skipped ] || continue
        # The sum's time is the longer one: in the same sample it is at most forward + reverse.
        cells max | awk '{ v[NR] = $1 } END { exit !(v[3] > 0 && v[3] <= 1.001 * (v[1] + v[2])) }'
        cells limit | awk '{ v[NR] = $1 } END { exit !(v[3] > v[1] && v[3] > v[2]) }'
    done
}

@test "latency: one message a sample, in us, no sum and no limit" {
    copy --engine memcpy,shm,pipe --size 8 --metric latency --direction one-way,both
    [ "$status" -eq 0 ]
    [ "$(cells metric | sort -u)" = latency ]
    [ "$(cells unit | sort -u)" = us ]
    [ "$(cells inner_repeat | sort -u)" = 1 ]
    [ "$(cells direction | paste -sd ' ')" = \
        "one-way forward reverse one-way forward reverse one-way forward reverse" ]
    [ "$(cells limit | sort -u)" = "" ]
    cells p99 | awk '!($1 > 0) { exit 1 }'
    [ "$(cells reason | grep -c 'one way, and one reading of the clock is in it')" -eq 9 ]
    [ "$(cells evidence | grep -c 'a reading of the clock takes [0-9.]* ns')" -eq 9 ]
    copy --engine memcpy,shm --size 8
    [ "$(cells reason | grep -c 'reading of the clock')" -eq 0 ]
}

@test "places: all pairs of nodes by default, a place that is not here is skipped" {
    HWLOC_SYNTHETIC=$two_nodes copy --engine memcpy --size 4K
    [ "$status" -eq 0 ]
    [ "$(paste -d' ' <(cells source) <(cells destination) | paste -sd,)" = \
        "node0 node0,node0 node1,node1 node0,node1 node1" ]
    copy --engine memcpy --size 4K --source node4711
    [ "$status" -eq 0 ]
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == *"no NUMA node 4711: it shows node0"* ]]
    for end in source destination; do
        copy --engine memcpy --size 4K --$end moon
        [ "$status" -eq 2 ]
        [ ! -s "$out" ]
        [[ $(<"$err") == *"option '--$end': 'moon' is not a place: host, node0, nodes, cuda:0, gpus"* ]]
    done
}

@test "places: the host is its first node, and is copied to once" {
    copy --engine memcpy --size 4K --source host,node0,node:0 --destination node0,host
    [ "$status" -eq 0 ]
    [ "$(paste -d' ' <(cells source) <(cells destination) | paste -sd,)" = "node0 node0" ]
}

@test "options of GPUs say nothing between places of the host: refused" {
    for option in "--op read" "--access on" "--together all" "--together none" "--pairs sampled"; do
        # shellcheck disable=SC2086 # two words
        copy --engine memcpy --size 4K --source node0 --destination node0 $option
        [ "$status" -eq 2 ]
        [ ! -s "$out" ]
        [[ $(<"$err") == *"option '${option%% *}' does not apply here: it is for copies between "*"; leave it out"* ]]
    done
}

@test "places: the memory of both ends really is bound" {
    # hwloc believes in two nodes and asks the system for the second one.
    for ends in "--source node1 --destination node0" "--source node0 --destination node1"; do
        # shellcheck disable=SC2086 # ends is several words
        HWLOC_THISSYSTEM=1 HWLOC_SYNTHETIC=$two_nodes copy --engine memcpy --size 4K --metric latency $ends
        if [ "$status" -eq 4 ]; then
            [[ $(cells reason) == *"memory cannot be bound to node 1"* ]]
        else
            [[ $(cells evidence) == *"node1 "* ]]
        fi
    done
}

@test "wrong data: found on every way, exit 1" {
    for engine in memcpy shm pipe cma cma-write; do
        copy --engine $engine --size 64K --inject corrupt
        [ "$(cells status)" != skipped ] || continue
        [ "$status" -eq 1 ]
        [ "$(cells status)" = wrong ]
        [[ $(cells reason) == *"wrong data in "* ]]
    done
}

@test "a peer that dies: the case fails within seconds, the next one runs, no process is left" {
    begin=$SECONDS
    copy --engine shm,pipe,memcpy --size 64K --direction one-way,both --inject peer-dies
    [ "$status" -eq 4 ]
    [ $((SECONDS - begin)) -lt 300 ]
    [ "$(cells status | sort | uniq -c | awk '$2 == "failed" { print $1 }')" -eq 8 ]
    [ "$(cells reason | grep -c 'the process at the other end died')" -eq 8 ]
    cells status | tail -n 1 | grep -q -e ok -e noisy
}

# children PID: processes whose parent it is.
children() { ps -o pid= --ppid "$1" | tr -d ' '; }

@test "kill -9: the process at the other end dies with its parent" {
    "$bin" --engine shm --size 1M --budget 30s --width 0% >"$out" 2>&1 </dev/null &
    parent=$!
    peer=''
    for _ in $(seq 6000); do
        peer=$(children $parent)
        [ -z "$peer" ] || break
        sleep 0.05
    done
    [ -n "$peer" ]
    kill -9 $parent
    wait $parent || true
    for _ in $(seq 6000); do
        kill -0 "$peer" 2>/dev/null || break
        # A zombie that nobody reaps yet is dead, too.
        [ "$(ps -o stat= -p "$peer" | cut -c1)" != Z ] || break
        sleep 0.05
    done
    ! kill -0 "$peer" 2>/dev/null || [ "$(ps -o stat= -p "$peer" | cut -c1)" = Z ]
}

@test "Ctrl-C: ends cleanly, with its row and without a process left" {
    "$bin" --csv --engine pipe --size 1M --budget 30s --width 0% >"$out" 2>"$err" </dev/null &
    parent=$!
    peer=''
    for _ in $(seq 6000); do
        peer=$(children $parent)
        [ -z "$peer" ] || break
        sleep 0.05
    done
    [ -n "$peer" ]
    sleep 0.3
    # A terminal sends it to every process of the group; the peer must wait for its parent's word.
    for signal in INT INT TERM TERM; do
        kill -$signal "$peer"
        sleep 0.05
    done
    sleep 0.2
    kill -INT "$parent" || kill -TERM "$parent"
    status=0
    wait $parent || status=$?
    [ "$status" -eq 4 ]
    [ "$(cells status)" != failed ]
    run kill -0 "$peer"
    [ "$status" -ne 0 ]
}

@test "refused cross-memory attach: skipped, with what to do" {
    command -v "${CC:-cc}" >/dev/null || skip "no compiler"
    cat >"$BATS_TEST_TMPDIR/refuse.c" <<'END'
#include <errno.h>
#include <sys/types.h>
ssize_t process_vm_readv(void) { errno = EPERM; return -1; }
ssize_t process_vm_writev(void) { errno = EPERM; return -1; }
END
    "${CC:-cc}" -shared -fPIC -o "$BATS_TEST_TMPDIR/refuse.so" "$BATS_TEST_TMPDIR/refuse.c"
    LD_PRELOAD=$BATS_TEST_TMPDIR/refuse.so copy --engine cma,cma-write --size 4K
    [ "$status" -eq 0 ]
    [ "$(cells status | sort -u)" = skipped ]
    [[ $(cells reason | head -n 1) == *"ptrace_scope=1"* ]]
    [[ $(cells reason | tail -n 1) == *"--cap-add SYS_PTRACE"* ]]
}
