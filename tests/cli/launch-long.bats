#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2034,SC2154 # of variables that the files of this name share
# plumb-launch from outside, on simulated GPUs: what each operation takes at least, tails, faults, and what
# is said where there is no GPU. The host's clock runs on a machine that others use too: only lower bounds.

load ../sim/env
load rows
load launch

# at_least COLUMN NUMBER: the only row's value
at_least()
{
    cells "$1" | awk -v least="$2" '$1 + 0 >= least { good = 1 } END { exit !good }' ||
        { echo "$1 is $(cells "$1"), wanted $2 at least" && false; }
}

# below COLUMN NUMBER
below()
{
    cells "$1" | awk -v most="$2" '$1 != "" && $1 + 0 < most { good = 1 } END { exit !good }' ||
        { echo "$1 is $(cells "$1"), wanted less than $2" && false; }
}

# A call of some ms that is in each sample would be in its fastest one, however busy this machine is.
@test "no sample has the driver's call in it that makes a context this thread's" {
    machine 2 '[gpu]' 'context_us = 4000'
    exits 0 launch
    [ "$(cells status | grep -cxE 'ok|noisy')" -ge 5 ]
    cells min | awk '$1 != "" && $1 + 0 >= 4000 { print; bad = 1 } END { exit bad }'
}

@test "a sample is one operation; ten thousand of them, for a p99.9 that means something" {
    simulate one
    quick="--csv --budget 20s --warmup 20ms"
    exits 0 launch --op launch,event-query
    [ "$(cells inner_repeat | sort -u)" = 1 ]
    cells samples | awk '$1 < 10000 { exit 1 }'
    launch --op launch --min-samples 64 --width 50%
    [ "$(cells samples)" -lt 10000 ]
    quick="--csv --budget 300ms"
    launch --op launch-rate
    cells inner_repeat | awk '$1 < 100 { exit 1 }'
}

@test "what is configured is the least that is seen" {
    machine 2 '[gpu]' 'submit_us = 40' 'kernel_us = 30' 'graph_node_us = 5' 'call_us = 60'
    launch --op launch-complete
    at_least min 70
    launch --op graph-complete --nodes 8
    at_least min 80
    launch --op graph-complete --nodes 40
    at_least min 240
    # The second row: kernels a second, of all 40.
    cells value | paste -sd ' ' | awk '{ all = $1 * $2; exit !(all > 39 && all < 41) }'
    launch --op copy-small
    at_least min 40
    launch --op driver-call
    at_least min 60
    launch --op alloc
    at_least min 120
    # Handing over waits for nothing of it.
    launch --op launch
    below p50 30
    launch --op graph
    below p50 40
    # Back to back each still takes the kernel's time, and no more than that is added by the calls.
    launch --op launch-rate
    [ "$(cells metric | paste -sd ' ')" = "interval rate" ]
    at_least min 29.5
    below min 45
}

@test "a GPU that stutters shows in p99.9 and max, not in the median" {
    machine 2 '[gpu]' 'hiccup_every = 300' 'hiccup_us = 5000'
    quick="--csv --budget 2s --warmup 20ms --min-samples 2000 --max-samples 4000"
    exits 0 launch --op launch-complete
    at_least p999 5000
    at_least max 5000
    below p50 1000
}

@test "more than there is: skipped, with what it needs and what there is" {
    machine 2 '[gpu]' 'memory_bytes = 256M' 'reserved_bytes = 64M'
    exits 0 launch --op alloc,alloc-ordered --size 512M
    [ "$(cells status | sort -u)" = skipped ]
    [[ $(cells reason | head -n 1) == *" 0.537 GB "*" 0."*" GB: "*"--size" ]]
    [[ $(cells reason | tail -n 1) == *" 1.074 GB "*" 0."* ]] # one is kept, one is measured
    [ "$(cells origin metric | sort -u | wc -l)" -eq 1 ]
    launch --op alloc,alloc-ordered --size 100M # fits once, not twice
    [ "$(cells status | sed 's/noisy/ok/' | paste -sd ' ')" = "ok skipped" ]
    exits 0 launch --op pinned-alloc --size 64T
    [ "$(cells status)" = skipped ]
    says "$out" "host's memory"
}

@test "held back while it ran: marked, by what, and kept" {
    simulate one
    [[ -e "${PLUMB_BIN:-build/bin}/../sim/libnvidia-ml.so.1" ]] || skip "no stand-in for NVML"
    fault throttle:reason=power:factor=0.5
    # Every 100 ms for 1 s; a machine that others use too may take most of that second, but not five times.
    for _ in 1 2 3 4 5; do
        launch --op launch-complete --budget 1s --width 0.0001%
        [[ $(cells status) == ok || $(cells status) == noisy ]]
        says "$out" 'power cap'
        [[ $(cells disturbed) == *"GPU held back"* ]]
        paste -d' ' <(cells gpu_looks) <(cells elapsed_s) | awk '!($1 >= 1 && $1 <= 10 * $2 + 2) { exit 1 }'
        [[ $(cells gpu_looks) -lt 3 ]] || break
    done
    [[ $(cells gpu_looks) -ge 3 ]]
    cells gpu_clock_mhz_high | awk '!($1 > 0) { exit 1 }'
    unset PLUMB_SIM_FAULT
    launch --op launch-complete --budget 1s --min-samples 20000
    [[ $(cells disturbed) != *"GPU held back"* ]]
    [ "$(cells gpu_throttled_looks)" = 0 ]
}
