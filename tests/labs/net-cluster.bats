#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb-net between hosts of a lab: what it measures against what the links carry, and what it does when they do not.

# takes: machine
bats_require_minimum_version 1.5.0
load env
load ../cli/rows

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_clean
}

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    [[ -x build/bin/plumb-net ]] || skip 'plumb-net is not built'
    lab_cluster 2
    scripts/lab-cluster congestion cubic
    secret=$BATS_TEST_TMPDIR/secret out=$BATS_TEST_TMPDIR/out
    (umask 077 && echo 'a secret of these tests' >"$secret")
}

teardown() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_clean
}

# serve: a listener on node0, process $server.
serve() {
    scripts/lab-cluster exec 0 build/bin/plumb-net --listen 0.0.0.0 --secret-file "$secret" \
        >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
    server=$!
    in_time 20 listens 18515 || { cat "$BATS_TEST_TMPDIR/server" && return 1; }
}

listens() { scripts/lab-cluster exec 0 ss -Hltn "sport = :$1" | grep -q .; }

# net OPTIONS: node1 runs a bandwidth case against node0, rows to $out, what it says to $out.err.
net() {
    on 1 build/bin/plumb-net node0 --secret-file "$secret" --wait 20s --csv --transport tcp --pattern bandwidth --size 1M --no-cpu \
        "$@" >"$out" 2>"$out.err"
}

# cell COLUMN: of the first row, the bandwidth's.
cell() { cells "$1" | head -n 1; }

# Goodput in bit/s.
goodput() {
    net --budget 3s "$@" || { cat "$out.err" >&2 && return 1; }
    [ "$(cell metric) $(cell unit)" = 'bandwidth GB/s' ] || return
    awk -v gb="$(cell value)" 'BEGIN { printf "%.0f\n", gb * 8e9 }'
}

iperf() {
    local other
    on 0 iperf3 -s -1 >/dev/null 3>&- &
    other=$!
    in_time 10 listens 5201
    on 1 iperf3 -c node0 -t 3 -J | python3 -c 'import json, sys; print(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"])'
    wait "$other"
}

# Bytes that node0 has got.
got() { on 0 cat /sys/class/net/eth0/statistics/rx_bytes; }

# more_than BYTES
more_than() { (($(got) > $1)); }

# begin: a transfer that would take a minute, process $client, is under way.
begin() {
    local before
    before=$(got)
    net --budget 60s --min-samples 1000000 3>&- &
    client=$!
    in_time 30 more_than $((before + 30000000))
    began=$SECONDS
}

# The transfer ended in time with 4, and its row names the peer and says $1; nobody is left but the listener.
ended() {
    local status=0
    wait "$client" || status=$?
    cat "$out.err" && cut -c 1-400 "$out"
    [ "$status" -eq 4 ]
    echo "took $((SECONDS - began)) s"
    ((SECONDS - began <= 14))
    [ "$(cell status)" = failed ]
    [[ $(cell reason) == *node0* ]]
    [[ $(cell reason) == *$1* ]]
    in_time 15 alone "${2:-1}"
}

# alone N: node1 runs nothing, node0 N processes.
alone() {
    local state
    state=$(scripts/lab-cluster status)
    [[ $state == *"node0 "*" $1 processes"*"node1 "*" 0 processes"* ]]
}

# The same listener serves the next.
next() {
    net --budget 300ms --min-samples 5
    [ "$(cell status)" != failed ]
    [ -n "$(cell value)" ]
}

# rate KIB: the rate of messages of that size, as goodput in bit/s. average KIB: the same of all bytes over all of the time.
rate() {
    net --budget 3s --pattern rate --size "$1K" || return
    [ "$(cell metric)" = message_rate ] || return
    awk -v mop="$(cell value)" -v size="$1" 'BEGIN { printf "%.0f\n", mop * 1e6 * size * 1024 * 8 }'
}
average() {
    net --budget 3s --pattern rate --size "$1K" || return
    paste -d' ' <(cells metric) <(cells value) | awk '$1 == "average_bandwidth" { printf "%.0f\n", $2 * 8e9 }'
}

@test "a rate of messages is that of the link, whatever a message's size is to a window's; so is the average" {
    local size
    scripts/lab-cluster rate 1gbit
    serve
    for size in 1500 2000 64; do
        reaches "$(expected)" 1 rate $size
    done
    reaches "$(expected)" 1 average 1500
}

