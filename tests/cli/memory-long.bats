#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2086,SC2154 # of variables that the files of this name share
# plumb-memory from outside: its rows, what it counts, its evidence, and what it says where it cannot run.

load rows
load memory

@test "stores: whether the lines that are written are read before is a column" {
    exits 0 memory --op triad --stores regular,nt --size 64M
    [ "$(cells stores | paste -sd ' ')" = "regular nt" ]
    if [ "$(cells level_used | sort -u)" != "" ]; then
        [ "$(cells write_allocate | paste -sd ' ')" = "yes no" ]
    fi
    HWLOC_SYNTHETIC=$two_nodes memory --op copy --size 16K
    [ "$(cells write_allocate)" = no ] # in the first-level cache the line is there
    memory --op read,write --stores regular,nt --size 64K
    [ "$(cells op | paste -sd ' ')" = "read write write" ] # what stores nothing is measured once
    [ "$(cells stores | paste -sd ,)" = ",regular,nt" ]
    [ "$(cells write_allocate | head -n 1)" = no ]
    for op in read latency read,latency; do
        warned 2 "'--stores' " memory --op $op --stores nt --size 64K
    done
    exits 0 memory --op read,copy --stores nt --size 64K
    [ "$(cells status | head -n 1)" = skipped ]
    [[ $(cells reason | head -n 1) == "--stores "* ]]
}

@test "threads: 0 is one a core, and the row says how many" {
    exits 0 memory --op write --size 1M --threads 0
    cells threads_used | awk -v cpus="$cpus" '!($1 >= 1 && $1 <= cpus) { exit 1 }'
}

@test "pages: evidence of what was given, and a remark where it is not what was asked" {
    exits 0 memory --op write --size 8M --pages base,thp
    [[ $(cells evidence | head -n 1) == *" 0 % on huge pages"* ]]
    if grep -q '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled; then
        [[ $(cells reason | tail -n 1) == *"'thp' "*" 0 %"* ]]
    else
        [[ $(cells evidence | tail -n 1) == *"% on huge pages"* ]]
    fi
    memory --op write --size 8M --pages hugetlb
    if [ "$(cat /proc/sys/vm/nr_hugepages)" -eq 0 ]; then
        row skipped vm.nr_hugepages
    fi
}

@test "pages: huge ones that are not given are missed" {
    no_huge_pages
    under=$small memory --op write,latency --size 8M --pages thp
    [ "$(cells evidence | grep -c ' 0 % on huge pages')" -eq 3 ] # latency has two rows
    [ "$(cells reason | grep -c "'thp' .* 0 %")" -eq 3 ]
    "$small" "${PLUMB_BIN:-build/bin}/plumb-copy" --csv --budget 30ms --engine memcpy --size 4M --memory huge >"$out"
    [[ $(cells reason) == *" 0 % of "*source*" 0 % of "*destination* ]]
}

@test "level: chooses a size that this level serves, on machines with other caches another one" {
    # A thread has 32 KiB of L1, 1 MiB of L2 and, of an L3 for two, 4 MiB.
    HWLOC_SYNTHETIC=$two_nodes memory --op write --level L1,L2,L3,DRAM
    [ "$(cells level_used | paste -sd ' ')" = "L1 L2 L3 DRAM" ]
    [ "$(cells working_set | paste -sd ' ')" = "16384 262144 4194304 67108864" ]
    [ "$(cells size | paste -sd ' ')" = "16384 262144 4194304 67108864" ]
    HWLOC_SYNTHETIC=$two_nodes memory --op latency --level L2
    [ "$(cells working_set | sort -u)" = 262144 ]
    # Three quarters of this L2 are less than 1.5 times its L1.
    HWLOC_SYNTHETIC="pack:1 l2:1(size=40960) l1:1(size=32768) core:1 pu:1" exits 0 memory --op write --level L2
    row skipped 'L2 * 40K * 32K of L1'
    HWLOC_SYNTHETIC=$two_nodes memory --op write --level L4
    [[ $(cells reason) == *"L4 cache"* ]]
    HWLOC_SYNTHETIC="pack:1 core:2 pu:1" memory --op write --level DRAM
    [[ $(cells reason) == *"no cache "* ]]
    [ "$(cells level) $(cells level_used)" = "DRAM " ]
    warned 2 "'--size' *--level" memory --op write --level L2 --size 1M
}

@test "nodes: the memory really is bound to the node that is named" {
    # hwloc believes in two nodes and asks the system for the second one.
    HWLOC_THISSYSTEM=1 HWLOC_SYNTHETIC=$two_nodes memory --op write,latency --size 64K --memory-node 1
    for row in 1 2; do
        if [ "$(cells status | sed -n ${row}p)" = failed ]; then
            [[ $(cells reason | sed -n ${row}p) == *" node 1"* ]]
        else
            [[ $(cells evidence | sed -n ${row}p) == *"node1 "* ]]
        fi
    done
}
