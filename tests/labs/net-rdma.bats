#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2034,SC2154 # the guest's shell expands it; cells reads out, bats sets stderr
# plumb-net over RDMA devices in a guest: every verb, its data checked, and peers that fail.

# takes: guest

bats_require_minimum_version 1.5.0
load env
load ../cli/rows
load net-rdma

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    guest_setup
}

setup() {
    net_setup
}

@test "every verb between two devices: measured, its data checked, and carried by the devices that were asked" {
    guest --mesh 2 -- 'at=rxe0; serve
        net --device rxe1 --pattern bandwidth,latency --verb write,write-imm,read,send --size 64K --budget 400ms >out'
    [ "$status" -eq 0 ]
    [ "$(paste -d' ' <(cells metric) <(cells verb) <(cells size) | grep -cE '^(bandwidth|latency) ')" -eq 8 ]
    every status '@(ok|noisy)'
    every value '?*'
    every transport rdma
    every detail 'rxe1:1 *RoCE v2*'
    every peer_detail 'rxe0:1 *RoCE v2*'
    paste -d'|' <(cells metric) <(cells verb) <(cells evidence) | grep -qE '^bandwidth\|write\|own: rxe1:1 .*sent .*peer: '
}

@test "both ends on one device, sizes from a byte to beyond the largest message of the device" {
    guest --devices 1 -- 'at=rxe0; serve
        net --device rxe0 --pattern bandwidth --verb write,send --size 1,16M --min-samples 3 --budget 2s >out'
    [ "$status" -eq 0 ]
    every status '@(ok|noisy)'
    every value '?*'
    [ "$(cells size | sort -u | paste -sd' ')" = '1 16777216' ]
}

@test "a device that is not there is told, with those that are" {
    guest --devices 2 -- 'at=rxe0; serve
        net --device rxe7 --pattern bandwidth --size 64K --budget 300ms >out 2>err; echo "status $?"'
    [ "$status" -eq 0 ]
    echo "$(cells status): $(cells reason)"
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == *"'rxe7'"*rxe0*rxe1* ]]
}

@test "the peer's process is killed, or stopped: an error that names the peer, in time; the next case runs" {
    guest --mesh 2 -- 'at=rxe0; serve
        transfer --device rxe1; pkill -KILL -P $server; ended 1; cp out killed; next
        transfer --device rxe1; child=$(pgrep -P $server); kill -STOP $child; ended 2; cp out stopped; kill -CONT $child; next'
    [ "$status" -eq 0 ]
    check "$(sed -n 1p <<<"$output")"
    check "$(sed -n 4p <<<"$output")"
    [ "$(grep -c '^next 0' <<<"$output")" -eq 2 ]
    [ "$(grep '^left' <<<"$output" | paste -sd' ')" = 'left 1 left 2' ]
    for out in "$job/killed" "$job/stopped"; do
        failed
    done
}

@test "the cable is pulled in a transfer: an error that names the peer, in time; the next case runs" {
    guest --mesh 2 -- 'at=rxe0; serve
        transfer --device rxe1; ip netns exec fabric ip link set b0 down; ended 1; cp out pulled
        ip netns exec fabric ip link set b0 up; sleep 1; next'
    [ "$status" -eq 0 ]
    check "${lines[0]}"
    [[ $output == *'next 0'* ]]
    out=$job/pulled
    failed
}

@test "the module's unit tests, over soft RoCE" {
    units test_net_rdma -- 'PLUMB_TEST_LINK=dummy0'
    ran test_verbs test_pieces test_connection_manager test_memlock test_a_wrong_key_opens_nothing test_a_link_that_goes_down \
        test_a_receiver_that_is_late test_a_receiver_that_never_comes
}

@test "messages between ranks, over two devices that the ranks take in turn" {
    units test_fabric_rdma --mesh 2 -- 'PLUMB_TEST_DEVICES=rxe0+rxe1'
    ran test_random_messages test_sizes_inline_long_and_in_pieces test_an_mtu_and_a_gid_that_are_asked_for test_what_it_tells \
        test_a_join_that_is_ended
}

@test "messages between ranks on one device, which is chosen" {
    units test_fabric_rdma --
    ran test_random_messages
}

@test "ranks that are killed, wait, stand still or disagree" {
    units test_fabric_rdma_faults --mesh 2 -- 'PLUMB_TEST_DEVICES=rxe0+rxe1'
    ran test_no_more_than_the_posts test_lengths_that_differ test_a_peer_that_is_killed_while_it_is_waited_for \
        test_a_peer_that_is_killed_in_a_message test_a_peer_that_stands_still test_memlock
}
