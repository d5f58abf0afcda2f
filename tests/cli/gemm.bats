#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-gemm from outside: its rows, its limits, and what it says where it cannot run.

load rows
load gemm

@test "rows: one for each type and shape, with m, n, k, and a limit that holds" {
    needs_library onednn openblas
    exits 0 gemm --dtype f32,f64,int8 --shape 64x96x128,33x17x65
    [ "$(cells m | sort -u | paste -sd ' ')" = "33 64" ]
    [ "$(cells n | sort -u | paste -sd ' ')" = "17 96" ]
    [ "$(cells k | sort -u | paste -sd ' ')" = "128 65" ]
    [ "$(cells dtype | paste -sd ' ')" = "f32 f32 f64 f64 int8 int8" ]
    [ "$(cells library_used | paste -sd ' ')" = "onednn onednn openblas openblas onednn onednn" ]
    [ "$(cells accumulate | paste -sd ' ')" = "f32 f32 f64 f64 s32 s32" ]
    [ "$(cells unit | paste -sd ' ')" = "TFLOP/s TFLOP/s TFLOP/s TFLOP/s TOP/s TOP/s" ]
    [ "$(cells limit_kind | sort -u)" = measured ]
    [ "$(cells kernel | grep -c '^[0-9]*[.][0-9]')" -eq 6 ]
    cells percent_of_limit | awk '!($1 > 0 && $1 < 103) { exit 1 }'
    cells value | awk '!($1 > 0) { exit 1 }'
}

@test "a spoiled result is wrong: status, reason, exit 1" {
    needs_library onednn openblas
    exits 1 gemm --dtype f32,f64,int8 --size 40 --inject entry
    [ "$(cells status | sort -u)" = wrong ]
    [ "$(cells reason | grep -c '1 of 1024 .*C\[0\]\[0\]')" -eq 3 ]
}

@test "a library that is not there: a skipped row that says so, exit 0" {
    exits 0 gemm --dtype f32 --size 32 --library onednn,openblas --onednn-file /nowhere/libdnnl.so --openblas-file /nowhere/libopenblas.so
    [ "$(cells status | paste -sd ' ')" = "skipped skipped" ]
    [ "$(cells value | tr -d '\n')" = "" ]
    [ "$(cells m | paste -sd ' ')" = "32 32" ]
    cells reason | grep -q "'/nowhere/libdnnl.so'"
    cells reason | grep -q "'/nowhere/libopenblas.so'"
}

@test "a library of the bundle that does not load: said, and the machine's own does not stand in" {
    needs_library openblas
    echo "no library" >"$BATS_TEST_TMPDIR/plumb-libopenblas.so.0"
    LD_LIBRARY_PATH=$BATS_TEST_TMPDIR gemm --dtype f32 --size 32 --library openblas
    row skipped "plumb-libopenblas.so.0"
}

@test "more threads than CPUs are refused, not crowded" {
    needs_library onednn
    exits 2 gemm --dtype f32 --size 32 --threads $((cpus + 1))
    [ ! -s "$out" ]
    grep -q "$((cpus + 1)) threads .* $cpus CPUs" "$err"
    exits 2 gemm --dtype f32 --size 32 --threads 1,$((cpus + 1)) # before anything is measured
    [ ! -s "$out" ]
}

@test "sizes and shapes: one or the other; nonsense is refused" {
    exits 2 gemm --dtype f32 --size 32 --shape 8x8x8
    warned 2 "'8x8'*MxNxK" gemm --shape 8x8
    exits 2 gemm --size 0
    gemm --dtype int8 --shape 4x4x140000
    row skipped 'overflow'
}

@test "a problem that does not fit into memory is skipped, not tried" {
    exits 0 gemm --dtype f64 --size 4000000
    row skipped 'needs * GB of memory'
}

@test "without --dtype: what CPUs multiply, and nothing that they do not" {
    gemm --size 16
    [ "$(cells dtype | paste -sd ' ')" = "f32 f64 bf16 int8" ]
    exits 0 gemm --size 16 --dtype f16
    row skipped "f16 *--device cuda"
}
