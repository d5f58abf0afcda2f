#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-copy from outside: the places between which it copies.

load rows
load copy

@test "places: all pairs of nodes by default, a place that is not here is wrong usage" {
    HWLOC_SYNTHETIC=$two_nodes exits 0 copy --engine memcpy --size 4K
    [ "$(paste -d' ' <(cells source) <(cells destination) | paste -sd,)" = \
        "node0 node0,node0 node1,node1 node0,node1 node1" ]
    for end in source destination; do
        warned 2 "'--$end': 'moon' * cuda:0, gpus" copy --engine memcpy --size 4K --$end moon
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
