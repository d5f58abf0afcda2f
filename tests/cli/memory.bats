#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-memory from outside: its rows, what it counts, its evidence, and what it says where it cannot run.

load rows
load memory

# Every row's limit is what the first row's loads and the second's stores give, or more, but for what the machine changes meanwhile.
limits_agree() {
    paste -d' ' <(cells op) <(cells limit) <(cells write_allocate) | awk '
        $1 == "read" && !R { R = $2 }
        $1 == "write" && !W { W = $2 }
        $1 == "read" || $1 == "write" { next }
        { reads = $1 == "copy" || $1 == "scale" ? 1 : 2
          fill = $3 != "yes" ? 0 : W > R ? R / W : 1
          least = (reads + 1) / ((reads + fill) / R > 1 / W ? (reads + fill) / R : 1 / W)
          n++; low += $2 < 0.75 * least }
        END { exit low || !n }'
}

@test "rows: every operation, both types, with a measured limit" {
    exits 0 memory --op read,write,copy,scale,add,triad --dtype f32,f64 --size 64K
    [ "$(cells op | uniq | paste -sd ' ')" = "read write copy scale add triad" ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    alike metric bandwidth unit GB/s bytes_rule stream
    [ "$(cells op limit_kind | sort | uniq -c | xargs)" = \
        "2 add measured 2 copy measured 2 read reference 2 scale measured 2 triad measured 2 write reference" ]
    cells value | awk '!($1 > 0) { exit 1 }'
    cells limit | awk '!($1 > 0) { exit 1 }'
    # One measurement for one size, R of loads and W of stores: (r + w) / max((r + fill) / R, w / W); only a row that beat it may have more. A row
    # measures again when it ends: where the machine jumped between two levels meanwhile, this run cannot tell, another may.
    limits_agree || { memory --op read,write,copy,scale,add,triad --dtype f32 --size 64K && limits_agree; } ||
        { memory --op read,write,copy,scale,add,triad --dtype f32 --size 64K && limits_agree; }
}

@test "latency: nanoseconds of one dependent load, rising with the size, no limit" {
    exits 0 memory --op latency --size 16K,64M --threads 0
    [ "$(cells metric | paste -sd ' ')" = "latency latency_page_by_page latency latency_page_by_page" ]
    alike unit ns threads_used 1 dtype "" limit ""
    cells value | awk 'NR == 1 { l1 = $1 } NR == 3 { far = $1 } END { exit !(l1 > 0.1 && far > 3 * l1) }'
    [ "$(cells hardware_pages | head -n 1)" = "" ] # too little memory to tell
}

@test "working_set: what the arrays really hold, never more than asked" {
    exits 0 memory --op triad,copy,write --size 100000
    cells working_set | awk '!($1 <= 100000 && $1 > 98000) { exit 1 }'
    memory --op triad --size 1024 --threads 2
    if [ "$cpus" -gt 1 ]; then
        [ "$(cells status)" = skipped ]
        [ -n "$(cells reason)" ]
    fi
}

@test "levels: by the working set of a thread against the caches that hwloc sees" {
    HWLOC_SYNTHETIC=$two_nodes memory --op write --size 16K,512K,4M,16M
    [ "$(cells level_used | paste -sd ' ')" = "L1 L2 L3 DRAM" ]
    HWLOC_SYNTHETIC="pack:1 core:2 pu:1" memory --op write --size 16K
    [ "$(cells level_used)" = "" ]
}

@test "nodes: remote memory is bound to the other node, or the row says why not" {
    HWLOC_SYNTHETIC=$two_nodes exits 0 memory --op write --size 64K --node 0 --memory-node local,remote,1
    [ "$(cells memory_node | paste -sd ' ')" = "local remote 1" ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    HWLOC_SYNTHETIC="pack:1 core:2 pu:1" exits 0 memory --op write --size 64K --memory-node remote
    row skipped 'one NUMA node'
    warned 2 'NUMA node 4711' memory --op write --size 64K --node 4711
    exits 0 memory --op write --size 64K --node 4711 --planned # of a run: the suite is of a larger machine
    [ "$(cells status)" = skipped ]
    warned 2 "'nowhere' * local *remote" memory --op write --size 64K --memory-node nowhere
}

@test "isa: every unit that is here gives right results, one that is not is skipped" {
    for isa in avx512 avx2 sse2 neon generic; do
        exits 0 memory --op triad,copy --size 32K --isa $isa
        if [ "$(cells status | head -n 1)" = skipped ]; then
            [[ $(cells reason | head -n 1) == *"'$isa'"* ]]
        else
            [ "$(cells isa | sort -u)" = $isa ]
        fi
    done
    memory --op triad --size 32K --isa generic --stores nt
    [ "$(cells status)" = skipped ]
}

@test "wrong data: found in every operation, exit 1" {
    for op in read write copy scale add triad latency; do
        exits 1 memory --op $op --size 256K --inject corrupt
        alike status wrong code wrong-data
    done
}

@test "memory: a size beyond what there is is skipped, not tried" {
    exits 0 memory --op write --size 4096T
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == *[0-9]" MiB"* ]]
}
