#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb-gemm from outside: its rows, its limits, and what it says where it cannot run.

load rows

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=build/bin/plumb-gemm
    quick="--csv --budget 60ms --warmup 20ms"
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
    cpus=$(nproc)
}

# gemm ARGUMENTS...: runs the benchmark; sets status, and leaves stdout and stderr in $out and $err.
gemm()
{
    status=0
    # shellcheck disable=SC2086 # quick is several words
    "$bin" $quick "$@" >"$out" 2>"$err" </dev/null || status=$?
}

needs_library()
{
    local name
    for name; do
        "$bin" --describe | grep -q "{\"name\": \"$name\", \"state\": \"present" || skip "$name is not here"
    done
}

@test "rows: one for each type and shape, with m, n, k, and a limit that holds" {
    needs_library onednn openblas
    gemm --dtype f32,f64,int8 --shape 64x96x128,33x17x65
    [ "$status" -eq 0 ]
    [ "$(cells m | sort -u | paste -sd ' ')" = "33 64" ]
    [ "$(cells n | sort -u | paste -sd ' ')" = "17 96" ]
    [ "$(cells k | sort -u | paste -sd ' ')" = "128 65" ]
    [ "$(cells dtype | paste -sd ' ')" = "f32 f32 f64 f64 int8 int8" ]
    [ "$(cells library | paste -sd ' ')" = "onednn onednn openblas openblas onednn onednn" ]
    [ "$(cells accumulate | paste -sd ' ')" = "f32 f32 f64 f64 s32 s32" ]
    [ "$(cells unit | paste -sd ' ')" = "TFLOP/s TFLOP/s TFLOP/s TFLOP/s TOP/s TOP/s" ]
    [ "$(cells limit_source | grep -c '^measured: ')" -eq 6 ]
    [ "$(cells kernel | grep -c '^[0-9]*[.][0-9]')" -eq 6 ]
    cells percent_of_limit | awk '!($1 > 0 && $1 < 103) { exit 1 }'
    cells value | awk '!($1 > 0) { exit 1 }'
}

@test "sizes: squares, a range" {
    needs_library onednn
    gemm --dtype f32 --size 16..64
    [ "$status" -eq 0 ]
    [ "$(cells m | paste -sd ' ')" = "16 32 64" ]
    [ "$(cells n | paste -sd ' ')" = "16 32 64" ]
    [ "$(cells k | paste -sd ' ')" = "16 32 64" ]
}

@test "f32 is measured by both libraries" {
    needs_library onednn openblas
    gemm --dtype f32 --library onednn,openblas --size 64
    [ "$status" -eq 0 ]
    [ "$(cells library | paste -sd ' ')" = "onednn openblas" ]
    cells value | awk '!($1 > 0) { exit 1 }'
}

@test "a spoiled result is wrong: status, reason, exit 1" {
    needs_library onednn openblas
    gemm --dtype f32,f64,int8 --size 40 --inject entry
    [ "$status" -eq 1 ]
    [ "$(cells status | sort -u)" = wrong ]
    [ "$(cells reason | grep -c '1 of 1024 entries are wrong: C\[0\]\[0\]')" -eq 3 ]
}

@test "a library that is not there: a skipped row that says so, exit 0" {
    gemm --dtype f32 --size 32 --library onednn,openblas --onednn-file /nowhere/libdnnl.so --openblas-file /nowhere/libopenblas.so
    [ "$status" -eq 0 ]
    [ "$(cells status | paste -sd ' ')" = "skipped skipped" ]
    [ "$(cells value | tr -d '\n')" = "" ]
    [ "$(cells m | paste -sd ' ')" = "32 32" ]
    cells reason | grep -q "cannot open library '/nowhere/libdnnl.so'"
    cells reason | grep -q "cannot open library '/nowhere/libopenblas.so'"
}

@test "what a library does not serve is skipped with a hint" {
    gemm --dtype f64 --library onednn --size 32
    [ "$status" -eq 0 ]
    [ "$(cells status)" = skipped ]
    cells reason | grep -q 'onednn has no f64 product: take --library openblas'
}

