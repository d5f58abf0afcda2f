#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb-allreduce between hosts of a lab: its ring against what the links carry, and ranks that are late, lost or never come.

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
    bin=build/bin/plumb-allreduce
    [[ -x $bin ]] || skip 'plumb-allreduce is not built'
    lab_cluster 4
    scripts/lab-cluster congestion cubic
    secret=$BATS_TEST_TMPDIR/secret out=$BATS_TEST_TMPDIR/out
    (umask 077 && echo 'a secret of these tests' >"$secret")
}

teardown() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_clean
}

# ranks N [LAST]: ranks 1 to LAST of N (all), each on its host, in the background.
ranks() {
    local i
    for ((i = 1; i <= ${2:-$1 - 1}; i++)); do
        timeout -k 5 120 scripts/lab-cluster exec "$i" "$bin" --np "$1" --rank "$i" --leader node0 --secret-file "$secret" \
            --wait 30s >"$BATS_TEST_TMPDIR/rank$i" 2>&1 3>&- &
    done
}

# lead N OPTIONS: rank 0 of N on node0; rows to $out, what it says to $out.err.
lead() {
    local n=$1
    shift
    timeout -k 5 100 scripts/lab-cluster exec 0 "$bin" --np "$n" --listen 0.0.0.0 --secret-file "$secret" --wait 30s --csv --no-cpu \
        --transport tcp "$@" >"$out" 2>"$out.err" 3>&-
}

# of METRIC COLUMN [RANKS]: in the row of that metric, and of so many ranks.
of() {
    paste -d'|' <(cells metric) <(cells ranks) <(cells "$2") | awk -F'|' -v metric="$1" -v ranks="${3-}" \
        '$1 == metric && (ranks == "" || $2 == ranks) { print $3; exit }'
}

busbw() {
    of busbw value "$@" | awk '{ printf "%.0f\n", $1 * 8e9 }'
}

# ring N: bit/s of busbw of our ring at 32 MiB over N hosts.
ring() {
    ranks "$1"
    lead "$1" --ranks "$1" --size 32M --budget 4s --min-samples 5 || { cat "$out.err" >&2 && return 1; }
    wait
    [ "$(of busbw status "$1")" != wrong ] || return
    busbw "$1"
}

nobody() {
    ! scripts/lab-cluster status | grep -E ' [1-9][0-9]* process'
}

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
    local began before
    scripts/lab-cluster rate 200mbit
    ranks 4
    lead 4 --ranks 4 --size 16M --budget 60s --min-samples 100000 &
    client=$!
    before=$(on 0 cat /sys/class/net/eth0/statistics/rx_bytes)
    in_time 40 bash -c "((\$(scripts/lab-cluster exec 0 cat /sys/class/net/eth0/statistics/rx_bytes) > $((before + 20000000))))"
    scripts/lab-cluster cut 2
    began=$SECONDS
    status=0
    wait $client || status=$?
    echo "took $((SECONDS - began)) s" && cut -c 1-600 "$out" && cat "$out.err"
    [ "$status" -eq 4 ]
    ((SECONDS - began <= 14))
    [[ $(of time reason) == *node2* ]]
    in_time 20 nobody
}

@test "a rank that is killed ends the case at once, by name" {
    local began before
    scripts/lab-cluster rate 200mbit
    ranks 4
    lead 4 --ranks 4 --size 16M --budget 60s --min-samples 100000 &
    client=$!
    before=$(on 0 cat /sys/class/net/eth0/statistics/rx_bytes)
    in_time 40 bash -c "((\$(scripts/lab-cluster exec 0 cat /sys/class/net/eth0/statistics/rx_bytes) > $((before + 20000000))))"
    scripts/lab-cluster exec 3 pkill -KILL -f -- "--rank 3 --leader node0 --secret-file $secret"
    began=$SECONDS
    status=0
    wait $client || status=$?
    echo "took $((SECONDS - began)) s" && cut -c 1-600 "$out"
    [ "$status" -eq 4 ]
    ((SECONDS - began <= 12))
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

slow_ring() {
    ranks 4
    lead 4 --ranks 4 --size 16M --budget 3s --min-samples 5 || { cat "$out.err" >&2 && return 1; }
    wait
    busbw
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
