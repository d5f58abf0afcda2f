#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154 # paths_of and measure share variables
# tier: long
# plumb-gemm on a GPU, over the simulated device: rates as configured, the best against the heuristics' choice,
# zeros, the check, and what it says where it cannot run.

load ../sim/env
load rows

setup()
{
    paths_of gemm
    quick="--csv --device cuda --budget 150ms --warmup 20ms"
    slow
}

# slow LINES...: a simulated machine with these lines for its GPUs: slow enough for this machine to do the arithmetic.
slow()
{
    machine 2 '[gpu]' 'gemm_us = 0' 'l2_bytes = 64K' 'gemm_f64_tflops = .00025' 'gemm_f32_tflops = .0005' 'gemm_tf32_tflops = .001' \
        'gemm_f16_tflops = .002' 'gemm_bf16_tflops = .002' 'gemm_fp8_tflops = .004' 'gemm_s8_tflops = .004' "$@"
}

gemm() { measure "$@"; }

# near WANT...: the values are within 5 % of these, in GFLOP/s, in their order.
near()
{
    cells value | awk -v want="$*" '
        BEGIN { n = split(want, w, " ") }
        { $1 *= 1000 }
        { if ($1 < 0.95 * w[NR] || $1 > 1.05 * w[NR]) { print "row " NR ": " $1 ", not " w[NR]; bad = 1 } }
        END { exit bad || NR != n }'
}

@test "every type at its configured rate; what each row is" {
    exits 0 gemm --size 64
    [ "$(cells dtype | paste -sd ' ')" = "f64 f32 tf32 f16 bf16 e4m3 e5m2 int8" ]
    near .25 .5 1 2 2 4 4 4
    [ "$(cells accumulate | paste -sd ' ')" = "f64 f32 f32 f32 f32 f32 fast f32 fast s32" ]
    [ "$(cells layout | paste -sd ' ')" = "nn nn nn nn nn nt nt nt" ]
    [ "$(cells unit | uniq -c | tr -s ' ' | paste -sd ' ')" = " 7 TFLOP/s  1 TOP/s" ]
    [ "$(cells origin | sort -u)" = simulated ]
    # of less than 0.3 s there is no mean power, however busy this machine is
    paste -d, <(cells gpu_mean_watts) <(cells gpu_energy_s) |
        awk -F, '($1 == "") != ($2 == "") || ($2 != "" && $2 < 0.3) { bad = 1 } END { exit NR != 8 || bad }'
    alike library_used cublaslt device cuda:0 address 0000:10:00.0 threads "" data random limit ""
    [ "$(cells kernel | grep -c '^cuBLASLt [0-9]')" -eq 8 ]
    [ "$(cells evidence | grep -c '^Simulated GPU .*0000:10:00.0: [1-9][0-9]* .* [1-9][0-9]* .*algo ')" -eq 8 ]
}

@test "the best of the heuristics' answers, with the gap" {
    slow 'gemm_best_candidate = 3' 'gemm_best_factor = 1.08' 'gemm_candidates = 6'
    exits 0 gemm --size 64 --dtype f16,int8 --library cublaslt,cublaslt-best
    [ "$(cells library_used | paste -sd ' ')" = "cublaslt cublaslt-best cublaslt cublaslt-best" ]
    near 2 2.16 4 4.32
    [ "$(cells reason | grep -c ' 6, [78][.0-9]* % .* algo .* algo ')" -eq 2 ]
    [ "$(cells evidence | sed 's/.*algo/algo/' | sort -u | wc -l)" -ge 2 ]
    [ "$(cells candidates | paste -sd ' ')" = " 6  6" ]
    cells gap_percent | awk 'NR % 2 ? $1 != "" : $1 < 7.9 || $1 > 8.1 { exit 1 }'
}

@test "sums by request; what a type does not have is skipped with a hint" {
    exits 0 gemm --size 64 --dtype f16,e4m3,bf16 --accumulate f32,f16,fast
    [ "$(cells accumulate | paste -sd ' ')" = "f32 f16 fast f32 f16 f32 fast f32 f16 fast" ]
    [ "$(cells status | grep -c skipped)" -eq 4 ]
    [ "$(cells reason | grep -c -- '--accumulate default')" -eq 4 ]
    gemm --size 64 --dtype int8,f16 --layout nn,nt
    [ "$(cells layout | paste -sd ' ')" = "nn nt nn nt" ]
    [ "$(cells status | sed 's/noisy/ok/' | paste -sd ' ')" = "skipped ok ok ok" ]
    cells reason | grep -q 'int8 .*--layout nt'
}

@test "a wrong entry is found: spoiled by the check's own test, and by the device" {
    exits 1 gemm --size 64 --inject entry
    [ "$(cells status | sort -u)" = wrong ]
    [ "$(cells reason | grep -c '1 of 1024 .*C\[0\]\[0\]')" -eq 8 ]
    fault corrupt:kernel=gemm:times=100000000
    exits 1 gemm --shape 32x32x64 --dtype f32,int8
    [ "$(cells status | sort -u)" = wrong ]
}

