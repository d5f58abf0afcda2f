#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2034,SC2086,SC2154 # of variables that rows.bash reads, paths_of sets variables
# plumb-memory on a GPU, a simulated one of known figures: what it measures, what it finds, and what it says where it cannot.

load ../sim/env
load rows

setup()
{
    paths_of memory
    quick="--csv --budget 60ms --warmup 10ms --device cuda"
    # Slow, so that this machine keeps up; streaming stores gain 20 %, and the plain launch gets 5/8 of it: 20 SMs of 2048 threads with 16
    # bytes each are 640 KiB, of 1 MiB that must be in flight. 4096 blocks of 256 threads, and other multiples, leave part of a last wave empty.
    machine=$BATS_TEST_TMPDIR/machine.conf
    cat >"$machine" <<'END'
[gpu]
l1_bytes = 64K
l2_bytes = 512K
hbm_gbps = 10
l2_gbps = 40
d2d_gbps = 4
memset_gbps = 7
streaming_factor = 1.2
inflight_bytes = 1M
memory_bus_bits = 5120
memory_bytes = 256M
reserved_bytes = 16M
address = 0000:3b:00.0
l1_ns = 30
l2_ns = 200
hbm_ns = 500
END
    simulate "$machine"
}

memory() { measure "$@"; }

# near VALUE WANTED: within 5 %.
near()
{
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0.95 * b && a < 1.05 * b) }' || {
        echo "$1 is not near $2" >&2
        return 1
    }
}

all_good() { good 'wrong|failed|skipped'; }

@test "HBM: every operation at the configured rate; the search finds what is best, the plain launch is below" {
    memory --op read,write,copy,scale,add,triad --size 6M
    all_good
    [ "$(cells op | uniq | paste -sd ' ')" = "read write copy scale add triad" ]
    [ "$(cells launch | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd ' ')" = "6 plain 6 tuned" ]
    [ "$(cells level_used | sort -u)" = HBM ]
    while read -r launch value shape; do
        if [ "$launch" = tuned ]; then
            near "$value" 12
            [[ $shape == *" cs "* ]]
            [[ $shape != "u1 "* ]]
        else
            [[ $shape == "u1 256 threads x "* ]]
            awk -v value="$value" 'BEGIN { exit !(value > 4 && value < 0.68 * 10) }'
        fi
    done < <(paste -d' ' <(cells launch) <(cells value) <(cells shape))
    memory --op copy --size 6M --launch plain # all is covered: 4 KiB a block, where 160 of them run at once
    [ "$(cells shape)" = "u1 256 threads x 768 blocks" ]
    memory --op read --size 6M --launch plain # every block ends with an addition into one word
    [ "$(cells shape)" = "u1 256 threads x 160 blocks" ]
}

@test "L2: many passes in a launch, no more blocks than run at once" {
    # 16 accesses of 16 bytes for each of 2 x 64 threads: arrays of 32 KiB can fill it, and one block a thread too many cannot.
    sed 's/^inflight_bytes = .*/inflight_bytes = 32K\nsms = 2\nmax_threads_per_sm = 512/' "$machine" >"$machine.small"
    simulate "$machine.small"
    memory --op read,copy,triad --dtype f32,f64 --size 192K
    all_good
    [ "$(cells level_used | sort -u)" = L2 ]
    while read -r launch value shape; do
        [ "$launch" = plain ] || near "$value" 40
        [ "$launch" = tuned ] || near "$value" 20 # 1024 threads with 16 bytes in flight are half of what it takes
        blocks=${shape##* x } threads=${shape%% threads*} threads=${threads##* }
        [ $((${blocks% blocks} * threads)) -le 1024 ]
    done < <(paste -d' ' <(cells launch) <(cells value) <(cells shape))
}

@test "latency: each level's own, by the size of the chain" {
    memory --op latency --size 16K,128K,6M
    all_good
    [ "$(cells metric | sort -u)" = latency ]
    [ "$(cells level_used | paste -sd ,)" = "L1,,HBM" ]
    alike launch "" engine "" dtype ""
    near "$(cells value | sed -n 1p)" 30
    near "$(cells value | sed -n 2p)" 200
    near "$(cells value | sed -n 3p)" 500
}

@test "options: what says nothing on a device is refused, not ignored" {
    for option in "--stores nt" "--pages base" "--threads 2" "--node 0" "--memory-node 0" "--isa generic"; do
        exits 2 memory --op copy --size 64K $option
        [ ! -s "$out" ]
        [[ $(<"$err") == *"'${option%% *}' "*" host"* ]]
    done
    for option in "--launch tuned" "--launch plain" "--engine driver"; do
        warned 2 "'${option%% *}' * GPU" memory --device host --op copy --size 64K $option
    done
    exits 0 memory --op copy,latency --size 64K --launch plain
    [ "$(cells status | sed 's/noisy/ok/' | paste -sd ' ')" = "ok skipped" ]
    [[ $(cells reason | tail -n 1) == *--launch* ]]
    memory --launch plain --op copy --size 64K
    [ "$(cells launch)" = plain ]
    memory --launch tuned --op copy --size 64K
    [ "$(cells launch)" = tuned ]
}

@test "wrong data: found in every operation, of kernels, driver and chain" {
    for op in read write copy scale add triad latency; do
        exits 1 memory --op $op --size 256K --inject corrupt
        alike status wrong code wrong-data
    done
    exits 1 memory --op copy,write --engine driver --size 256K --inject corrupt
    [ "$(cells status | sort -u)" = wrong ]
}

@test "wrong data: of the device itself, in either kind of launch" {
    for kernel in triad_f64_u1 read_f32_u1; do
        fault corrupt:kernel=$kernel:times=1000000
        exits 1 memory --op "${kernel%%_*}" --dtype f32,f64 --launch plain --size 128K
        [ "$(cells status | sort | uniq -c | awk '{ print $1, $2 }' | grep wrong)" = "1 wrong" ]
    done
    # The plain launch is right, the tuned one is not.
    fault corrupt:kernel=copy_f64_u{2,4,8}_cs:times=1000000
    exits 1 memory --op copy --size 2M
}

@test "faults: the row says what failed, and the other rows survive" {
    fault out_of_memory:call=cuMemAlloc:above=1000000
    exits 4 memory --op copy --size 128K,4M --launch plain
    [ "$(cells size | paste -sd ' ')" = "131072 4194304" ]
    [[ $(cells status | head -n 1) == ok || $(cells status | head -n 1) == noisy ]]
    [ "$(cells status | tail -n 1)" = failed ]
    [[ $(cells reason | tail -n 1) == *"cuMemAlloc"* ]]

    fault launch_failed:kernel=copy_f64_u1:after=10
    exits 4 memory --op copy,write --size 128K --launch plain
    [ "$(cells status | head -n 1)" = failed ]
    [[ $(cells status | tail -n 1) == ok || $(cells status | tail -n 1) == noisy ]]

    fault lost:after=50
    exits 4 memory --op copy --size 128K,256K --launch plain
    [ "$(cells status | sort -u)" = failed ]
    [ "$(cells reason | grep -c .)" -eq 2 ]
}

@test "no such GPU, and a place that is none, are wrong usage; on a driver that is too old rows are skipped" {
    warned 2 "cuda:7" memory --device cuda:7 --op copy,latency --size 128K
    warned 2 "'node0' *--node and --memory-node" memory --device node0 --op copy --size 128K
    fault old_driver:version=11040
    memory --op copy --size 128K
    [ "$(cells status launch | xargs)" = "skipped tuned skipped plain" ]
}
