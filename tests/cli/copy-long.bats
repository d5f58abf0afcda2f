#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-copy from outside: its rows, both directions, wrong data, peers that die, and refused engines.

load rows
load processes
load copy

# Skips the test where the kernel refuses cross-memory attach.
needs_attach()
{
    copy --engine cma --size 8
    [ "$(cells status)" != skipped ] || skip "cross-memory attach is refused here"
}

@test "cma: by the receiver and by the sender" {
    needs_attach
    copy --engine cma,cma-write --size 4K,1M --memory pageable,huge
    [ "$status" -eq 0 ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    [[ $(cells evidence | head -n 1) == *process_vm_readv* ]]
    [[ $(cells evidence | tail -n 1) == *process_vm_writev* ]]
}

@test "places: all pairs of nodes by default, a place that is not here is wrong usage" {
    HWLOC_SYNTHETIC=$two_nodes copy --engine memcpy --size 4K
    [ "$status" -eq 0 ]
    [ "$(paste -d' ' <(cells source) <(cells destination) | paste -sd,)" = \
        "node0 node0,node0 node1,node1 node0,node1 node1" ]
    copy --engine memcpy --size 4K --source node4711
    [ "$status" -eq 2 ]
    grep -q " 4711: .*node0" "$err"
    for end in source destination; do
        copy --engine memcpy --size 4K --$end moon
        [ "$status" -eq 2 ]
        [ ! -s "$out" ]
        [[ $(<"$err") == *"'--$end': 'moon' "*" cuda:0, gpus"* ]]
    done
}

@test "places: the memory of both ends really is bound" {
    # hwloc believes in two nodes and asks the system for the second one.
    for ends in "--source node1 --destination node0" "--source node0 --destination node1"; do
        # shellcheck disable=SC2086 # ends is several words
        HWLOC_THISSYSTEM=1 HWLOC_SYNTHETIC=$two_nodes copy --engine memcpy --size 4K --metric latency $ends
        if [ "$status" -eq 4 ]; then
            [[ $(cells reason) == *" node 1"* ]]
        else
            [[ $(cells evidence) == *"node1 "* ]]
        fi
    done
}

# Until process $peer, the child of $parent, is past its start.
until_peer_at_work()
{
    for _ in $(seq 6000); do
        peer=$(ps -o pid= --ppid "$parent" | tr -d ' ')
        [ -n "$peer" ] && at_work 10 "$peer" && return
        sleep 0.05
    done
    return 1
}

@test "kill -9: the process at the other end dies with its parent" {
    "$bin" --engine shm --size 1M --budget 30s --width 0% >"$out" 2>&1 </dev/null &
    parent=$!
    until_peer_at_work
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
    until_peer_at_work
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
