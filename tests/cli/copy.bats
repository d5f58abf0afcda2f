#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-copy from outside, between places of the host: its rows, both directions, wrong data.

load rows
load copy

@test "bandwidth: a row a size, with a measured limit and evidence" {
    exits 0 copy --size 8,64K
    alike engine memcpy memory pageable
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    alike unit GB/s direction one-way
    [ "$(cells source | sort -u)" = "$(cells destination | sort -u)" ]
    cells value | awk '!($1 > 0) { exit 1 }'
    [ "$(cells limit_kind | sort -u)" = reference ]
    [ "$(cells evidence | grep -c 'source: .*destination: ')" -eq 2 ]
}

@test "both: forward, reverse and their sum" {
    exits 0 copy --size 256K --direction both
    [ "$(cells direction | paste -sd ' ')" = "forward reverse sum" ]
    # The sum's time is the longer one: in the same sample it is at most forward + reverse.
    cells max | awk '{ v[NR] = $1 } END { exit !(v[3] > 0 && v[3] <= 1.001 * (v[1] + v[2])) }'
    cells limit | awk '{ v[NR] = $1 } END { exit !(v[3] > v[1] && v[3] > v[2]) }'
}

@test "latency: one message a sample, in us, no sum and no limit" {
    exits 0 copy --size 8 --metric latency --direction one-way,both
    alike metric latency unit us inner_repeat 1
    [ "$(cells direction | paste -sd ' ')" = "one-way forward reverse" ]
    [ "$(cells limit | sort -u)" = "" ]
    cells p99 | awk '!($1 > 0) { exit 1 }'
    [ "$(cells reason | grep -c clock)" -eq 3 ]
    [ "$(cells evidence | grep -c 'clock .*[0-9.]* ns')" -eq 3 ]
    copy --size 8
    [ "$(cells reason | grep -c clock)" -eq 0 ]
}

@test "options of GPUs say nothing between places of the host: refused" {
    for option in "--op read" "--access on" "--together all" "--together none"; do
        # shellcheck disable=SC2086 # two words
        exits 2 copy --engine memcpy --size 4K --source node0 --destination node0 $option
        [ ! -s "$out" ]
        [[ $(<"$err") == *"'${option%% *}' "* ]]
    done
}

@test "wrong data: found, exit 1" {
    exits 1 copy --size 64K --inject corrupt
    [ "$(cells status)" = wrong ]
    [ "$(cells code)" = wrong-data ]
}
