# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # of and for the tests that load it
# plumb-net between two hosts of a lab, for the tests that want them.

setup_file() { between_file; }

setup() {
    between_hosts 2 build/bin/plumb-net
}

teardown() { between_file; }

# serve OPTIONS: a listener on node0, process $server.
serve() {
    scripts/lab-cluster exec 0 build/bin/plumb-net --listen 0.0.0.0 --secret-file "$secret" "$@" \
        >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
    server=$!
    in_time 300 listens 18515 || { cat "$BATS_TEST_TMPDIR/server" && return 1; }
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
    [ "$(cell metric) $(cell unit)" = 'bandwidth Gb/s' ] || return
    awk -v gbit="$(cell value)" 'BEGIN { printf "%.0f\n", gbit * 1e9 }'
}

# rail NAME: what it got, in bit/s; all: both together.
rail() {
    paste -d'|' <(cells metric) <(cells rail) <(cells value) |
        awk -F'|' -v rail="$1" '$1 == "bandwidth" && $2 == rail { printf "%.0f\n", $3 * 1e9 }'
}

# rails OPTIONS: goodput of both together, in bit/s.
rails() {
    net --budget 3s --device eth0+eth1 "$@" || { cat "$out.err" >&2 && return 1; }
    rail all
}

iperf() {
    local other
    on 0 iperf3 -s -1 >/dev/null 3>&- &
    other=$!
    in_time 300 listens 5201
    on 1 iperf3 -c node0 -t 3 -J | python3 -c 'import json, sys; print(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"])'
    wait "$other"
}

# begin OPTIONS: a transfer that would take twenty minutes, process $client, is under way.
begin() {
    local before
    before=$(got)
    net --budget 20m --min-samples 100000000 "$@" 3>&- &
    client=$!
    in_time 300 more_than $((before + 30000000))
    began=$SECONDS
}

# The transfer ended in time with 4, and its row names the peer and says $1; nobody is left but the listener.
ended() {
    local status=0
    wait "$client" || status=$?
    cat "$out.err" && cut -c 1-400 "$out"
    [ "$status" -eq 4 ]
    echo "took $((SECONDS - began)) s"
    ((SECONDS - began <= NAMED_S))
    [ "$(cell status) $(cell code)" = 'failed peer-lost' ]
    [[ $(cell reason) == *node0* ]]
    [[ $(cell reason) == *$1* ]]
    in_time 300 alone "${2:-1}"
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
    paste -d' ' <(cells metric) <(cells value) | awk '$1 == "average_bandwidth" { printf "%.0f\n", $2 * 1e9 }'
}

# load_rate: what the stream got while pings went there and back, goodput in bit/s.
load_rate() {
    net --budget 3s --pattern loaded-latency --size 8 || return
    paste -d' ' <(cells metric) <(cells value) | awk '$1 == "load_bandwidth" { printf "%.0f\n", $2 * 1e9 }'
}

# half_trip MS: the median one-way time of a megabyte, in ms, is no more than a fifth from that.
half_trip() {
    net --budget 3s --pattern latency --size 1M || return
    [ "$(cell metric) $(cell unit)" = 'latency us' ] || return
    awk -v us="$(cell value)" -v ms="$1" 'BEGIN {
        print us / 1000
        if (us / 1000 >= 1.2 * ms) print "fell short"
        exit !(us / 1000 > 0.8 * ms && us / 1000 < 1.2 * ms) }'
}