@test "out of memory all the same: that row fails and says so, the others survive" {
    fault out_of_memory:call=cuMemAlloc:above=50000000
    exits 4 gemm --shape 8192x2048x16,64x64x64 --dtype f32
    [ "$(cells status | sed 's/noisy/ok/' | paste -sd ' ')" = "failed ok" ]
    cells reason | head -1 | grep -qi 'cuMemAlloc.*memory'
}

@test "host and GPU in one sweep: each with its own libraries" {
    gemm --size 64 --dtype f64 --device host,cuda --library openblas,cublaslt
    [ "$(cells device | paste -sd ' ')" = "host cuda:0" ]
    [ "$(cells library_used | paste -sd ' ')" = "openblas cublaslt" ]
    gemm --size 64 --dtype f64 --library openblas
    row skipped 'openblas *--library auto'
}

@test "the search ends with a shape, says why it stopped, and measures it" {
    # 38 MiB but for cuBLASLt's 32: 512^3 and what is near it
    slow 'gemm_f16_tflops = 10' 'gemm_us = 20' 'memory_bytes = 102M' 'reserved_bytes = 64M'
    exits 0 gemm --search 20s --dtype f16
    cells reason | grep -q 'best of [1-9][0-9]* .* [0-9.]* s; .*: [1-9][0-9]* .*, [0-9]* '
    [ "$(cells m)" -ge 512 ]
    [ "$(cells search)" = 20s ]
    near "$(awk -v m="$(cells m)" -v n="$(cells n)" -v k="$(cells k)" 'BEGIN { f = 2 * m * n * k; print f / (f / 1e4 + 2e4) }')"
    slow 'memory_bytes = 97M' 'reserved_bytes = 64M'
    gemm --search 1s --dtype f16
    row skipped ' GB of GPU memory'
    warned 2 '--search' gemm --search 1s --size 64
}

toolkits()
{
    realpath -m /usr/local/cuda/lib "$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")/../lib"
}

# Folders in which the loader finds such a library.
loaders()
{
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's|.*lib\(cublasLt\|nccl\)\..*=> \(.*\)/.*|\2|p' | xargs -r realpath
}

# without_toolkit COMMAND...: where the toolkit's own libraries are not to be seen.
without_toolkit()
{
    local homes
    mapfile -t homes < <({ toolkits; loaders; } | sort -u)
    # shellcheck disable=SC2016 # the inner shell expands it
    env -u PLUMB_LIBCUBLASLT -u PLUMB_LIBNCCL -u LD_LIBRARY_PATH -u CUDA_HOME -u CUDA_PATH -u CONDA_PREFIX -u NCCL_HOME "HOME=$BATS_TEST_TMPDIR" \
        unshare -rm sh -ec 'while [ "$1" != -- ]; do [ ! -d "$1" ] || mount -t tmpfs none "$1"; shift; done; shift; exec "$@"' sh "${homes[@]}" -- "$@"
}

@test "the libraries of a Python environment with torch are found, those of CUDA 12, too, and plumb list names the files" {
    unshare -rm true 2>/dev/null || skip "no namespace can be made here"
    ! loaders | grep -v cuda || skip "the system's own folder has one, which cannot be hidden"
    site=$BATS_TEST_TMPDIR/env/lib/python3.11/site-packages/nvidia
    nothing=$(without_toolkit build/bin/plumb list)
    install -D "$PLUMB_LIBCUBLASLT" "$site/cublas/lib/libcublasLt.so.12"
    install -D "$PLUMB_LIBNCCL" "$site/nccl/lib/libnccl.so.2"
    active=$(VIRTUAL_ENV=$BATS_TEST_TMPDIR/env without_toolkit build/bin/plumb list)
    mkdir "$BATS_TEST_TMPDIR/env/bin"
    ln -s /bin/true "$BATS_TEST_TMPDIR/env/bin/python3"
    first=$(PATH=$BATS_TEST_TMPDIR/env/bin:$PATH without_toolkit build/bin/plumb list)
    grep -q '^ *gemm *cublaslt .*absent.*PLUMB_LIBCUBLASLT' <<<"$nothing"
    grep -q ' nccl .*absent.*PLUMB_LIBNCCL' <<<"$nothing"
    for said in "$active" "$first"; do
        grep -q "^ *gemm *cublaslt .*$site/cublas/lib/libcublasLt.so.12" <<<"$said"
        grep -q " nccl .*$site/nccl/lib/libnccl.so.2" <<<"$said"
    done
    # Those of the newer CUDA first.
    install -D "$PLUMB_LIBCUBLASLT" "$site/cu13/lib/libcublasLt.so.13"
    VIRTUAL_ENV=$BATS_TEST_TMPDIR/env without_toolkit build/bin/plumb list | grep -q "cublaslt .*$site/cu13/lib/libcublasLt.so.13"
}