# load_rate: what the stream got while pings went there and back, goodput in bit/s.
load_rate() {
    net --budget 3s --pattern loaded-latency --size 8 || return
    paste -d' ' <(cells metric) <(cells value) | awk '$1 == "load_bandwidth" { printf "%.0f\n", $2 * 8e9 }'
}

# half_trip MS: the median one-way time of a megabyte, in ms, is no more than a fifth from that.
half_trip() {
    net --budget 3s --pattern latency --size 1M || return
    [ "$(cell metric) $(cell unit)" = 'latency us' ] || return
    awk -v us="$(cell value)" -v ms="$1" 'BEGIN { print us / 1000; exit !(us / 1000 > 0.8 * ms && us / 1000 < 1.2 * ms) }'
}

@test "a latency is one way, not there and back: a long message takes what the link takes for it" {
    scripts/lab-cluster rate 100mbit
    serve
    # Of 1048576 bytes the bucket's burst of 128 KiB goes at once: (1048576 x 1514 / 1448 - 131072) x 8 / 100e6 s.
    half_trip 77.2
}

@test "beside a latency under load: the load is the link's rate" {
    scripts/lab-cluster rate 200mbit
    serve
    reaches "$(expected)" 1 load_rate
}

@test "100 Mbit/s, 730 Mbit/s and 1 Gbit/s: goodput is what is expected, to 1 %" {
    local rate
    serve
    for rate in 100mbit 730mbit 1gbit; do
        scripts/lab-cluster rate "$rate"
        reaches "$(expected)" 1 goodput
        [[ $(cell evidence) == *"eth0 sent"*"100 %"*"eth0 received"*"100 %"* ]]
        [[ $(cell detail) == *eth0*cubic*1448* ]]
    done
}

@test "large frames, and the other direction: the same truth" {
    scripts/lab-cluster up 2 --mtu 9000 --rate 500mbit 2>/dev/null
    serve
    reaches "$(expected)" 1 goodput
    reaches "$(expected)" 1 goodput --direction reverse
}

@test "5 Gbit/s: goodput is what is expected, to 2 %" {
    command -v iperf3 >/dev/null || skip 'iperf3 is not installed'
    scripts/lab-cluster rate 5gbit
    serve
    reaches "$(expected)" 2 goodput || reaches "$(expected)" 2 iperf ||
        skip "this machine does not carry 5 Gbit/s now: iperf3 gets $(iperf) bit/s"
    reaches "$(expected)" 2 goodput
}

@test "the slower end of a link is what is measured, and several streams share it" {
    scripts/lab-cluster rate 1gbit
    scripts/lab-cluster rate 200mbit --host 1
    serve
    reaches "$(expected 200mbit)" 1 goodput --streams 4
}

@test "link down in a transfer: an error that names the peer, in time; the next case runs" {
    scripts/lab-cluster rate 200mbit
    serve
    begin
    scripts/lab-cluster link 0 down
    ended 'cut off'
    scripts/lab-cluster link 0 up
    in_time 20 next
}

@test "packets that vanish while the link looks up: the same" {
    scripts/lab-cluster rate 200mbit
    serve
    begin
    scripts/lab-cluster cut 0
    ended 'cut off'
    scripts/lab-cluster link 0 up
    in_time 20 next
}

@test "the peer's process is killed: an error that names the peer, in time; the next case runs" {
    scripts/lab-cluster rate 200mbit
    serve
    begin
    pkill -KILL -P "$server"
    ended ''
    next
}

@test "the peer's process is stopped: an error that names the peer, in time; the next case runs" {
    local child
    scripts/lab-cluster rate 200mbit
    serve
    begin
    child=$(pgrep -P "$server")
    kill -STOP "$child"
    ended '' 2
    kill -CONT "$child"
    in_time 20 alone 1
    next
}

@test "the listener is killed with all that it runs: the other end says so" {
    scripts/lab-cluster rate 200mbit
    serve
    begin
    kill -KILL "$server"
    ended '' 0
    serve
    next
}

@test "the asking end is killed: the listener ends its run and serves the next" {
    scripts/lab-cluster rate 200mbit
    serve
    begin
    kill -KILL "$client"
    pkill -KILL -f "[p]lumb-net node0 --secret-file $secret" || true
    in_time 14 alone 1
    next
}
