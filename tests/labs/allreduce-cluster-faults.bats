#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086,SC2154 # allreduce-cluster.bash sets them
# plumb-allreduce between hosts of a lab: what is proved and refused, and ranks that are late, lost or never come.

# takes: cluster
# waits: for ranks and links that are gone
load env
load ../cli/rows
load ../cli/processes
load allreduce-cluster

setup() {
    bin=build/bin/plumb-allreduce
    between_hosts 4 "$bin"
    scripts/lab-cluster rate 200mbit
}

# stops_within SECONDS COMMAND...: the fault; then rank 0 ends with 4 in time.
stops_within() {
    local most=$1 status=0
    shift
    "$@"
    began=$SECONDS
    wait "$client" || status=$?
    echo "took $((SECONDS - began)) s" && cut -c 1-900 "$out" && cat "$out.err" "$BATS_TEST_TMPDIR"/rank*
    [ "$status" -eq 4 ]
    ((SECONDS - began <= most))
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

@test "a host that is cut off in the middle, and a rank that is killed, end the case in time, by name; nobody is left" {
    begin 4
    stops_within "$NAMED_S" scripts/lab-cluster cut 2
    [[ $(of time reason) == *'rank 2 (node2)'* && $(of time reason) != *'rank '[13]* ]]
    in_time 300 nobody
    scripts/lab-cluster link 2 up
    begin 4
    stops_within "$NAMED_S" scripts/lab-cluster exec 3 pkill -KILL -f -- "--rank 3 --leader node0 --secret-file $secret"
    [[ $(of time reason) == *node3* ]]
    in_time 300 nobody
}

@test "a link between two hosts that are both alive goes dead: the reason names the two, in every algorithm" {
    local backend peer i
    for backend in ring doubling; do # the link is dead both ways: either end may say it
        peer=$([ $backend = ring ] && echo 2 || echo 3)
        begin 4 --backend $backend
        blind 1 "$peer"
        blind "$peer" 1
        stops_within 1000 true
        [[ $(of time reason) == *"rank 1 (node1)"*": it sends to "*"rank $peer (node$peer)"*eth0* ]] ||
            [[ $(of time reason) == *"rank $peer (node$peer)"*": it sends to "*"rank 1 (node1)"*eth0* ]]
        [[ $(of time reason) != *'rank 0'* && $(of time reason) != *'has moved'* ]]
        for i in 1 "$peer"; do on "$i" ip neigh flush nud permanent; done
        in_time 300 nobody
    done
}

# said RANK WORDS: that rank has said so.
said() { grep -q -- "$2" "$BATS_TEST_TMPDIR/rank$1"; }

@test "rank 0 is stopped: every other rank names it in time, and ends" {
    local i leader
    begin 4
    leader=$(pgrep -f -- "[p]lumb-allreduce --np 4 --listen 0.0.0.0 --secret-file $secret")
    kill -STOP $leader
    for i in 1 2 3; do
        in_time "$NAMED_S" said "$i" 'rank 0 (node0).*answer'
    done
    kill -KILL $leader
    wait "$client" || true
    in_time 300 nobody
}

@test "a rank is stopped: it is named in time, and no other" {
    begin 4
    stops_within "$NAMED_S" pkill -STOP -f -- "[-]-rank 2 --leader node0 --secret-file $secret"
    [[ $(of time reason) == *'rank 2 (node2)'* && $(of time reason) != *'rank '[013]* ]]
    pkill -KILL -f -- "[-]-rank 2 --leader node0 --secret-file $secret"
    in_time 300 nobody
}

# came_to I BYTES: so many have come to host I.
came_to() { (($(on "$1" cat /sys/class/net/eth0/statistics/rx_bytes) > $2)); }

# A chain over a link of 8 Mbit/s: rank 0 is done at once, and waits for 8 s for the others.
slow_chain=(--ranks 3 --backend ring --op broadcast --size 8M --warmup 0s --budget 1s --min-samples 1)

@test "an operation takes longer than a rank may stand still, over a slow link: nobody is lost" {
    scripts/lab-cluster rate 8mbit --host 2
    ranks 3
    lead 3 "${slow_chain[@]}" || { cat "$out" "$out.err" && false; }
    wait
    cut -c 1-300 "$out"
    [[ $(of time status) == @(ok|noisy) ]]
    awk -v us="$(of time value)" 'BEGIN { exit !(us > 8e6) }'
}

@test "a rank is stopped in the middle of a long operation, while others wait for it: it is named in time" {
    scripts/lab-cluster rate 8mbit --host 2
    ranks 3
    lead 3 "${slow_chain[@]}" &
    client=$!
    in_time 300 came_to 2 2000000
    stops_within "$NAMED_S" pkill -STOP -f -- "[-]-rank 2 --leader node0 --secret-file $secret"
    [[ $(of time reason) == *'rank 2 (node2)'* && $(of time reason) != *'rank '[01]* ]]
    pkill -KILL -f -- "[-]-rank 2 --leader node0 --secret-file $secret"
    in_time 300 nobody
}

# What rank 0's host sends arrives nowhere, and what the others send arrives there.
mute() { for i in 1 2 3; do blind 0 "$i"; done; }

@test "the link of rank 0's own host goes down, or is dead one way or both: rank 0 names itself" {
    local fault words i
    for fault in 'scripts/lab-cluster link 0 down' 'scripts/lab-cluster cut 0' mute; do
        [[ $fault == *down ]] && words="'eth0' is down" || words=' all 3 other hosts'
        begin 4 --ranks 2,4 # two of them measure
        stops_within "$NAMED_S" $fault
        [[ $(of time reason) == *'rank 0 (node0), '*"$words"* ]]
        [[ $(of time reason) != *'rank '[123]* ]]
        scripts/lab-cluster link 0 up
        on 0 ip neigh flush nud permanent
        in_time 300 nobody
    done
}

@test "a host that takes no part yet is cut off: it is named while others measure, and they go on" {
    begin 4 --ranks 2,4 --budget 12s
    scripts/lab-cluster cut 3
    in_time "$NAMED_S" grep -q 'rank 3 (node3)' "$out.err"
    stops_within 40 true
    [ "$(of time status 2)" != failed ]
    [[ $(of time reason 2) == *'rank 3 (node3)'* ]]
    [[ $(of time reason 4) == *'rank 3 (node3)'* ]]
    in_time 300 nobody
}

@test "a rank that never comes: who is missing is told within the time that was given" {
    ranks 4 2
    run timeout 1000 scripts/lab-cluster exec 0 "$bin" --np 4 --listen 0.0.0.0 --secret-file "$secret" --wait 3s --size 8
    [ "$status" -ne 0 ]
    echo "$output"
    [[ $output == *'rank 3 of 4 '* ]]
    wait
}
