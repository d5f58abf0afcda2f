#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-copy from outside: its rows, both directions, wrong data, peers that die, and refused engines.

load rows
load copy

@test "engines: a row each, with a measured limit and evidence" {
    copy --engine memcpy,shm,pipe --size 8,64K
    [ "$status" -eq 0 ]
    [ "$(cells engine | uniq | paste -sd ' ')" = "memcpy shm pipe" ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    [ "$(cells unit | sort -u)" = GB/s ]
    [ "$(cells direction | sort -u)" = one-way ]
    [ "$(cells source | sort -u)" = "$(cells destination | sort -u)" ]
    cells value | awk '!($1 > 0) { exit 1 }'
    [ "$(cells limit_source | grep -c '^reference: best copy by one core')" -eq 4 ]
    [ "$(cells limit_source | grep -c '^measured: best copy by one core')" -eq 2 ]
    [ "$(cells evidence | grep -c 'source: .*destination: ')" -eq 6 ]
    [[ $(cells evidence | tail -n 1) == *"pipe buffer "*" KiB"* ]]
}

@test "both: forward, reverse and their sum" {
    for engine in memcpy shm pipe cma; do
        copy --engine $engine --size 256K --direction both
        [ "$status" -eq 0 ]
        [ "$(cells direction | paste -sd ' ')" = "forward reverse sum" ]
        [ "$(cells status | head -n 1)" != skipped ] || continue
        # The sum's time is the longer one: in the same sample it is at most forward + reverse.
        cells max | awk '{ v[NR] = $1 } END { exit !(v[3] > 0 && v[3] <= 1.001 * (v[1] + v[2])) }'
        cells limit | awk '{ v[NR] = $1 } END { exit !(v[3] > v[1] && v[3] > v[2]) }'
    done
}

@test "latency: one message a sample, in us, no sum and no limit" {
    copy --engine memcpy,shm,pipe --size 8 --metric latency --direction one-way,both
    [ "$status" -eq 0 ]
    [ "$(cells metric | sort -u)" = latency ]
    [ "$(cells unit | sort -u)" = us ]
    [ "$(cells inner_repeat | sort -u)" = 1 ]
    [ "$(cells direction | paste -sd ' ')" = \
        "one-way forward reverse one-way forward reverse one-way forward reverse" ]
    [ "$(cells limit | sort -u)" = "" ]
    cells p99 | awk '!($1 > 0) { exit 1 }'
    [ "$(cells reason | grep -c 'one way, and one reading of the clock is in it')" -eq 9 ]
    [ "$(cells evidence | grep -c 'a reading of the clock takes [0-9.]* ns')" -eq 9 ]
    copy --engine memcpy,shm --size 8
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

@test "wrong data: found on every way, exit 1" {
    for engine in memcpy shm pipe cma cma-write; do
        copy --engine $engine --size 64K --inject corrupt
        [ "$(cells status)" != skipped ] || continue
        [ "$status" -eq 1 ]
        [ "$(cells status)" = wrong ]
        [[ $(cells reason) == *"wrong data in "* ]]
    done
}

@test "a peer that dies: the case fails within seconds, the next one runs, no process is left" {
    begin=$SECONDS
    copy --engine shm,pipe,memcpy --size 64K --direction one-way,both --inject peer-dies --budget 60s --min-samples 20 --max-samples 20
    [ "$status" -eq 4 ]
    [ $((SECONDS - begin)) -lt 300 ]
    [ "$(cells status | sort | uniq -c | awk '$2 == "failed" { print $1 }')" -eq 8 ]
    [ "$(cells reason | grep -c 'the process at the other end died')" -eq 8 ]
    cells status | tail -n 1 | grep -q -e ok -e noisy
}
