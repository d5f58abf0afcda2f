#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # allreduce-cluster.bash sets them
# plumb-allreduce between hosts of a lab: what is proved and refused, and ranks that are late, lost or never come.

# takes: cluster
bats_require_minimum_version 1.5.0
load env
load ../cli/rows
load allreduce-cluster

@test "1, 2 and all ranks in one launch, each right; a rank alone has no bus" {
    scripts/lab-cluster rate 200mbit
    ranks 4
    lead 4 --size 64K,1M --budget 500ms --min-samples 5 --backend ring,halving,doubling
    wait
    cut -c 1-300 "$out"
    [ "$(cells status | grep -cE 'wrong|failed|skipped')" -eq 0 ]
    [ "$(cells ranks | sort -nu | xargs)" = "1 2 4" ]
    [ -z "$(of busbw value 1)" ]
    [ -n "$(of busbw value 2)" ]
}

@test "wrong data, and bytes that went another way: wrong, and the rank or device is named" {
    scripts/lab-cluster rate 1gbit
    ranks 2
    run lead 2 --ranks 2 --size 4M --budget 300ms --min-samples 5 --inject corrupt
    wait
    [ "$status" -eq 1 ]
    [[ $(of time status) == wrong && $(of time reason) == *"rank "*"element "* ]]
    ranks 2
    run lead 2 --ranks 2 --size 8M --budget 1s --min-samples 5 --inject elsewhere
    wait
    [ "$status" -eq 1 ]
    [[ $(of time status) == wrong && $(of time reason) == *"eth0"* ]]
}

@test "a host that is cut off in the middle ends the case in time, by name; nobody is left" {
    scripts/lab-cluster rate 200mbit
    begin 4
    scripts/lab-cluster cut 2
    began=$SECONDS
    status=0
    wait "$client" || status=$?
    echo "took $((SECONDS - began)) s" && cut -c 1-600 "$out" && cat "$out.err"
    [ "$status" -eq 4 ]
    ((SECONDS - began <= 30)) # the case would last 60
    [[ $(of time reason) == *node2* ]]
    in_time 20 nobody
}

# blind I J: what host I sends to J goes to nobody; all other hosts hear both.
blind() {
    local address
    address=$(scripts/lab-cluster hosts | sed -n "$(($2 + 1))p")
    on "$1" ip neigh replace "$address" lladdr 02:00:00:00:00:99 dev eth0 nud permanent
}

@test "a link between two hosts that are both alive goes dead: the reason names the two, in every algorithm" {
    local backend peer i
    scripts/lab-cluster rate 200mbit
    for backend in ring doubling; do # 1 sends to 2, and 1 to 3
        peer=$([ $backend = ring ] && echo 2 || echo 3)
        begin 4 --backend $backend
        blind 1 "$peer"
        blind "$peer" 1
        status=0
        wait "$client" || status=$?
        cut -c 1-900 "$out" && cat "$out.err"
        [ "$status" -eq 4 ]
        [[ $(of time reason) == *"rank 1 (node1)"*": it sends to "*"rank $peer (node$peer)"*" over eth0, and nothing is acknowledged"* ]]
        [[ $(of time reason) != *'rank 0'* && $(of time reason) != *'has moved'* ]]
        for i in 1 "$peer"; do on "$i" ip neigh flush nud permanent; done
        in_time 20 nobody
    done
}

@test "a rank that is killed ends the case at once, by name" {
    scripts/lab-cluster rate 200mbit
    begin 4
    scripts/lab-cluster exec 3 pkill -KILL -f -- "--rank 3 --leader node0 --secret-file $secret"
    began=$SECONDS
    status=0
    wait "$client" || status=$?
    echo "took $((SECONDS - began)) s" && cut -c 1-600 "$out"
    [ "$status" -eq 4 ]
    ((SECONDS - began <= 30))
    [[ $(of time reason) == *node3* ]]
    in_time 20 nobody
}

@test "a rank that never comes: who is missing is told within the time that was given" {
    ranks 4 2
    run timeout 60 scripts/lab-cluster exec 0 "$bin" --np 4 --listen 0.0.0.0 --secret-file "$secret" --wait 3s --size 8
    [ "$status" -ne 0 ]
    echo "$output"
    [[ $output == *'rank 3 of 4 has not come'* ]]
    wait
}
