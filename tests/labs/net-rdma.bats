#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2034,SC2154 # the guest's shell expands it; cells reads out, bats sets stderr
# plumb-net over RDMA devices in a guest: every verb, its data checked, and peers that fail.

bats_require_minimum_version 1.5.0
load env
load ../cli/rows

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    guest_setup
}

# What each command in the guest begins with. --device of the listener: $at.
begin='
    umask 077
    echo "a secret of these tests" >secret
    listens() { ss -Hltn "sport = :18515" | grep -q .; }
    serve() {
        build/bin/plumb-net --listen 0.0.0.0 --secret-file secret --device "$at" >>server 2>&1 &
        server=$!
        for try in $(seq 200); do listens && return; sleep 0.1; done
        cat server >&2
        exit 9
    }
    net() { timeout 90 build/bin/plumb-net 10.0.0.1 --secret-file secret --wait 30s --transport rdma --no-cpu --csv "$@"; }
    # A long transfer, process $client, is under way when the device has got 2000 packets more.
    packets() { cat /sys/class/infiniband/$at/ports/1/hw_counters/rcvd_pkts; }
    transfer() {
        local before=$(packets)
        net --pattern bandwidth --size 64K --budget 80s --min-samples 1000000 "$@" >out 2>err &
        client=$!
        for try in $(seq 300); do
            (($(packets) > before + 2000)) && break
            sleep 0.1
        done
        began=$SECONDS
    }
    # What became of it: "4 12 failed 1", status, seconds, processes of plumb-net that are left.
    ended() {
        wait $client
        echo "ended $? $((SECONDS - began))"
        for try in $(seq 150); do
            left=$(pgrep -c -x plumb-net)
            ((left <= $1)) && break
            sleep 0.1
        done
        echo "left $left"
    }
    next() {
        net --pattern bandwidth --size 64K --budget 300ms --min-samples 3 >next 2>&1
        echo "next $?"
    }
'

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_guest
    [[ -x build/bin/plumb-net ]] || skip 'plumb-net is not built'
    [[ -e build/lib/plumbline/plumb-rdma.so ]] || skip 'the module plumb-rdma.so is not built (libibverbs-dev)'
    job=$BATS_TEST_TMPDIR/job out=$BATS_TEST_TMPDIR/job/out
    mkdir "$job"
}

# guest OPTIONS... -- TEXT: runs begin and the text.
guest() {
    local options=()
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    run --separate-stderr scripts/lab-rdma with-build --job "$job" --timeout 200 "${options[@]}" -- bash -c "$begin$2"
    echo "$output"
    echo "$stderr"
    cat "$job/server" "$job/err" 2>/dev/null || true
}

# every COLUMN PATTERN: each row of the metrics that are measured has this.
every() {
    local cell n=0
    while IFS= read -r cell; do
        # shellcheck disable=SC2053 # a pattern is meant
        [[ $cell == $2 ]] || {
            echo "$1 is '$cell', not '$2'"
            return 1
        }
        n=$((n + 1))
    done < <(paste -d'|' <(cells metric) <(cells "$1") | sed -n 's/^\(bandwidth\|latency\|rate\|message_rate\)|//p')
    ((n > 0))
}

need_siw() {
    compgen -G "${XDG_CACHE_HOME:-$HOME/.cache}/plumbline/lab-rdma/kernel/lib/modules/*/kernel/siw.ko" >/dev/null ||
        skip 'siw is not set up: scripts/lab-rdma setup --siw'
}

# units TEST OPTIONS... -- ASSIGNMENTS: unit tests of the module, which find a device in the guest alone. Devices are for
# everyone, as the one of the memlock limit is nobody.
units() {
    local test=$1 options=()
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    [[ -x build/tests/$test ]] || skip "$test is not built: make units"
    run --separate-stderr scripts/lab-rdma with-build --job "$job" --timeout 280 "${options[@]}" -- bash -c \
        "chmod 666 /dev/infiniband/*; $2 timeout 250 build/tests/$test"
    echo "$output"
    echo "$stderr"
    [ "$status" -eq 0 ]
    [[ $stderr$output == *"PASSED"* && $stderr$output != *"FAILED"* ]]
}

# ran NAME...: these tests were not skipped.
ran() {
    local name
    for name; do
        grep -qF "[       OK ] $name" <<<"$output$stderr"
    done
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

# check "ended STATUS SECONDS"
check() {
    local word ended seconds
    read -r word ended seconds <<<"$1"
    [ "$word $ended" = 'ended 4' ]
    ((seconds <= 15))
}

# The transfer's row says who failed.
failed() {
    [ "$(cells status | head -n 1)" = failed ]
    [[ $(cells reason | head -n 1) == *10.0.0.1* ]]
}

@test "iWARP by RDMA CM, where it was set up" {
    need_siw
    guest --siw -- 'at=siw0; serve
        net --device siw0 --connect cm --pattern bandwidth,latency --verb write,read,send --size 64K --budget 500ms >out'
    [ "$status" -eq 0 ]
    [ "$(paste -d' ' <(cells metric) <(cells verb) <(cells status) | grep -cE '^(bandwidth|latency) .* (ok|noisy)$')" -eq 5 ]
    [ "$(paste -d' ' <(cells verb) <(cells status) | grep skipped | sort -u)" = 'send skipped' ]
}

@test "the module's unit tests, over soft RoCE" {
    units test_net_rdma -- 'PLUMB_TEST_LINK=dummy0'
    ran test_verbs test_pieces test_connection_manager test_memlock test_a_wrong_key_opens_nothing test_a_link_that_goes_down
}

@test "the module's unit tests, over soft iWARP where it was set up" {
    need_siw
    units test_net_rdma --siw -- 'PLUMB_TEST_IWARP=1 PLUMB_TEST_LINK=dummy0'
    ran test_verbs test_connection_manager
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

@test "messages between ranks are refused on iWARP, where it was set up" {
    need_siw
    units test_fabric_rdma_faults --siw -- 'PLUMB_TEST_IWARP=1'
    ran test_iwarp_is_refused
}
