#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154,SC2317,SC2329 # cells reads out, section sets output, the guest calls sections
# plumb-net over RDMA devices in a guest: every verb, its data checked, and peers that fail.

# takes: guest

load env
load sections
load ../cli/rows
load net-rdma

setup_file() {
    net_sections --mesh 4
}

setup() {
    net_setup
}

section_every_verb() {
    local before
    at=rxe0
    before=$(packets)
    serve
    net --device rxe1 --pattern bandwidth,latency --verb write,write-imm,read,send --size 64K --budget 400ms >out
    echo "packets $(($(packets) - before))"
}

@test "every verb between two devices: measured, its data checked, and carried by the devices that were asked" {
    in_section every_verb
    [ "$(paste -d' ' <(cells metric) <(cells verb) <(cells size) | grep -cE '^(bandwidth|latency) ')" -eq 8 ]
    every status '@(ok|noisy)'
    every value '?*'
    every transport rdma
    every detail 'rxe1:1 *RoCE v2*'
    every peer_detail 'rxe0:1 *RoCE v2*'
    # Soft-RoCE counts packets only: rows cannot prove its path, but these can.
    [ "$(sed -n 's/^packets //p' <<<"$output")" -gt 2000 ]
    paste -d'|' <(cells metric) <(cells verb) <(cells evidence) |
        grep -qE '^bandwidth\|write\|own: not proved: [^|]*rxe1:1 .*peer: not proved: [^|]*rxe0:1 '
}

section_relaxed_ordering() {
    at=rxe0
    export LD_PRELOAD=$PWD/build/registrations.so
    REGISTRATIONS=$PWD/theirs serve
    export REGISTRATIONS=$PWD/ours
    net --device rxe1 --pattern bandwidth --verb write,read,send --relaxed-ordering off --size 64K --budget 300ms >out
    wc -l <ours >strict
    net --device rxe1 --pattern bandwidth --verb write,read,send --relaxed-ordering on --size 64K --budget 300ms >relaxed
    tail -n +2 relaxed >>out
    net --device rxe1 --pattern latency --relaxed-ordering on --size 8 --budget 300ms >refused 2>&1
    echo "refused $?"
}

@test "buffers with relaxed ordering: measured and checked as others; where the last byte tells, they are refused" {
    in_section relaxed_ordering
    [ "$(paste -d' ' <(cells metric) <(cells verb) <(cells relaxed_ordering) | sed -n 's/^bandwidth //p' | sort | paste -sd,)" = \
        'read off,read on,send off,send on,write off,write on' ]
    every status '@(ok|noisy)'
    [ "${lines[-1]}" = 'refused 2' ]
    grep -q -- '--relaxed-ordering' "$job/refused"
    # Bit 20 is IBV_ACCESS_RELAXED_ORDERING. Buffers have it, at both ends, after it was asked for; credits and words never.
    [[ $(<"$job/strict") -gt 0 ]]
    if head -n "$(<"$job/strict")" "$job/ours" | grep 0x1; then false; fi
    for end in ours theirs; do
        cat "$job/$end"
        [ "$(grep -c ' 0x10000' "$job/$end")" -ge 3 ]
        if awk '$1 < 65536 && $2 ~ /0x1/' "$job/$end" | grep .; then false; fi
    done
}

section_one_device() {
    at=rxe0
    serve
    net --device rxe0 --pattern bandwidth --verb write,send --size 1,16M --min-samples 3 --budget 2s >out
}

@test "both ends on one device, sizes from a byte to beyond the largest message of the device" {
    in_section one_device
    every status '@(ok|noisy)'
    every value '?*'
    [ "$(cells size | sort -u | paste -sd' ')" = '1 16777216' ]
}

section_rails() {
    local go
    both() { net --device rxe2+rxe3 --streams 2 --depth 4 --pattern bandwidth --verb write --size 64K --budget 3s --min-samples 5; }
    at=rxe0+rxe1
    tc qdisc add dev v2 root netem rate 10mbit limit 10000
    tc qdisc add dev v3 root netem rate 10mbit limit 10000
    serve
    for go in 1 2 3; do both >"alike$go"; done
    tc qdisc change dev v3 root netem rate 5mbit limit 10000
    for go in 1 2 3; do both >"slower$go"; done
    tc qdisc del dev v2 root
    tc qdisc del dev v3 root
}