@test "more threads than CPUs are refused, not crowded" {
    needs_library onednn
    gemm --dtype f32 --size 32 --threads $((cpus + 1))
    [ "$(cells status)" = skipped ]
    cells reason | grep -q "$((cpus + 1)) threads asked for, $cpus CPUs usable"
}

@test "the affinity mask is respected: default threads, CPUs, evidence" {
    needs_library onednn openblas
    last=$(awk '/Cpus_allowed_list/ { n = split($2, part, /[,-]/); print part[n] }' /proc/self/status)
    status=0
    taskset -c "$last" "$bin" --csv --budget 300ms --warmup 100ms --dtype f32 --library onednn,openblas --size 256 >"$out" || status=$?
    [ "$status" -eq 0 ]
    [ "$(cells threads | sort -u)" = 1 ]
    [ "$(cells cpus | sort -u)" = "$last" ]
    [ "$(cells evidence | grep -c "^CPU time on $last: 0[.][0-9]*[1-9]")" -eq 2 ]
}

@test "threads run where the row says: CPU time on each" {
    needs_library onednn openblas
    [ "$cpus" -ge 2 ] || skip "one CPU"
    status=0
    "$bin" --csv --budget 300ms --warmup 100ms --dtype f32 --library onednn,openblas --size 512 --threads 2 >"$out" || status=$?
    [ "$status" -eq 0 ]
    [ "$(cells evidence | grep -c '^CPU time on [0-9,-]*: 0[.][0-9]*[1-9]')" -eq 2 ]
}

@test "lesser kernels of OpenBLAS are told, and the better ones measured beside them" {
    needs_library openblas
    grep -q avx512vl /proc/cpuinfo || skip "needs a CPU with AVX-512"
    # shellcheck disable=SC2030 # each test is a subshell of its own
    export OPENBLAS_CORETYPE=Haswell
    gemm --dtype f64 --library openblas,openblas-best --size 96
    [ "$status" -eq 0 ]
    cells kernel | head -1 | grep -q ' Haswell$'
    cells reason | head -1 | grep -q "'Haswell' kernels .*avx512.*openblas-best"
    cells kernel | tail -1 | grep -q ' SkylakeX$'
    [ "$(cells reason | tail -1 | grep -c Haswell)" -eq 0 ]
}

@test "variables that steer a library are named in its rows, and in no other's" {
    needs_library onednn openblas
    grep -q avx512vl /proc/cpuinfo || skip "needs a CPU with AVX-512"
    unset "${!OPENBLAS_@}" "${!GOTO_@}" "${!DNNL_@}" "${!ONEDNN_@}" "${!MKL_@}" "${!OMP_@}" "${!GOMP_@}"
    # shellcheck disable=SC2030,SC2031 # each test is a subshell of its own
    export OPENBLAS_CORETYPE=Haswell DNNL_MAX_CPU_ISA=AVX2 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    gemm --dtype f32 --library onednn,openblas,openblas-best --size 96
    [ "$status" -eq 0 ]
    [[ $(cells reason | sed -n 1p) == *"environment variables affect onednn: DNNL_MAX_CPU_ISA=AVX2"* ]]
    [[ $(cells reason | sed -n 2p) == *"environment variables affect openblas: OPENBLAS_CORETYPE=Haswell"* ]]
    [ "$(cells reason | sed -n 3p | grep -c environment)" -eq 0 ]
    [ "$(cells reason | grep -c NUM_THREADS)" -eq 0 ]
    unset OPENBLAS_CORETYPE DNNL_MAX_CPU_ISA
    gemm --dtype f32 --library onednn,openblas --size 96
    [ "$(cells reason | grep -c environment)" -eq 0 ]
}

