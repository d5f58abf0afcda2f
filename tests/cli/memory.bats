#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb-memory from outside: its rows, what it counts, its evidence, and what it says where it cannot run.

load rows

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=build/bin/plumb-memory
    quick="--csv --budget 30ms --warmup 10ms --threads 1"
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
    cpus=$(nproc)
    # A machine of two nodes with four cores each, as far as hwloc tells.
    two_nodes="pack:2 [numa(memory=8GB)] l3:1(size=8388608) l2:4(size=1048576) l1:1(size=32768) core:1 pu:1"
}

# memory ARGUMENTS...: runs the benchmark; sets status, and leaves stdout and stderr in $out and $err.
memory()
{
    status=0
    # shellcheck disable=SC2086 # quick is several words
    "$bin" $quick "$@" >"$out" 2>"$err" </dev/null || status=$?
}

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
    memory --op read,write,copy,scale,add,triad --dtype f32,f64 --size 64K
    [ "$status" -eq 0 ]
    [ "$(cells op | uniq | paste -sd ' ')" = "read write copy scale add triad" ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    [ "$(cells metric | sort -u)" = bandwidth ]
    [ "$(cells unit | sort -u)" = GB/s ]
    [ "$(cells bytes_rule | sort -u)" = stream ]
    [ "$(cells limit_source | grep -c '^measured: best loads')" -eq 8 ]
    [ "$(cells limit_source | grep -c '^reference: best loads at')" -eq 2 ]
    [ "$(cells limit_source | grep -c '^reference: best stores at')" -eq 2 ]
    cells value | awk '!($1 > 0) { exit 1 }'
    cells limit | awk '!($1 > 0) { exit 1 }'
    # One measurement for one size, R of loads and W of stores: (r + w) / max((r + fill) / R, w / W); only a row that beat it may have more. A row
    # measures again when it ends: where the machine jumped between two levels meanwhile, this run cannot tell, another may.
    limits_agree || { memory --op read,write,copy,scale,add,triad --dtype f32 --size 64K && limits_agree; } ||
        { memory --op read,write,copy,scale,add,triad --dtype f32 --size 64K && limits_agree; }
}

@test "latency: nanoseconds of one dependent load, rising with the size, no limit" {
    memory --op latency --size 16K,64M --threads 0
    [ "$status" -eq 0 ]
    [ "$(cells metric | paste -sd ' ')" = "latency latency_page_by_page latency latency_page_by_page" ]
    [ "$(cells unit | sort -u)" = ns ]
    [ "$(cells threads | sort -u)" = 1 ]
    [ "$(cells dtype | sort -u)" = "" ]
    [ "$(cells limit | sort -u)" = "" ]
    cells value | awk 'NR == 1 { l1 = $1 } NR == 3 { far = $1 } END { exit !(l1 > 0.1 && far > 3 * l1) }'
    [ "$(cells hardware_pages | head -n 1)" = "" ] # too little memory to tell
}

@test "latency: pages of 4 KiB are told as the hardware's" {
    memory --op latency --size 128M --pages base
    [ "$status" -eq 0 ]
    [[ $(cells hardware_pages | sort -u) =~ ^(small)?$ ]] # a machine too busy to tell says nothing
}

@test "latency: a chain that is no match for the last cache, or shorter than asked, says so" {
    HWLOC_SYNTHETIC=$two_nodes memory --op latency --size 64M,512M
    [ "$status" -eq 0 ]
    [[ $(cells reason | head -n 1) == *"the chain is 4 times the last cache"* ]]
    [[ $(cells reason | tail -n 1) != *"times the last cache"* ]]
}

@test "latency alone has sizes up to 16 times the last cache, bandwidth up to 4 times" {
    HWLOC_SYNTHETIC=$two_nodes "$bin" --describe --op latency >"$out"
    grep -q '"name": "size", .*, "268435456"\]' "$out"
    HWLOC_SYNTHETIC=$two_nodes "$bin" --describe --op latency,read >"$out"
    grep -q '"name": "size", .*, "67108864"\]' "$out"
}

