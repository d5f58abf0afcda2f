#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154,SC2317,SC2329 # cells reads out, section sets output, the guest calls sections
# plumb-net over soft iWARP in a guest, where it was set up: what iWARP lacks, and the credits of its sends.

# takes: guest

load env
load sections
load ../cli/rows
load net-rdma

setup_file() {
    local asked=${PLUMB_SECTIONS-} why
    cd "$BATS_TEST_DIRNAME/../.." || exit
    guest_setup
    [[ -e $BATS_FILE_TMPDIR/no-guest ]] || why=$(guest_siw) || no_guest "$why"
    # The unit tests have a guest of their own, and with it more time.
    PLUMB_SECTIONS=${asked:-units} net_sections --siw
    [[ $asked ]] || PLUMB_SECTIONS='cm sends wire peer_ends' sections --siw
}

setup() {
    net_setup
}

section_cm() {
    at=siw0
    serve
    net --device siw0 --connect cm --pattern bandwidth,latency --verb write,write-imm,read,send --size 64K --budget 500ms >out
}

@test "iWARP by RDMA CM" {
    in_section cm
    [ "$(paste -d' ' <(cells metric) <(cells verb) <(cells status) | grep -cE '^(bandwidth|latency) .* (ok|noisy)$')" -eq 6 ]
    [ "$(paste -d' ' <(cells verb) <(cells status) | grep skipped | sort -u)" = 'write-imm skipped' ]
}

section_sends() {
    at=siw0
    serve
    net --device siw0 --pattern bandwidth --verb send --size 1,1M --streams 1,5 --direction both --completion poll,event \
        --budget 400ms --min-samples 3 >out
}

@test "streams of sends over iWARP, whatever the receiver is at: small and large, many, both ways, by events" {
    in_section sends
    every status '@(ok|noisy)'
    [ "$(paste -d' ' <(cells metric) <(cells direction) <(cells status) | grep -cE '^bandwidth sum (ok|noisy)$')" -eq 8 ]
}

section_peer_ends() {
    at=siw0
    serve
    packets() { echo "$(</sys/class/net/lo/statistics/rx_packets)"; }
    transfer --device siw0 --verb send
    pkill -KILL -P "$server"
    ended 1
    cp out killed
    next
    transfer --device siw0 --verb send
    child=$(pgrep -P "$server")
    kill -STOP "$child"
    ended 2
    cp out stopped
    kill -CONT "$child"
    next
}

@test "iWARP: the peer is killed, or stopped, in a stream of sends: an error that names the peer, in time; the next case runs" {
    in_section peer_ends
    check "$(sed -n 1p <<<"$output")"
    check "$(sed -n 4p <<<"$output")"
    [ "$(grep -c '^next 0' <<<"$output")" -eq 2 ]
    for out in "$job/killed" "$job/stopped"; do
        failed
    done
}

# The kernel's siw (6.1) misses, now and then, that bytes arrived, on a guest that gets little of a processor: they stay in the
# connection's socket, and nothing wakes it. Where that is seen, for two seconds, the tests run again, and for that alone.
section_units() {
    local try watch
    stalls() {
        local now before='' since=''
        while sleep 1; do
            now=$(ss -Htn state established | awk '$1 > 0' | sort)
            comm -12 <(echo "$before") <(comm -12 <(echo "$since") <(echo "$now")) | grep . && return
            before=$since since=$now
        done
    }
    for try in 1 2 3; do
        stalls >stalled &
        watch=$!
        PLUMB_TEST_IWARP=1 units test_net_rdma >log 2>&1
        status=$?
        kill $watch 2>/dev/null
        [[ $status -ne 0 && -s stalled ]] || break
        echo "try $try: not taken by the kernel: $(<stalled)"
    done
    cat log
    return $status
}

@test "the module's unit tests, over soft iWARP" {
    passed units test_net_rdma
    ran test_verbs test_connection_manager test_deep_queues test_a_receiver_that_is_late test_a_peer_that_is_gone_or_never_receives
}

section_wire() {
    PLUMB_TEST_IWARP=1 units test_wire_rdma_faults
}

@test "messages between ranks are refused on iWARP" {
    passed wire test_wire_rdma_faults
    ran test_iwarp_is_refused
}