@test "sizes and shapes: one or the other; nonsense is refused" {
    gemm --dtype f32 --size 32 --shape 8x8x8
    [ "$status" -ne 0 ]
    gemm --shape 8x8
    [ "$status" -eq 2 ]
    grep -q "'8x8' is not MxNxK" "$err"
    gemm --size 0
    [ "$status" -eq 2 ]
    gemm --dtype int8 --shape 4x4x140000
    [ "$(cells status)" = skipped ]
    cells reason | grep -q 'overflow'
}

@test "a problem that does not fit into memory is skipped, not tried" {
    gemm --dtype f64 --size 4000000
    [ "$status" -eq 0 ]
    [ "$(cells status)" = skipped ]
    cells reason | grep -q 'needs .* GB of memory'
}

@test "plumb list's question: which libraries are here" {
    "$bin" --describe >"$out"
    [ "$(grep -Ec '"name": "(onednn|openblas|openblas-best)", "state": "(present", "version|absent", "why)": "' "$out")" -eq 3 ]
}

@test "without --dtype: what CPUs multiply, and nothing that they do not" {
    gemm --size 16
    [ "$(cells dtype | paste -sd ' ')" = "f32 f64 bf16 int8" ]
    gemm --size 16 --dtype f16
    [ "$status" -eq 0 ]
    [ "$(cells status)" = skipped ]
    cells reason | grep -q "no library for the host's CPUs has f16 products: take --device cuda"
}

@test "zeros are a column, and their product is checked" {
    needs_library onednn
    gemm --dtype f32,int8 --data random,zeros --size 40
    [ "$status" -eq 0 ]
    [ "$(cells data | paste -sd ' ')" = "random zeros random zeros" ]
    gemm --dtype f32 --data zeros --size 40 --inject entry
    [ "$(cells status)" = wrong ]
    cells reason | grep -q 'not 0 +/- 0'
}

@test "layout and sums that CPUs' libraries do not have are skipped with a hint" {
    gemm --dtype f32 --size 16 --layout nt
    [ "$(cells status)" = skipped ]
    cells reason | grep -q 'take B as k x n alone: --layout nn'
    gemm --dtype f64 --size 16 --accumulate f16
    [ "$(cells status)" = skipped ]
    cells reason | grep -q "f64 products are not summed as 'f16' on the host's CPUs: take --accumulate default"
}

@test "the search ends with a shape, says why it stopped, and measures it" {
    needs_library onednn
    gemm --dtype f32 --search 500ms
    [ "$status" -eq 0 ]
    cells reason | grep -q 'the best of [1-9][0-9]* shapes\? in [0-9.]* s; '
    [ "$(cells m)" -ge 256 ]
    cells value | awk '!($1 > 0) { exit 1 }'
    gemm --dtype f32 --search 500ms --shape 8x8x8
    [ "$status" -eq 4 ]
    cells reason | grep -q 'exclude each other'
}

@test "a device that multiplies nothing, or is none, is a usage error: choices, and what was meant" {
    for device in moon cuda: cuda:01 node0 host,moon; do
        gemm --dtype f32 --size 16 --device "$device"
        [ "$status" -eq 2 ]
        [ ! -s "$out" ]
        grep -q "option '--device': .* host, cuda:[01], gpus" "$err"
    done
    gemm --device cuda:01
    grep -q "did you mean 'cuda:1'?" "$err"
}

@test "a value that is named twice is measured once" {
    gemm --dtype f32 --size 16,0,16 # nothing is read past what is wrong
    [ "$status" -eq 2 ]
    gemm --dtype f32 --size 16,24,16 --device host,host
    [ "$(cells m | paste -sd ' ')" = "16 24" ]
}

@test "a library's file says nothing of another library" {
    gemm --dtype f64 --size 16 --library openblas --onednn-file /nowhere/libdnnl.so
    [ "$status" -eq 2 ]
    grep -q "option '--onednn-file' does not apply here: it is for --library onednn" "$err"
    gemm --dtype f32 --size 16 --library onednn --openblas-file /nowhere/libopenblas.so
    [ "$status" -eq 2 ]
}
