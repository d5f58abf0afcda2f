#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086,SC2154 # net-cluster.bash sets them
# plumb-net between hosts of a lab when a link, a peer or a listener is lost.

# takes: cluster
# waits: for peers and links that are gone
load env
load ../cli/rows
load ../cli/processes
load net-cluster

setup() { # each begins with a listener at the end of a slow link
    between_hosts 2 build/bin/plumb-net
    scripts/lab-cluster rate 200mbit
    serve
}

# mended HOST: its link is up again, and the same listener serves the next.
mended() {
    scripts/lab-cluster link "$1" up
    in_time 300 next
}

@test "link down in a transfer, or under single messages, or packets that vanish while it looks up: the peer is named, in time; the next case runs" {
    begin
    scripts/lab-cluster link 0 down
    ended node1
    mended 0
    begin --pattern latency --size 64K
    scripts/lab-cluster link 0 down
    ended node1
    [[ $(cell reason) != *'nothing moved'* ]] # the peer's loss, and not the time-out of all that stands still
    mended 0
    begin
    scripts/lab-cluster cut 0
    ended node1
    [[ $(cell reason) != *'direction from'* ]]
    mended 0
}

@test "the link of the asking end itself goes down: it is named, and not the peer" {
    local status=0
    begin
    scripts/lab-cluster link 1 down
    wait "$client" || status=$?
    cat "$out.err" && cut -c 1-400 "$out"
    [ "$status" -eq 4 ]
    ((SECONDS - began <= NAMED_S))
    [[ $(cell reason) == "node1, "*"'eth0' "* ]]
    mended 1
}

@test "the asking end is stopped: the listener names it in time, and serves the next" {
    local asking
    begin
    asking=$(pgrep -f -- "[p]lumb-net node0 --secret-file $secret")
    kill -STOP $asking
    in_time "$NAMED_S" grep -q 'node1 .*answer' "$BATS_TEST_TMPDIR/server"
    kill -KILL $asking
    wait "$client" || true
    in_time 300 next
}

@test "one direction of the link is dead: who still hears the other end names it; who hears nothing blames neither" {
    local i said=$BATS_TEST_TMPDIR/server
    for i in 1 0; do # what node1, the asking end, sends is lost, and then what node0 sends
        : >"$said"
        begin
        blind "$i" $((1 - i))
        ended node1
        in_time "$NAMED_S" grep -qE 'arrives|acknowledges' "$said"
        cat "$said"
        [[ $i == 0 || $(cell reason) == *'direction from node1'* ]]
        [[ $i == 1 || $(cell reason) != *'direction from'* ]]
        [ "$(grep -c "direction from node0" "$said")" -eq $((1 - i)) ]
        on "$i" ip neigh flush nud permanent
        in_time 300 next
    done
}

@test "the listener is killed with all that it runs: the other end says so; the asking end is killed: the listener serves the next" {
    begin
    kill -KILL "$server"
    ended '' 0
    serve
    next
    begin
    kill -KILL "$client"
    pkill -KILL -f "[p]lumb-net node0 --secret-file $secret" || true
    in_time 300 alone 1
    next
}
