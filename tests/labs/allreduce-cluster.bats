#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # allreduce-cluster.bash sets them
# plumb-allreduce between hosts of a lab: its ring against what the links carry.

# takes: machine
bats_require_minimum_version 1.5.0
load env
load ../cli/rows
load allreduce-cluster

@test "our ring over 2 and 4 hosts is what the links carry, to 2 %, and proves its path" {
    local n
    scripts/lab-cluster rate 1gbit
    for n in 2 4; do
        reaches "$(expected)" 2 ring $n
    done
    [[ $(of busbw evidence) == *"eth0 sent"* ]]
    [[ $(of busbw limit_source) != *"one node"* ]]
    [ "$(of busbw nodes)" = 4 ]
}

@test "a host whose link is half as fast: busbw is its link's, and the slow link shows in who waits" {
    scripts/lab-cluster rate 400mbit
    scripts/lab-cluster rate 200mbit --host 2
    reaches "$(expected 200mbit)" 4 slow_ring
    # A slow link makes all ranks wait: none of them is late. Who sends into it or out of it is held up; the others wait for data.
    paste -d' ' <(cells metric) <(cells rank) <(cells value) | awk '
        $1 == "blocked_share" { print; share[$2] = $3 }
        $1 == "late_share" { print; late += $3 > 50 }
        END { exit !(share[1] + share[2] > share[0] + share[3]) || late }'
}
