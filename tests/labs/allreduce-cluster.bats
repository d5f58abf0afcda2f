#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # allreduce-cluster.bash sets them
# plumb-allreduce between hosts of a lab: its ring against what the links carry.

# takes: machine
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

# Of S bytes each host sends S / 2 by each of two rails in the first half of halving-doubling, and again in the second: S
# over one rail's goodput R. So algbw is R and busbw 1.5 R; by one rail it is half of that. A ring leaves and enters a host
# once: by eth1 there, by eth0 here; its busbw is R.
@test "two rails between two hosts: halving has both at once, a ring each in one direction, to 2 %" {
    local one
    scripts/lab-cluster up 2 --rails 2 --rate 200mbit 2>/dev/null
    scripts/lab-cluster congestion cubic
    one=$(expected)
    reaches $((one * 3 / 2)) 2 rails halving eth0+eth1
    [[ $(of busbw evidence) == '2 of 2 '*' node0: '*'eth0 sent'*', received'*'; eth1 sent'*', received'* ]]
    reaches $((one * 3 / 4)) 2 rails halving eth0
    [[ $(of busbw evidence) != *eth1* ]]
    reaches "$one" 2 rails ring eth0+eth1
    scripts/lab-cluster rate 100mbit --rail 1 --host 1
    reaches $(($(expected 100mbit) * 3 / 2)) 2 rails halving eth0+eth1
}
