#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb-launch from outside, on simulated GPUs: what each operation takes at least, tails, faults, and what
# is said where there is no GPU. The host's clock runs on a machine that others use too: only lower bounds.

load ../sim/env
load rows

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=build/bin/plumb-launch
    quick="--csv --budget 300ms --warmup 20ms --min-samples 200"
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
}

# launch ARGUMENTS...: runs the benchmark; sets status, and leaves stdout and stderr in $out and $err.
launch()
{
    status=0
    # shellcheck disable=SC2086 # quick is several words
    timeout 600 "$bin" $quick "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# says FILE TEXT: FILE has the text, or we see FILE.
says()
{
    grep -qF -- "$2" "$1" || { echo "no \"$2\" in:" && cat "$1" && false; }
}

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

# machine LINE...: a machine of its own, of two GPUs, each with these lines
machine()
{
    {
        echo '[machine]'
        echo 'gpus = 2'
        echo '[gpu]'
        printf '%s\n' 'name = Simulated GPU' "$@"
    } >"$BATS_TEST_TMPDIR/machine.conf"
    simulate "$BATS_TEST_TMPDIR/machine.conf"
}

# A call of some ms that is in each sample would be in its fastest one, however busy this machine is.
@test "no sample has the driver's call in it that makes a context this thread's" {
    machine 'context_us = 4000'
    launch
    [ "$status" -eq 0 ]
    [ "$(cells status | grep -cxE 'ok|noisy')" -ge 5 ]
    cells min | awk '$1 != "" && $1 + 0 >= 4000 { print; bad = 1 } END { exit bad }'
}

@test "every operation: a row with its percentiles, simulated and said so" {
    simulate one
    launch
    [ "$status" -eq 0 ]
    [ "$(cells op | uniq | paste -sd ' ')" = "launch launch-complete launch-rate graph graph-complete \
stream-sync event event-query alloc alloc-ordered pinned-alloc driver-call copy-small" ]
    [ "$(cells status | grep -vc -e '^ok$' -e '^noisy$')" -eq 0 ]
    [ "$(cells origin | sort -u)" = simulated ]
    [ "$(cells address | sort -u)" = 0000:10:00.0 ]
    [ "$(cells device | sort -u)" = cuda:0 ]
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
    [ "$(cells evidence | grep -c 'then a kernel wrote 4096 words that were compared')" -eq 15 ]
}

@test "a sample is one operation; ten thousand of them, for a p99.9 that means something" {
    simulate one
    quick="--csv --budget 20s --warmup 20ms"
    launch --op launch,event-query
    [ "$status" -eq 0 ]
    [ "$(cells inner_repeat | sort -u)" = 1 ]
    cells samples | awk '$1 < 10000 { exit 1 }'
    launch --op launch --min-samples 64 --width 50%
    [ "$(cells samples)" -lt 10000 ]
    quick="--csv --budget 300ms"
    launch --op launch-rate
    cells inner_repeat | awk '$1 < 100 { exit 1 }'
}

@test "what is configured is the least that is seen" {
    machine 'submit_us = 40' 'kernel_us = 30' 'graph_node_us = 5' 'call_us = 60'
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
    machine 'hiccup_every = 300' 'hiccup_us = 5000'
    quick="--csv --budget 2s --warmup 20ms --min-samples 2000 --max-samples 4000"
    launch --op launch-complete
    [ "$status" -eq 0 ]
    at_least p999 5000
    at_least max 5000
    below p50 1000
}

@test "lost: the rows of that GPU fail and say why, the other's survive" {
    machine
    fault lost:gpu=0:after=100
    launch --device cuda:0,cuda:1 --op launch-complete,event,copy-small
    [ "$status" -eq 4 ]
    [ "$(cells device | paste -sd ' ')" = "cuda:0 cuda:0 cuda:0 cuda:1 cuda:1 cuda:1" ]
    [ "$(cells status | head -n 3 | sort -u)" = failed ]
    [ "$(cells status | tail -n 3 | grep -vc -e '^ok$' -e '^noisy$')" -eq 0 ]
    cells reason | head -n 3 | awk '$0 == "" { exit 1 }'
    [ "$(cells origin | sort -u)" = simulated ]
}

@test "a kernel that fails: its row alone, the device is opened again" {
    simulate one
    fault launch_failed:kernel=empty:after=50
    launch --op launch-complete,stream-sync
    [ "$status" -eq 4 ]
    [ "$(cells status | head -n 1)" = failed ]
    [[ $(cells reason | head -n 1) == *cu* ]]
    [[ $(cells status | tail -n 1) == ok || $(cells status | tail -n 1) == noisy ]]
}

@test "out of memory: said, and the next operation goes on" {
    simulate one
    fault out_of_memory:call=cuMemAllocAsync
    launch --op alloc-ordered,event-query
    [ "$status" -eq 4 ]
    [ "$(cells status | head -n 1)" = failed ]
    says "$out" memory
    [[ $(cells status | tail -n 1) == ok || $(cells status | tail -n 1) == noisy ]]
}

@test "wrong data: exit 1" {
    simulate one
    fault corrupt:kernel=fill
    launch --op launch
    [ "$status" -eq 1 ]
    [ "$(cells status)" = wrong ]
    says "$out" 'of 4096 words that a kernel wrote are not right'
    fault corrupt:kernel=fill
    launch --op graph-complete
    [ "$(cells status | sort -u)" = wrong ]
}

@test "the calls come from the GPU's node, or from another one" {
    machine 'numa_node = 0'
    launch --op event-query
    [ "$(cells node)" = 0 ]
    launch --op event-query --node any
    [ "$(cells node)" = any ]
    launch --op event-query --node 63
    [ "$(cells status)" = skipped ]
    says "$out" 'no CPU of node 63 may be used here'
}

@test "no GPU at all, no module: skipped, with what to do; no such GPU: failed" {
    simulate one
    launch --op launch --device cuda:7
    [ "$status" -eq 4 ]
    [ "$(cells status)" = failed ]
    says "$out" 'there is no cuda:7: there is 1 GPU: cuda:0'
    PLUMB_LIBCUDA=/nonexistent/libcuda.so.1 launch --op launch
    [ "$(cells status)" = skipped ]
    says "$out" 'driver'
    fault no_device
    launch --op launch
    [ "$(cells status)" = skipped ]
    LD_LIBRARY_PATH='' PLUMB_CUDA_MODULE=/nonexistent/plumb-cuda.so launch --op launch,event
    [ "$status" -eq 0 ]
    [ "$(cells status | sort -u)" = skipped ]
    [ "$(cells value | sort -u)" = "" ]
    [ "$(cells origin | sort -u)" = measured ]
}

@test "a place that is no GPU is an error" {
    launch --device host --op launch
    [ "$status" -eq 2 ]
    says "$err" "option '--device': 'host' is no GPU: cuda:0, gpus"
    launch --device nowhere --op launch
    [ "$status" -eq 2 ]
    says "$err" "'nowhere' is not a place: cuda:0, gpus"
    [ ! -s "$out" ]
}

@test "options of other operations are refused, not ignored" {
    launch --op launch,event --nodes 40
    [ "$status" -eq 2 ]
    says "$err" "option '--nodes' does not apply here: it is for graphs"
    launch --op graph --size 4K
    [ "$status" -eq 2 ]
    says "$err" "option '--size' does not apply here: it is for allocations"
    [ ! -s "$out" ]
    simulate one
    launch --op event,graph,alloc,alloc-ordered,pinned-alloc --size 8K
    [ "$status" -eq 0 ]
    [ "$(cells status | sed 's/noisy/ok/' | paste -sd ' ')" = "skipped skipped ok ok ok" ]
    [ "$(cells size | paste -sd ,)" = ",,8192,8192,8192" ]
    says "$out" '--size does not apply here'
    launch --op event,graph,graph-complete --nodes 3
    [ "$(cells status | sed 's/noisy/ok/' | paste -sd ' ')" = "skipped ok ok ok" ]
}

@test "more than there is: skipped, with what it needs and what there is" {
    machine 'memory_bytes = 256M' 'reserved_bytes = 64M'
    launch --op alloc,alloc-ordered --size 512M
    [ "$status" -eq 0 ]
    [ "$(cells status | sort -u)" = skipped ]
    [[ $(cells reason | head -n 1) == "needs 0.537 GB of the GPU's memory, has 0."*" GB: take a smaller --size" ]]
    [[ $(cells reason | tail -n 1) == "needs 1.074 GB of the GPU's memory, has 0."* ]] # one is kept, one is measured
    [ "$(cells origin metric | sort -u | wc -l)" -eq 1 ]
    launch --op alloc,alloc-ordered --size 100M # fits once, not twice
    [ "$(cells status | sed 's/noisy/ok/' | paste -sd ' ')" = "ok skipped" ]
    launch --op pinned-alloc --size 64T
    [ "$status" -eq 0 ]
    [ "$(cells status)" = skipped ]
    says "$out" "of the host's memory, has "
}

@test "held back while it ran: marked, by what, and kept" {
    simulate one
    [[ -e build/sim/libnvidia-ml.so.1 ]] || skip "no stand-in for NVML"
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
