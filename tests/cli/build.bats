#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# The build: what it finds and says, what it builds again and what not, and where it installs. On a copy of the
# core with two benchmarks and no harness, so that it is quick; as if nothing were there that is not needed, and for the
# GPU module with a made-up nvcc.

load common

setup_file()
{
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    tree=$BATS_FILE_TMPDIR/tree
    tools=$BATS_FILE_TMPDIR/tools
    mkdir -p "$tree/benches" "$tree/configs" "$tree/harness/plumb" "$tools"
    cp -R "$root/Makefile" "$root/LICENSE" "$root/scripts" "$root/core" "$root/examples" "$tree"
    cp -r "$root/benches/null" "$root/benches/net" "$tree/benches"
    echo 'suite: x' >"$tree/configs/quick.yaml"
    echo 'int main(void) { return 0; }' >"$tree/harness/plumb/main.c"
    # A pkg-config and a compiler that do not know the libraries, or headers, named in the file "missing". Their texts are the
    # same in each run, so that ccache knows the compiler again.
    cat >"$tools/pkg-config" <<END
#!/bin/bash
while read -r name pc; do
    [[ " \$* " != *" \$pc "* ]] || exit 1
done <"$tools/missing"
exec $(command -v pkg-config) "\$@"
END
    cat >"$tools/cc" <<END
#!/bin/bash
while read -r name pc; do
    [[ " \$* " != *" -l\$name "* && " \$* " != *" -include \$name "* ]] || exit 1
done <"\${0%/*}/missing"
PATH=$PATH exec $(command -v cc) "\$@" # without this one: ccache, as cc, takes the first that is not its own
END
    # An nvcc that keeps what it was asked for.
    cat >"$tools/nvcc" <<END
#!/bin/bash
echo "\$*" >>"$tools/asked"
while ((\$#)); do
    case \$1 in
    --version) echo 'Cuda compilation tools, release 12.9, V12.9.86' ;;
    --list-gpu-code) printf 'sm_%s\n' 52 61 70 72 75 80 86 87 89 90 90a 100 101 120 121 ;;
    -o) echo image >"\$2" ;;
    esac
    shift