# rail NAME RAIL WANTED: bit/s of the best of three goes, which other work takes from; none of them is above it.
rail() {
    local best
    best=$(for out in "$job/$1"?; do
        paste -d'|' <(cells metric) <(cells rail) <(cells value) |
            awk -F'|' -v rail="$2" '$1 == "bandwidth" && $2 == rail { printf "%.0f\n", $3 * 1e9 }'
    done | sort -n | tail -n 1)
    ! above "$best" "$3" 2 && within "$best" "$3" 10
}

# 64 KiB are 16 packets of 4096 bytes and 58 of Ethernet, IP, UDP, BTH and ICRC; the first of a write has 16 more.
@test "two rails, each with a rate: both together carry the sum, each its own" {
    local wanted=$((10000000 * 65536 / (16 * 4154 + 16)))
    in_section rails
    rail alike rxe2:1 $wanted
    rail alike rxe3:1 $wanted
    rail alike all $((2 * wanted))
    rail slower rxe2:1 $wanted
    rail slower rxe3:1 $((wanted / 2))
    rail slower all $((wanted * 3 / 2))
    for out in "$job"/alike? "$job"/slower?; do
        every status '@(ok|noisy)'
        [[ $(cells evidence | head -n 1) == 'own: not proved: '*' rxe2:1 '*'; not proved: '*' rxe3:1 '*'peer: '*' rxe0:1 '*' rxe1:1 '* ]]
    done
}

section_no_such_device() {
    at=rxe0
    serve
    net --device rxe7 --pattern bandwidth --size 64K --budget 300ms >out 2>err
    echo "status $?"
}

@test "a device that is not there is told, with those that are" {
    in_section no_such_device
    echo "$(cells status): $(cells reason)"
    row skipped "'rxe7'*rxe0*rxe1"
}

section_peer_ends() {
    at=rxe0
    serve
    transfer --device rxe1
    pkill -KILL -P "$server"
    ended 1
    cp out killed
    next
    transfer --device rxe1
    child=$(pgrep -P "$server")
    kill -STOP "$child"
    ended 2
    cp out stopped
    kill -CONT "$child"
    next
}

@test "the peer's process is killed, or stopped: an error that names the peer, in time; the next case runs" {
    in_section peer_ends
    check "$(sed -n 1p <<<"$output")"
    check "$(sed -n 4p <<<"$output")"
    [ "$(grep -c '^next 0' <<<"$output")" -eq 2 ]
    [ "$(grep '^left' <<<"$output" | paste -sd' ')" = 'left 1 left 2' ]
    for out in "$job/killed" "$job/stopped"; do
        failed
    done
}

section_cable() {
    at=rxe0
    serve
    transfer --device rxe1
    ip netns exec fabric ip link set b0 down
    ended 1
    cp out pulled
    ip netns exec fabric ip link set b0 up
    sleep 1
    next
}

@test "the cable is pulled in a transfer: an error that names the peer, in time; the next case runs" {
    in_section cable
    check "${lines[0]}"
    [[ $output == *'next 0'* ]]
    out=$job/pulled
    failed
}

section_wire_two() {
    PLUMB_TEST_DEVICES=rxe0+rxe1 units test_wire_rdma
}

@test "messages between ranks, over two devices that the ranks take in turn" {
    passed wire_two test_wire_rdma
    ran test_random_messages test_sizes_inline_long_and_in_pieces test_what_it_tells \
        test_a_join_that_is_ended
}

section_wire_chosen() {
    units test_wire_rdma test_random_messages # the others take the same way over one device or two
}

@test "messages between ranks on one device, which is chosen" {
    passed wire_chosen test_wire_rdma
    ran test_random_messages
}

section_wire_faults() {
    PLUMB_TEST_DEVICES=rxe0+rxe1 units test_wire_rdma_faults
}

@test "ranks that wait or disagree" {
    passed wire_faults test_wire_rdma_faults
    ran test_no_more_than_the_posts test_lengths_that_differ test_memlock
}

section_units() {
    units test_net_rdma
}

@test "the module's unit tests, over soft RoCE" {
    passed units test_net_rdma
    ran test_verbs test_connection_manager test_a_wrong_key_opens_nothing test_a_receiver_that_is_late \
        test_a_peer_that_is_gone_or_never_receives
}