@test "stores: whether the lines that are written are read before is a column" {
    memory --op triad --stores regular,nt --size 64M
    [ "$status" -eq 0 ]
    [ "$(cells stores | paste -sd ' ')" = "regular nt" ]
    if [ "$(cells level | sort -u)" != "" ]; then
        [ "$(cells write_allocate | paste -sd ' ')" = "yes no" ]
    fi
    HWLOC_SYNTHETIC=$two_nodes memory --op copy --size 16K
    [ "$(cells write_allocate)" = no ] # in the first-level cache the line is there
    memory --op read,write --stores regular,nt --size 64K
    [ "$(cells op | paste -sd ' ')" = "read write write" ] # what stores nothing is measured once
    [ "$(cells stores | paste -sd ,)" = ",regular,nt" ]
    [ "$(cells write_allocate | head -n 1)" = no ]
    for op in read latency read,latency; do
        memory --op $op --stores nt --size 64K
        [ "$status" -eq 2 ]
        grep -q "option '--stores' does not apply here: it is for operations of the host that store; leave it out" "$err"
    done
    memory --op read,copy --stores nt --size 64K
    [ "$status" -eq 0 ]
    [ "$(cells status | head -n 1)" = skipped ]
    [[ $(cells reason | head -n 1) == "--stores does not apply here"* ]]
}

@test "working_set: what the arrays really hold, never more than asked" {
    memory --op triad,copy,write --size 100000
    [ "$status" -eq 0 ]
    cells working_set | awk '!($1 <= 100000 && $1 > 98000) { exit 1 }'
    memory --op triad --size 1024 --threads 2
    if [ "$cpus" -gt 1 ]; then
        [ "$(cells status)" = skipped ]
        [[ $(cells reason) == *"less than one block"* ]]
    fi
}

@test "threads: 0 is one a core, and the row says how many" {
    memory --op write --size 1M --threads 0
    [ "$status" -eq 0 ]
    cells threads | awk -v cpus="$cpus" '!($1 >= 1 && $1 <= cpus) { exit 1 }'
    memory --op write --size 1M --threads 60000
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == *"60000 threads"* ]]
    memory --op latency --size 1M --threads 2
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == *"--threads 1"* ]]
}

@test "pages: evidence of what was given, and a remark where it is not what was asked" {
    memory --op write --size 8M --pages base,thp
    [ "$status" -eq 0 ]
    [[ $(cells evidence | head -n 1) == *" 0 % on huge pages"* ]]
    if grep -q '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled; then
        [[ $(cells reason | tail -n 1) == *"asked for 'thp' pages, but only 0 %"* ]]
    else
        [[ $(cells evidence | tail -n 1) == *"% on huge pages"* ]]
    fi
    memory --op write --size 8M --pages hugetlb
    if [ "$(cat /proc/sys/vm/nr_hugepages)" -eq 0 ]; then
        [ "$(cells status)" = skipped ]
        [[ $(cells reason) == *"vm.nr_hugepages"* ]]
    fi
}

# without_huge_pages: a program in $BATS_TEST_TMPDIR that runs another one to which the kernel gives none.
without_huge_pages()
{
    command -v "${CC:-cc}" >/dev/null || skip "no compiler"
    cat >"$BATS_TEST_TMPDIR/small.c" <<'END'
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    return argc > 1 ? execv(argv[1], argv + 1) : 1;
}
END
    "${CC:-cc}" -o "$BATS_TEST_TMPDIR/small" "$BATS_TEST_TMPDIR/small.c"
    wrapper=$BATS_TEST_TMPDIR/small
}

@test "pages: huge ones that are not given are missed" {
    without_huge_pages
    # shellcheck disable=SC2086 # quick is several words
    "$wrapper" "$bin" $quick --op write,latency --size 8M --pages thp >"$out"
    [ "$(cells evidence | grep -c ' 0 % on huge pages')" -eq 3 ] # latency has two rows
    [ "$(cells reason | grep -c "asked for 'thp' pages, but only 0 %")" -eq 3 ]
    # shellcheck disable=SC2086 # quick is several words
    "$wrapper" build/bin/plumb-copy --csv --budget 30ms --engine memcpy --size 4M --memory huge >"$out"
    [[ $(cells reason) == *"asked for huge pages, but only 0 % of the source"* ]]
    [[ $(cells reason) == *"asked for huge pages, but only 0 % of the destination"* ]]
}

@test "levels: by the working set of a thread against the caches that hwloc sees" {
    HWLOC_SYNTHETIC=$two_nodes memory --op write --size 16K,512K,4M,16M
    [ "$(cells level | paste -sd ' ')" = "L1 L2 L3 DRAM" ]
    HWLOC_SYNTHETIC="pack:1 core:2 pu:1" memory --op write --size 16K
    [ "$(cells level)" = "" ]
}

