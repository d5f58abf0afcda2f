#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2086,SC2154 # options in one variable are several words, paths_of sets variables
# tier: long
# plumb-net does what was asked for: so many samples, each device once, and rows that say which kind of rate they are.

load rows

setup()
{
    paths_of net
    quick="--csv --warmup 50ms --no-cpu"
    unset PLUMB_SECRET_FILE
}

net() { measure "$@"; }

# directions METRIC: the words of its rows.
directions() { paste -d' ' <(cells metric) <(cells direction) | awk -v m="$1" '$1 == m { print $2 }' | paste -sd ' '; }

@test "a part of both ways at once is not called what one way alone is, in rates of bytes and of messages" {
    exits 0 net --transport tcp --pattern bandwidth,rate --size 64K --direction forward,reverse,both --budget 100ms
    [ "$(directions bandwidth)" = "forward reverse both-forward both-reverse sum" ]
    [ "$(directions message_rate)" = "forward reverse both-forward both-reverse sum" ]
    # also of rows that never came so far
    exits 4 net --transport tcp --pattern bandwidth --size 64K --direction both -d eth99
    [ "$(directions bandwidth)" = "both-forward both-reverse" ]
}

@test "a time or a number that takes more samples than are kept: the row says so, and the help how many are" {
    for asked in "-D 100s" "-n 5000"; do
        net --transport tcp --pattern latency --size 8 $asked --max-samples 300
        [ "$(cells samples)" = 300 ]
        [[ $(cells reason) == *" 300 samples (--max-samples)"* ]]
    done
    for asked in "-D 100ms" "-n 300 --max-samples 300"; do
        net --transport tcp --pattern latency --size 8 $asked
        [[ $(cells reason) != *"max-samples"* ]]
    done
    for asked in "-D 1s" "-n 100"; do
        "$bin" --describe $asked | grep '"name": "max-samples",[^}]*"default": \["20000000"\]'
        "$bin" --describe $asked --max-samples 1000 | grep '"name": "max-samples",[^}]*"default": \["1000"\]'
    done
    # the end that a latency otherwise has is not for those
    "$bin" --describe | grep '"name": "samples-chosen",[^}]*"default": \["yes"\]'
    for asked in "-D 1s" "-n 100" "--max-samples 1000000"; do
        "$bin" --describe $asked | grep '"name": "samples-chosen",[^}]*"default": \[\]'
    done
    "$bin" --help | tr -s '\n ' ' ' | grep "20 million"
}

@test "a device that is named twice, at either end: usage, exit 2; by two names, the row fails" {
    for option in --device --peer-device "--listen loopback --device"; do
        exits 2 net --transport tcp $option lo+lo
        grep -q "'lo+lo'.*'lo'" "$err"
    done
    for option in --device --peer-device; do
        exits 4 net --transport tcp --pattern bandwidth --size 64K --streams 2 $option lo+127.0.0.1
        [[ $(cells reason) == *"'lo+127.0.0.1'"*"'lo'"* ]]
    done
}
