#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The benchmarks of several threads, built with ThreadSanitizer: each runs short, and every report fails the file
# (scripts/run-tests). What is measured counts for nothing here; rows must be good.

bats_require_minimum_version 1.5.0
load ../cli/rows

# Where the kernel spreads addresses more than the sanitizer can take (vm.mmap_rnd_bits), it runs without that.
setup() {
    bin=${PLUMB_BIN:-$PWD/build-tsan/bin} out=$BATS_TEST_TMPDIR/out by=()
    [[ -x $bin/plumb-net ]] || skip 'not built: make SAN=thread'
    TSAN_OPTIONS='' "$bin/plumb-net" --version >"$BATS_TEST_TMPDIR/said" 2>&1 && return
    by=(setarch -R)
    TSAN_OPTIONS='' setarch -R "$bin/plumb-net" --version >>"$BATS_TEST_TMPDIR/said" 2>&1 ||
        skip "ThreadSanitizer does not start here: $(head -n 1 "$BATS_TEST_TMPDIR/said")"
}

# races BENCHMARK OPTIONS: all data are good. Signs of life go twice a second, so each case takes a second.
races() {
    local status=0
    timeout 600 ${by[@]+"${by[@]}"} "$bin/plumb-$1" --csv --budget 1s --warmup 10ms --min-samples 1000 --max-samples 100000 "${@:2}" \
        >"$out" 2>"$out.err" || status=$?
    cat "$out.err" && cut -c 1-300 "$out"
    [ "$status" -eq 0 ] || return
    [ "$(cells status | grep -cE 'ok|noisy')" -gt 0 ] || return
    [ "$(cells status | grep -cE 'wrong|failed|skipped')" -eq 0 ]
}

@test "net: streams both ways over several threads, pings, and both together" {
    races net --transport tcp --pattern bandwidth --direction both --size 64K --streams 4 --threads 2 --mode epoll
    races net --transport tcp --pattern bandwidth --size 64K --streams 2
    races net --transport shm --pattern bandwidth --size 64K
    races net --transport tcp,shm --pattern latency --size 8
    races net --transport tcp --pattern loaded-latency --size 8
}

@test "memory: threads that stream, and one that chases" {
    races memory --threads 2 --op triad,read --size 4M
    races memory --op latency --size 1M
}

@test "allreduce: ranks over shared memory and sockets, beside work of their own" {
    races allreduce --np 3 --ranks 3 --size 64K --backend ring,halving,doubling
    races allreduce --np 2 --ranks 2 --size 64K --transport tcp
    races allreduce --np 2 --ranks 2 --size 64K --overlap
}

@test "step: ranks whose thread for collectives runs beside the one that computes" {
    printf '%s\n' 'unit,sample' 'block,layer,parameters,m,n,k,output' '0..3,dense.{},5000,1,100,100,100' >"$BATS_TEST_TMPDIR/model.csv"
    races step --np 2 --ranks 2 --batch 4 --overlap backward --compute-time 1ms --model "$BATS_TEST_TMPDIR/model.csv"
    races step --np 2 --ranks 2 --batch 4 --overlap none --compute product --model "$BATS_TEST_TMPDIR/model.csv"
}
