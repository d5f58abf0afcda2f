#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-copy from outside, between places of the host: its rows, both directions, wrong data.

load rows
load copy

@test "bandwidth: a row a size, with a measured limit and evidence" {
    copy --size 8,64K
    [ "$status" -eq 0 ]
    [ "$(cells engine | uniq)" = memcpy ]
    [ "$(cells memory | uniq)" = pageable ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    [ "$(cells unit | sort -u)" = GB/s ]
    [ "$(cells direction | sort -u)" = one-way ]
    [ "$(cells source | sort -u)" = "$(cells destination | sort -u)" ]
    cells value | awk '!($1 > 0) { exit 1 }'
    [ "$(cells limit_source | grep -c '^reference: best copy by one core')" -eq 2 ]
    [ "$(cells evidence | grep -c 'source: .*destination: ')" -eq 2 ]
}

@test "both: forward, reverse and their sum" {
    copy --size 256K --direction both
    [ "$status" -eq 0 ]
    [ "$(cells direction | paste -sd ' ')" = "forward reverse sum" ]
    # The sum's time is the longer one: in the same sample it is at most forward + reverse.
    cells max | awk '{ v[NR] = $1 } END { exit !(v[3] > 0 && v[3] <= 1.001 * (v[1] + v[2])) }'
    cells limit | awk '{ v[NR] = $1 } END { exit !(v[3] > v[1] && v[3] > v[2]) }'
}

@test "latency: one message a sample, in us, no sum and no limit" {
    copy --size 8 --metric latency --direction one-way,both
    [ "$status" -eq 0 ]
    [ "$(cells metric | sort -u)" = latency ]
    [ "$(cells unit | sort -u)" = us ]
    [ "$(cells inner_repeat | sort -u)" = 1 ]
    [ "$(cells direction | paste -sd ' ')" = "one-way forward reverse" ]
    [ "$(cells limit | sort -u)" = "" ]
    cells p99 | awk '!($1 > 0) { exit 1 }'
    [ "$(cells reason | grep -c 'one way, and one reading of the clock is in it')" -eq 3 ]
    [ "$(cells evidence | grep -c 'a reading of the clock takes [0-9.]* ns')" -eq 3 ]
    copy --size 8
    [ "$(cells reason | grep -c 'reading of the clock')" -eq 0 ]
}

@test "options of GPUs say nothing between places of the host: refused" {
    for option in "--op read" "--access on" "--together all" "--together none" "--pairs sampled"; do
        # shellcheck disable=SC2086 # two words
        copy --engine memcpy --size 4K --source node0 --destination node0 $option
        [ "$status" -eq 2 ]
        [ ! -s "$out" ]
        [[ $(<"$err") == *"'${option%% *}' "* ]]
    done
}

@test "wrong data: found, exit 1" {
    copy --size 64K --inject corrupt
    [ "$status" -eq 1 ]
    [ "$(cells status)" = wrong ]
    [[ $(cells reason) == *"wrong data in "* ]]
}
