#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb-gemm from outside: its rows, its limits, and what it says where it cannot run.

load rows
load gemm

@test "the affinity mask is respected, and threads run where the row says: default threads, CPUs, CPU time on each" {
    needs_library onednn openblas
    last=$(awk '/Cpus_allowed_list/ { n = split($2, part, /[,-]/); print part[n] }' /proc/self/status)
    taskset -c "$last" "$bin" --csv --budget 300ms --warmup 100ms --dtype f32 --library onednn,openblas --size 256 >"$out"
    [ "$(cells threads_used | sort -u)" = 1 ]
    [ "$(cells cpus | sort -u)" = "$last" ]
    [ "$(cells evidence | grep -c "^CPU time on $last: 0[.][0-9]*[1-9]")" -eq 2 ]
    [ "$cpus" -ge 2 ] || skip "one CPU"
    "$bin" --csv --budget 300ms --warmup 100ms --dtype f32 --library onednn,openblas --size 512 --threads 2 >"$out"
    [ "$(cells evidence | grep -c '^CPU time on [0-9,-]*: 0[.][0-9]*[1-9]')" -eq 2 ]
}

@test "lesser kernels of OpenBLAS are told, with the variable that chooses better ones" {
    needs_library openblas
    grep -q avx512vl /proc/cpuinfo || skip "needs a CPU with AVX-512"
    # shellcheck disable=SC2030 # each test is a subshell of its own
    export OPENBLAS_CORETYPE=Haswell
    exits 0 gemm --dtype f64 --library openblas --size 96
    cells kernel | grep -q ' Haswell$'
    cells reason | grep -q "'Haswell' kernels .*avx512.*OPENBLAS_CORETYPE=SKYLAKEX"
    export OPENBLAS_CORETYPE=SKYLAKEX
    gemm --dtype f64 --library openblas --size 96
    cells kernel | grep -q ' SkylakeX$'
    [ "$(cells reason | grep -c kernels)" -eq 0 ]
}

@test "variables that steer a library are named in its rows, and in no other's" {
    needs_library onednn openblas
    grep -q avx512vl /proc/cpuinfo || skip "needs a CPU with AVX-512"
    unset "${!OPENBLAS_@}" "${!GOTO_@}" "${!DNNL_@}" "${!ONEDNN_@}" "${!MKL_@}" "${!OMP_@}" "${!GOMP_@}"
    # shellcheck disable=SC2030,SC2031 # each test is a subshell of its own
    export OPENBLAS_CORETYPE=Haswell DNNL_MAX_CPU_ISA=AVX2 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    exits 0 gemm --dtype f32 --library onednn,openblas --size 96
    [[ $(cells reason | sed -n 1p) == *"onednn: DNNL_MAX_CPU_ISA=AVX2"* ]]
    [[ $(cells reason | sed -n 2p) == *"openblas: OPENBLAS_CORETYPE=Haswell"* ]]
    [ "$(cells reason | grep -c NUM_THREADS)" -eq 0 ]
    unset OPENBLAS_CORETYPE DNNL_MAX_CPU_ISA
    gemm --dtype f32 --library onednn,openblas --size 96
    [ "$(cells reason | grep -c environment)" -eq 0 ]
}

@test "zeros are a column, and their product is checked" {
    needs_library onednn
    exits 0 gemm --dtype f32,int8 --data random,zeros --size 40
    [ "$(cells data | paste -sd ' ')" = "random zeros random zeros" ]
    gemm --dtype f32 --data zeros --size 40 --inject entry
    [ "$(cells status)" = wrong ]
    [ -n "$(cells reason)" ]
}

@test "the search ends with a shape, says why it stopped, and measures it" {
    needs_library onednn
    exits 0 gemm --dtype f32 --search 500ms
    cells reason | grep -q 'best of [1-9][0-9]* .* [0-9.]* s; '
    [ "$(cells m)" -ge 256 ]
    cells value | awk '!($1 > 0) { exit 1 }'
    warned 2 '--search' gemm --dtype f32 --search 500ms --shape 8x8x8
}
