# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # of and for the tests that load it
# plumb-allreduce between hosts of a lab, for the tests that want them.

setup_file() { between_file; }

setup() {
    bin=build/bin/plumb-allreduce
    between_hosts 4 "$bin"
}

teardown() { between_file; }

# ranks N [LAST]: ranks 1 to LAST of N (all), each on its host, in the background.
ranks() {
    local i
    for ((i = 1; i <= ${2:-$1 - 1}; i++)); do
        timeout -k 5 1500 scripts/lab-cluster exec "$i" "$bin" --np "$1" --rank "$i" --leader node0 --secret-file "$secret" \
            --wait 30s >"$BATS_TEST_TMPDIR/rank$i" 2>&1 3>&- &
    done
}

# lead N OPTIONS: rank 0 of N on node0; rows to $out, what it says to $out.err.
lead() {
    local n=$1
    shift
    timeout -k 5 1500 scripts/lab-cluster exec 0 "$bin" --np "$n" --listen 0.0.0.0 --secret-file "$secret" --wait 30s --csv --no-cpu \
        --transport tcp "$@" >"$out" 2>"$out.err" 3>&-
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

# rails BACKEND DEVICES: bit/s of busbw at 8 MiB of two ranks on each of two hosts. Ranks 0 and 2 have the first device.
rails() {
    local i
    for i in 1 2 3; do
        timeout -k 5 1500 scripts/lab-cluster exec $((i / 2)) "$bin" --np 4 --rank $i --leader node0 --secret-file "$secret" \
            --wait 30s >"$BATS_TEST_TMPDIR/rank$i" 2>&1 3>&- &
    done
    lead 4 --ranks 4 --size 8M --budget 4s --min-samples 5 --backend "$1" --device "$2" || { cat "$out.err" >&2 && return 1; }
    wait
    [ "$(of busbw status)" != wrong ] || return
    busbw
}

# begin N OPTIONS: a ring over N hosts that would take twenty minutes, process $client, is under way.
begin() {
    local n=$1 before
    shift
    ranks "$n"
    lead "$n" --ranks "$n" --size 16M --budget 20m --min-samples 100000000 "$@" &
    client=$!
    before=$(got)
    in_time 300 more_than $((before + 20000000))
}

nobody() {
    ! scripts/lab-cluster status | grep -E ' [1-9][0-9]* process'
}

slow_ring() {
    ranks 4
    lead 4 --ranks 4 --size 16M --budget 3s --min-samples 5 || { cat "$out.err" >&2 && return 1; }
    wait
    busbw
}