@test "level: chooses a size that this level serves, on machines with other caches another one" {
    # A thread has 32 KiB of L1, 1 MiB of L2 and, of an L3 for two, 4 MiB.
    HWLOC_SYNTHETIC=$two_nodes memory --op write --level L1,L2,L3,DRAM
    [ "$(cells level | paste -sd ' ')" = "L1 L2 L3 DRAM" ]
    [ "$(cells working_set | paste -sd ' ')" = "16384 262144 4194304 67108864" ]
    [ "$(cells size | sort -u)" = "" ] # it is no size that somebody named
    HWLOC_SYNTHETIC=$two_nodes memory --op latency --level L2
    [ "$(cells working_set | sort -u)" = 262144 ]
    # Three quarters of this L2 are less than 1.5 times its L1.
    HWLOC_SYNTHETIC="pack:1 l2:1(size=40960) l1:1(size=32768) core:1 pu:1" memory --op write --level L2
    [ "$status" -eq 0 ]
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == "no size is served by L2 alone: a thread has 40K of it, and 32K of L1"* ]]
    HWLOC_SYNTHETIC=$two_nodes memory --op write --level L4
    [[ $(cells reason) == "no L4 cache is visible here" ]]
    HWLOC_SYNTHETIC="pack:1 core:2 pu:1" memory --op write --level DRAM
    [[ $(cells reason) == *"no cache is visible: this size is taken to be far beyond the last one"* ]]
    [ "$(cells level)" = "" ]
    memory --op write --level L2 --size 1M
    [ "$status" -eq 2 ]
    grep -q "'--size' does not apply here: it is for points without --level, which chooses the size" "$err"
}

@test "sizes: by default from 16K to 4 times the last caches together" {
    HWLOC_SYNTHETIC=$two_nodes "$bin" --describe >"$out"
    grep -q '"name": "size", .*\["16384", "32768", .*, "67108864"\]' "$out"
}

@test "nodes: remote memory is bound to the other node, or the row says why not" {
    HWLOC_SYNTHETIC=$two_nodes memory --op write --size 64K --node 0 --memory-node local,remote,1
    [ "$status" -eq 0 ]
    [ "$(cells memory_node | paste -sd ' ')" = "local remote 1" ]
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    HWLOC_SYNTHETIC="pack:1 core:2 pu:1" memory --op write --size 64K --memory-node remote
    [ "$status" -eq 0 ]
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == *"one NUMA node"* ]]
    memory --op write --size 64K --node 4711
    [ "$(cells status)" = skipped ]
    memory --op write --size 64K --memory-node nowhere
    [ "$status" -eq 2 ]
    grep -q "'nowhere' is not a node: a number or local or remote" "$err"
}

@test "nodes: the memory really is bound to the node that is named" {
    # hwloc believes in two nodes and asks the system for the second one.
    HWLOC_THISSYSTEM=1 HWLOC_SYNTHETIC=$two_nodes memory --op write,latency --size 64K --memory-node 1
    for row in 1 2; do
        if [ "$(cells status | sed -n ${row}p)" = failed ]; then
            [[ $(cells reason | sed -n ${row}p) == *"memory cannot be bound to node 1"* ]]
        else
            [[ $(cells evidence | sed -n ${row}p) == *"node1 "* ]]
        fi
    done
}

@test "isa: every unit that is here gives right results, one that is not is skipped" {
    for isa in avx512 avx2 sse2 neon generic; do
        memory --op triad,copy --size 32K --isa $isa
        [ "$status" -eq 0 ]
        if [ "$(cells status | head -n 1)" = skipped ]; then
            [[ $(cells reason | head -n 1) == *"this CPU has no '$isa'"* ]]
        else
            [ "$(cells isa | sort -u)" = $isa ]
        fi
    done
    memory --op triad --size 32K --isa generic --stores nt
    [ "$(cells status)" = skipped ]
}

@test "wrong data: found in every operation, exit 1" {
    for op in read write copy scale add triad latency; do
        memory --op $op --size 256K --inject corrupt
        [ "$status" -eq 1 ]
        [ "$(cells status | sort -u)" = wrong ]
        [[ $(cells reason) == *"wrong data"* ]]
    done
}

@test "memory: a size beyond what there is is skipped, not tried" {
    memory --op write --size 4096T
    [ "$status" -eq 0 ]
    [ "$(cells status)" = skipped ]
    [[ $(cells reason) == *"not enough memory"* ]]
}
