#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-copy from outside: the places between which it copies.

load rows
load copy

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
