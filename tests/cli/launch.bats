#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-launch from outside, on simulated GPUs: what each operation takes at least, tails, faults, and what
# is said where there is no GPU. The host's clock runs on a machine that others use too: only lower bounds.

load ../sim/env
load rows
load launch

@test "every operation: a row with its percentiles, simulated and said so" {
    simulate one
    exits 0 launch
    [ "$(cells op | uniq | paste -sd ' ')" = "launch launch-complete launch-rate graph graph-complete \
stream-sync event event-query alloc alloc-ordered pinned-alloc driver-call copy-small" ]
    [ "$(cells status | grep -vc -e '^ok$' -e '^noisy$')" -eq 0 ]
    alike origin simulated address 0000:10:00.0 device cuda:0
    for column in min p50 p99 p999 max; do
        cells "$column" | awk '!($1 > 0) { exit 1 }'
    done
    # Rates are of launches in a row and of a graph's nodes; all else is a time.
    [ "$(cells metric | sort | uniq -c | awk '{ print $1 $2 }' | paste -sd ' ')" = \
        "1interval 12latency 2rate" ]
    [ "$(cells unit | sort | uniq -c | awk '{ print $1 $2 }' | paste -sd ' ')" = "2Mop/s 13us" ]
    # Options that say nothing of an operation are not in its row.
    [ "$(cells nodes | paste -sd ,)" = ",,,,20,20,20,,,,,,,," ]
    [ "$(cells size | paste -sd ,)" = ",,,,,,,,,,4096,4096,4096,," ]
    [ "$(cells evidence | grep -c ' 4096 words ')" -eq 15 ]
}

@test "lost: the rows of that GPU fail and say why, the other's survive" {
    machine 2
    fault lost:gpu=0:after=100
    exits 4 launch --device cuda:0,cuda:1 --op launch-complete,event,copy-small
    [ "$(cells device | paste -sd ' ')" = "cuda:0 cuda:0 cuda:0 cuda:1 cuda:1 cuda:1" ]
    [ "$(cells status | head -n 3 | sort -u)" = failed ]
    [ "$(cells status | tail -n 3 | grep -vc -e '^ok$' -e '^noisy$')" -eq 0 ]
    cells reason | head -n 3 | awk '$0 == "" { exit 1 }'
    [ "$(cells origin | sort -u)" = simulated ]
}

@test "wrong data: exit 1" {
    simulate one
    fault corrupt:kernel=fill
    exits 1 launch --op launch
    [ "$(cells status)" = wrong ]
    says "$out" 'of 4096 words'
    fault corrupt:kernel=fill
    launch --op graph-complete
    [ "$(cells status | sort -u)" = wrong ]
}

@test "no GPU at all, no module: skipped, with what to do; no such GPU: wrong usage" {
    simulate one
    warned 2 'no cuda:7' launch --op launch --device cuda:7
    PLUMB_LIBCUDA=/nonexistent/libcuda.so.1 launch --op launch
    [ "$(cells status)" = skipped ]
    says "$out" 'driver'
    fault no_device
    launch --op launch
    [ "$(cells status)" = skipped ]
    LD_LIBRARY_PATH='' PLUMB_CUDA_MODULE=/nonexistent/plumb-cuda.so exits 0 launch --op launch,event
    alike status skipped value "" origin measured
}

@test "a place that is no GPU is an error" {
    warned 2 "'--device': 'host' " launch --device host --op launch
    warned 2 "'nowhere' " launch --device nowhere --op launch
}

@test "options of other operations are refused, not ignored" {
    warned 2 "'--nodes' " launch --op launch,event --nodes 40
    warned 2 "'--size' " launch --op graph --size 4K
    simulate one
    exits 0 launch --op event,graph,alloc,alloc-ordered,pinned-alloc --size 8K
    [ "$(cells status | sed 's/noisy/ok/' | paste -sd ' ')" = "skipped skipped ok ok ok" ]
    [ "$(cells size | paste -sd ,)" = ",,8192,8192,8192" ]
    says "$out" '--size does not'
    launch --op event,graph,graph-complete --nodes 3
    [ "$(cells status | sed 's/noisy/ok/' | paste -sd ' ')" = "skipped ok ok ok" ]
}