done
END
    chmod +x "$tools/pkg-config" "$tools/cc" "$tools/nvcc"
    # The real one's headers are the made-up one's.
    cuda=$(
        cd "$root" && . scripts/parts.sh && parts_find nvcc && echo "${part_cflags#-isystem}:found"
    ) || cuda=''
    if [[ $cuda == /*:found ]]; then
        ln -s "${cuda%:found}" "$BATS_FILE_TMPDIR/include"
    fi
    export root tree tools cuda CCACHE_COMPILERCHECK=content
    # Not those of a make that runs these tests; and no GPU, unless a test has one.
    unset MAKEFLAGS MAKELEVEL MFLAGS CC CFLAGS MPICC CUDA_HOME CUDA_PATH
    export NVCC=no
    export all="mpi:ompi-c mpich:mpich ibverbs:libibverbs rdmacm:librdmacm"
    lacking "$all"
}

# lacking NAME:PC...: from now on these libraries are not installed.
lacking()
{
    printf '%s\n' "$@" | tr ' :' '\n ' >"$tools/missing"
}

setup()
{
    cd "$tree" || exit
}

# build ARGUMENTS...: make, with what it says in $output.
build()
{
    run env PATH="$tools:$PATH" CFLAGS=-O0 make "$@"
}

compiled()
{
    grep -c '^  CC ' <<<"$output" || true
}

@test "the first build ends with what was found, what it is for and what to install" {
    exits 0 build
    [ -x build/bin/plumb-null ]
    [ -x build/bin/plumb ]
    grep -qE '^  hwloc +[0-9.]+ +puts threads' <<<"$output"
    grep -qE '^  libibverbs +- +net: .* libibverbs-dev$' <<<"$output"
    grep -qE 'as root, apt-get install .*libibverbs-dev.*; then make config$' <<<"$output"
}

@test "the second build does nothing and says nothing" {
    exits 0 build
    [ -z "$output" ]
}

@test "without a library that all is built with: an error that says what to install, and it is looked for again" {
    local name pc package
    rm build/config.mk
    while read -r name pc package; do
        lacking "$name:$pc"
        build
        [ "$status" -ne 0 ]
        grep -q "without: [a-zA-Z]* ($package)$" <<<"$output"
        grep -q "apt-get install .*$package" <<<"$output"
        [ ! -e build/config.mk ]
    done <<'END'
hwloc hwloc libhwloc-dev
jansson jansson libjansson-dev
yaml yaml-0.1 libyaml-dev
csv libcsv libcsv-dev
sqlite3 sqlite3 libsqlite3-dev
sodium libsodium libsodium-dev
END
    lacking "$all"
    exits 0 build
}

@test "without MPI and verbs net is built, says what it lacks, and measures on this machine" {
    build config
    for part in MPI libibverbs librdmacm; do
        grep -qE "^  $part +- +net[:,] .* lib[a-z]+-dev" <<<"$output"
    done
    grep -q 'net .*(MPI).*(libib' <<<"$output"
    exits 0 build
    [ ! -e build/lib/plumbline ]
    build/bin/plumb-net --transport shm --pattern latency --size 64 --budget 50ms --csv | grep -qE ',(ok|noisy),'
    build/bin/plumb-net --transport rdma --csv | grep -q ',skipped,.*install libibverbs-dev and librdmacm-dev'
}

@test "with them net has its modules, and is the one benchmark that is linked with libsodium" {
    : >"$tools/missing"
    build config
    if ! grep -cE '^HAVE_(MPI|LIBIBVERBS|LIBRDMACM) := yes' build/config.mk | grep -qx 3; then
        lacking "$all"
        build config
        skip "MPI, libibverbs or librdmacm is not installed here"
    fi
    [[ $output != *'(MPI)'* ]]
    exits 0 build
    nm -D --defined-only build/lib/plumbline/plumb-mpi.so | grep -q ' plumb_mpi_module$'
    nm -D --defined-only build/lib/plumbline/plumb-rdma.so | grep -q ' plumb_rdma_module$'
    objdump -p build/bin/plumb-net | grep -q 'NEEDED.*sodium'
    [ "$(objdump -p build/bin/plumb-null | grep -cE 'NEEDED.*(sodium|mpi|ibverbs|rdmacm)')" -eq 0 ]
    build install DESTDIR="$BATS_TEST_TMPDIR/stage" PREFIX=/opt/plumbline
    [ -f "$BATS_TEST_TMPDIR/stage/opt/plumbline/lib/plumbline/plumb-mpi.so" ]
    [ -f "$BATS_TEST_TMPDIR/stage/opt/plumbline/lib/plumbline/plumb-rdma.so" ]
    lacking "$all"
    build config
    exits 0 build
}

@test "other flags build everything again, the same flags nothing" {
    sources=$(find core benches harness -name '*.c' -not -path '*/cuda/*' -not -path '*/mpi/*' -not -path '*/nccl/*' -not -path '*/rdma/*' | wc -l)
    run -0 env PATH="$tools:$PATH" CFLAGS=-O1 make
    [ "$(compiled)" -eq "$sources" ]
    run env PATH="$tools:$PATH" CFLAGS=-O1 make
    [ "$(compiled)" -eq 0 ]
    build
    [ "$(compiled)" -eq "$sources" ]
}

@test "a header builds again what includes it, and nothing else" {
    touch core/text.h
    build
    [ "$(compiled)" -eq "$(grep -l '"core/text.h"' core/*.c core/*/*.c benches/*/*.c | wc -l)" ]
    grep -q '^  CC     core/text.c$' <<<"$output"
}

@test "a new benchmark is found by itself" {
    sed 's/"null"/"second"/' benches/null/null.c >benches/second.c
    exits 0 build
    build/bin/plumb-second --version | grep -q '^plumb-second '
    rm benches/second.c build/bin/plumb-second
}

@test "SAN=1 builds to a folder of its own, with both sanitizers" {
    grep -q '^HAVE_SANITIZERS := yes' build/config.mk || skip "the compiler has no sanitizers"
    exits 0 build SAN=1
    nm build-san/bin/plumb-null | grep -q __asan_
    nm build-san/bin/plumb-null | grep -q __ubsan_
    build-san/bin/plumb-null --budget 50ms
    build
    [ "$(compiled)" -eq 0 ]
    [ "$(nm build/bin/plumb-null | grep -c __asan_)" -eq 0 ]
}

@test "install: programs, suites and documents, under DESTDIR" {
    exits 0 build install DESTDIR="$BATS_TEST_TMPDIR/stage" PREFIX=/opt/plumbline
    at=$BATS_TEST_TMPDIR/stage/opt/plumbline
    [ -x "$at/bin/plumb-null" ]
    [ -f "$at/share/plumbline/configs/quick.yaml" ]
    [ -f "$at/share/doc/plumbline/LICENSE" ]
    [ -f "$at/share/doc/plumbline/examples/offers.yaml" ]
    "$at/bin/plumb-null" --version
}

# Builds with the made-up nvcc from here on.
with_nvcc()
{
    [[ $cuda ]] || skip "there is no cuda.h here"
    export NVCC=$tools/nvcc
    : >"$tools/asked"
    build config
}

@test "with nvcc the module is built, for every generation of GPUs it knows from 7.0 on" {
    with_nvcc
    grep -q 'GPUs: built, .* 7.0 7.5 8.0 8.6 8.9 9.0 10.0 12.0 .*PTX' <<<"$output"
    exits 0 build
    nm -D --defined-only build/lib/plumbline/plumb-cuda.so | grep -q ' plumb_gpu_module$'
    for code in 70 75 80 86 89 90 100 120; do
        grep -q -- "arch=compute_$code,code=sm_$code " "$tools/asked"
    done
    grep -q -- 'arch=compute_70,code=compute_70 ' "$tools/asked"
    grep -q -- 'arch=compute_120,code=compute_120 ' "$tools/asked"
    [ "$(grep -cE 'sm_(52|61|72|87|90a|101|121)' "$tools/asked")" -eq 0 ]
}

@test "the module is built again when a kernel changes, its C when that does, and else not" {
    with_nvcc
    build
    : >"$tools/asked"
    build
    [ -z "$output" ]
    touch core/hw/cuda/kernels_memory.cuh
    build
    [ "$(grep -c '^  NVCC ' <<<"$output")" -eq 1 ]
    [ "$(grep -c -- -fatbin "$tools/asked")" -eq 1 ]
    [ "$(compiled)" -eq 1 ] # the file that takes in the image
    touch core/hw/cuda/module.c
    build
    [ "$(compiled)" -eq 1 ]
    [ "$(grep -c '^  NVCC ' <<<"$output")" -eq 0 ]
    grep -q '^  LINK   build/lib/plumbline/plumb-cuda.so$' <<<"$output"
}

@test "make machines: all once, then what a change makes old, and a composition that fails leaves none" {
    mkdir -p tests/machines/compose.d tests/machines/recorded/root/proc
    cp "$root"/tests/machines/{compose,rules.mk} tests/machines
    cp "$root"/tests/machines/compose.d/{kvm-virtio,kvm-sriov} tests/machines/compose.d
    exits 0 build machines
    [ "$(<build/machines/kvm-virtio/root/sys/class/net/lo/operstate)" = unknown ]
    [ -d build/machines/kvm-sriov/root/sys ]
    [ build/machines/recorded/root/proc -ef tests/machines/recorded/root/proc ]
    build SAN=1 machines
    [[ $output == *'Nothing to be done'* ]]
    touch -d '2 seconds ago' build/machines/*/root
    touch tests/machines/compose.d/kvm-sriov -d '1 second ago'
    touch tests/machines/compose{,.d/kvm-virtio} -d '3 seconds ago'
    build machines
    [ "$output" = '  MAKE   build/machines/kvm-sriov/root' ]
    echo 'software_nic eth7 1500 up; false' >>tests/machines/compose.d/kvm-sriov
    build machines
    [ "$status" -ne 0 ]
    [ "$(ls build/machines/kvm-sriov)" = root ]
    [ ! -e build/machines/kvm-sriov/root/sys/class/net/eth7 ]
    echo 'software_nic eth7 1500 up' >>tests/machines/compose.d/kvm-virtio
    sed -i '$d' tests/machines/compose.d/kvm-sriov
    build machines
    [ -e build/machines/kvm-virtio/root/sys/class/net/eth7 ]
    rm -r tests
}

@test "make clean leaves the sources alone" {
    exits 0 build clean
    [ ! -e build ]
    [ ! -e build-san ]
    [ -f core/bench/main.c ]
}
