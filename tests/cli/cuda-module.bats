#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# The GPU module as a file: what it links, what is in it, and what a benchmark says where it cannot start. What it does
# is tested by tests/unit/test_cuda_*.c.

load common
load ../sim/env

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    module=build/lib/plumbline/plumb-cuda.so
    image=build/gen/cuda/kernels.fatbin
    [[ -e $module ]] || skip "plumb-cuda.so was not built: there is no nvcc here"
}

# One small case on a GPU; its row in $output.
memory()
{
    run build/bin/plumb-memory --device cuda --op copy --size 1M --csv --budget 50ms
}

@test "on a guest's GPU without managed memory or pinning the rest of the memory table is tested" {
    printf '%s\n' '[machine]' 'gpus = 1' '[gpu]' 'managed = no' 'host_register = no' >"$BATS_TEST_TMPDIR/guest.conf"
    simulate "$BATS_TEST_TMPDIR/guest.conf"
    PLUMB_TEST_GPU=real run build/tests/test_cuda_module # as it is: not the fixture's own machine
    [[ $output == *"OK ] memory_of_every_kind"* ]]
}

@test "the module has one symbol, and is linked with nothing but the C library" {
    [ "$(nm -D --defined-only "$module" | awk '{ print $3 }')" = plumb_gpu_module ]
    needed=$(objdump -p "$module" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^lib(c|dl)\.so\.[0-9]+$' || true)
    [ -z "$needed" ]
}

@test "every kernel that core knows by name is in it" {
    missing=''
    for name in spin empty chase chase_sys copy16 copy1 fill \
        {read,write,copy,scale,add,triad}_{f32,f64}_u{1,2,4,8}{,_cs}; do
        grep -aqE "(^|[^a-z0-9_])\.?text\.$name([^a-z0-9_]|\$)" "$image" || missing+=" $name"
    done
    [ -z "$missing" ] || {
        echo "missing:$missing"
        false
    }
}

@test "it has machine code for each GPU that the build said, and PTX of the oldest and the newest" {
    command -v cuobjdump >/dev/null || skip "cuobjdump is not here: it comes with the CUDA toolkit"
    codes=$(sed -n 's/^CUDA_CODES := //p' build/config.mk)
    ptx=$(sed -n 's/^CUDA_PTX := //p' build/config.mk)
    for code in $codes; do
        cuobjdump --list-elf "$image" | grep -q "\.sm_$code\."
    done
    [ "$(cuobjdump --list-elf "$image" | grep -c .)" -eq "$(wc -w <<<"$codes")" ]
    for code in $ptx; do
        cuobjdump --list-ptx "$image" | grep -q "\.sm_$code\."
    done
}

# make_ptx [CODE]: the kernels for the newest GPU, or for this one, as the compiler hands them to the assembler.
make_ptx()
{
    nvcc=$(sed -n 's/^NVCC := //p' build/config.mk)
    newest=$(sed -n 's/^CUDA_PTX := .* //p' build/config.mk)
    "$nvcc" -ptx -std=c++14 -I. -allow-unsupported-compiler "-arch=compute_${1-$newest}" core/hw/cuda/kernels.cu \
        -o "$BATS_TEST_TMPDIR/kernels.ptx"
}

@test "memory operations: every access is of 16 bytes, U of them are in flight, and one at a time for the rest" {
    make_ptx
    awk '
        /\.entry [a-z]+_f(32|64)_u[1248]/ {
            name = $0; sub(/.*\.entry /, "", name); sub(/\(.*/, "", name)
            op = name; sub(/_.*/, "", op); unroll = name; sub(/.*_u/, "", unroll); unroll += 0
            loads = stores = others = 0; kernels++ }
        /^}/ && name {
            arrays = op == "write" ? 0 : op == "add" || op == "triad" ? 2 : 1
            steps = unroll == 1 ? 1 : unroll + 1 # a step at a time leaves nothing over
            if (loads != arrays * steps || stores != (op == "read" ? 0 : steps) || others) {
                print name ": " loads " loads, " stores " stores, " others " others"; bad = 1 }
            name = "" }
        name && /ld\.global\.cg\.(L2::cache_hint\.)?v4\.u32/ { loads++; next }
        name && /st\.global\.(cs\.)?v4\.u32/ { stores++; next }
        name && /(ld|st)\.(volatile\.)?global/ { others++ }
        END { exit bad || kernels != 96 }' "$BATS_TEST_TMPDIR/kernels.ptx"
}

@test "registers leave an H100's SM room for all its threads where reads have few accesses in flight each" {
    grep -q '^CUDA_CODES := .*\<90\>' build/config.mk || skip "this toolkit makes no code for it"
    make_ptx 90
    ptxas=$(dirname "$nvcc")/ptxas
    [[ -x $ptxas ]] || skip "ptxas is not beside nvcc"
    "$ptxas" -v -arch sm_90 "$BATS_TEST_TMPDIR/kernels.ptx" -o "$BATS_TEST_TMPDIR/kernels.cubin" 2>&1 | awk '
        /Compiling entry function/ { split($0, quoted, "\047"); name = quoted[2] }
        name ~ /^read_f32_u[124](_cs)?$/ && /Used [0-9]+ registers/ {
            match($0, /Used [0-9]+/); n = substr($0, RSTART + 5, RLENGTH - 5) + 0; kernels++
            if (n > 32) { print name ": " n " registers"; bad = 1 } } # 65536 for 2048 threads
        END { exit bad || kernels != 6 }'
}

# machine_code KERNEL: its instructions, for the newest GPU that the build has machine code for.
machine_code()
{
    cuobjdump -sass -arch "sm_$(sed -n 's/^CUDA_CODES := .* //p' build/config.mk)" -fun "$1" "$image" |
        sed -n 's|^ */\*[0-9a-f]*\*/ *\(.*\);.*|\1|p'
}

@test "plain kernels have no division, call or second load of an array in their machine code" {
    command -v cuobjdump >/dev/null || skip "cuobjdump is not here: it comes with the CUDA toolkit"
    for kernel in read_f32_u1 copy_f32_u1 copy_f64_u1 triad_f32_u1 triad_f64_u1; do
        code=$(machine_code "$kernel")
        wanted=1
        [[ $kernel != triad* ]] || wanted=2
        [ "$(grep -c 'LDG\.E\.128' <<<"$code")" -eq "$wanted" ]
        [ "$(grep -cE 'MUFU|I2F|CALL' <<<"$code")" -eq 0 ]
    done
    machine_code copy_f32_u4 | grep -qE 'MUFU\.RCP' # what the line above looks for is what a division is
}

@test "machine code: a chain for another's memory goes past this GPU's caches, and one for the levels through them" {
    command -v cuobjdump >/dev/null || skip "cuobjdump is not here: it comes with the CUDA toolkit"
    [ "$(machine_code chase_sys | grep 'LDG\.E\.64' | grep -cv STRONG.SYS)" -eq 0 ]
    [ "$(machine_code chase_sys | grep -c 'LDG\.E\.64\.STRONG\.SYS')" -ge 9 ]
    [ "$(machine_code chase | grep -c 'LDG\.E\.64\.STRONG')" -eq 0 ]
    [ "$(machine_code chase | grep -c 'LDG\.E\.64 ')" -ge 9 ]
}

@test "a driver that is not there: a skipped row that says so, and what to do" {
    PLUMB_LIBCUDA=/nonexistent/libcuda.so.1 exits 0 memory
    grep -q ',skipped,.*PLUMB_LIBCUDA' <<<"$output"
    [ "$(grep -cE ',(ok|noisy|failed|wrong),' <<<"$output")" -eq 0 ]
}

# driver VERSION FUNCTION...: a library that has these functions, all of which succeed, and says this version.
driver()
{
    local version=$1 function
    shift
    echo "int cuDriverGetVersion(int *v) { *v = $version; return 0; }" >"$BATS_TEST_TMPDIR/driver.c"
    for function; do
        echo "int $function(void) { return 0; }"
    done >>"$BATS_TEST_TMPDIR/driver.c"
    "${CC:-cc}" -shared -fPIC "$BATS_TEST_TMPDIR/driver.c" -o "$BATS_TEST_TMPDIR/libcuda.so.1"
    export PLUMB_LIBCUDA=$BATS_TEST_TMPDIR/libcuda.so.1
}

@test "a driver of an older CUDA: both versions, and the driver to install" {
    driver 9020
    exits 0 memory
    grep -qE ',skipped,.* 9\.2, .* 1[0-9]\.0: .*driver [0-9]+' <<<"$output"
}

# older_toolkit: a CUDA 12.8 toolkit made of the one that is here, in $older; its nvcc gives the kernels that there are.
older_toolkit()
{
    local nvcc cflags
    nvcc=$(sed -n 's/^NVCC := //p' build/config.mk)
    cflags=$(sed -n 's/^CUDA_INCLUDE := //p' build/config.mk)
    [[ $(sed -n 's/^CUDA_RELEASE := //p' build/config.mk) == 13.* ]] || skip "the toolkit here is not of CUDA 13"
    older=$BATS_TEST_TMPDIR/older
    mkdir -p "$older/bin" "$older/include"
    # shellcheck disable=SC2016 # the shell of the made-up nvcc expands it
    printf '#!/bin/sh\ncase $* in --version) echo "release 12.8, V12.8.1" ;; *-fatbin*) for o; do :; done; cp "%s" "$o" ;; *) exec "%s" "$@" ;; esac\n' \
        "$PWD/$image" "$nvcc" >"$older/bin/nvcc"
    chmod +x "$older/bin/nvcc"
    ln -s "$cflags"/* "$older/include"
    rm "$older/include/cuda.h"
    sed 's/^#define CUDA_VERSION 13.*/#define CUDA_VERSION 12080/' "$cflags/cuda.h" >"$older/include/cuda.h"
    printf '#undef cuMemPrefetchAsync\nCUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);\n' >>"$older/include/cuda.h"
}

# here FILE...: programs and modules in folders of their own; what is started from there finds these modules alone.
here()
{
    mkdir -p "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/lib/plumbline"
    cp build/bin/plumb-memory "$BATS_TEST_TMPDIR/bin"
    cp "$@" "$BATS_TEST_TMPDIR/lib/plumbline"
    printf 'include = %s/tests/sim/machines/one.conf\n[machine]\ndriver_version = 12040\n' "$PWD" >"$BATS_TEST_TMPDIR/driver12.conf"
    simulate "$BATS_TEST_TMPDIR/driver12.conf"
    run "$BATS_TEST_TMPDIR/bin/plumb-memory" --device cuda --op copy --size 1M --csv --budget 50ms
}

@test "a driver of CUDA 12: by the module that was built with CUDA 12 beside the newer one, or a row that says what is needed" {
    older_toolkit
    NVCC_OLDER=$older/bin/nvcc scripts/configure "$BATS_TEST_TMPDIR/config"
    grep -q '^CUDA_OLDER := 12$' "$BATS_TEST_TMPDIR/config/config.mk"
    grep -q 'before 580: .*CUDA 12.8' "$BATS_TEST_TMPDIR/config/config.txt"
    mapfile -t settings < <(sed -n 's/^\(CUDA_OLDER\|OLDER_[A-Z]*\) := \(.*\)/\1=\2/p' "$BATS_TEST_TMPDIR/config/config.mk")
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make BUILD="$BATS_TEST_TMPDIR/b" "${settings[@]}" \
        "$BATS_TEST_TMPDIR/b/lib/plumbline/plumb-cuda12.so" >"$BATS_TEST_TMPDIR/made" 2>&1 || { cat "$BATS_TEST_TMPDIR/made"; false; }
    [ "$(nm -D --defined-only "$BATS_TEST_TMPDIR/b/lib/plumbline/plumb-cuda12.so" | awk '{ print $3 }')" = plumb_gpu_module ]
    exits 0 here "$module" "$BATS_TEST_TMPDIR/b/lib/plumbline/plumb-cuda12.so"
    grep -qE ',(ok|noisy),' <<<"$output"
    rm "$BATS_TEST_TMPDIR/lib/plumbline/plumb-cuda12.so"
    exits 0 here "$module"
    grep -q ",skipped,.* 12\.4, .* 13\.0: .*driver 580 .*'plumb-cuda12.so'" <<<"$output"
}

# wheels: a folder as pip makes it, in $home, with an assembler of CUDA 12.8 that says what it was given and refuses PTX before 8.1.
wheels()
{
    home=$BATS_TEST_TMPDIR/wheels
    older_toolkit
    mkdir -p "$home/nvidia/cuda_nvcc/bin" "$home/nvidia/cuda_runtime"
    mv "$older/include" "$home/nvidia/cuda_runtime"
    script "$home/nvidia/cuda_nvcc/bin/ptxas" <<'END'
#!/bin/sh
case $1 in
--version) echo 'Cuda compilation tools, release 12.8, V12.8.1'; exit ;;
--help) echo "Allowed values: 'sm_75','sm_90','sm_200'"; exit ;;
esac
grep '^\.version' "$2" | tee -a "$ASKED"
grep -q '^\.version 8\.0' "$2" && exit 1
echo "machine code for $1" >"$4"
END
}

@test "the second module by the assembler of CUDA 12 alone: PTX is lowered to what it takes, and both are in the image" {
    wheels
    export ASKED=$BATS_TEST_TMPDIR/asked
    CUDA12_HOME=$home scripts/configure "$BATS_TEST_TMPDIR/config"
    grep -q ' 580: .*CUDA 12.8' "$BATS_TEST_TMPDIR/config/config.txt"
    grep -q '^OLDER_CODES := 75 90$' "$BATS_TEST_TMPDIR/config/config.mk"
    CUDA12_HOME=$BATS_TEST_TMPDIR/nothing scripts/configure "$BATS_TEST_TMPDIR/none"
    grep -q '^CUDA_OLDER' "$BATS_TEST_TMPDIR/none/config.mk" || grep -q 'nvidia-cuda-nvcc-cu12' "$BATS_TEST_TMPDIR/none/config.txt"
    # A compiler and its fatbinary that are quick.
    mkdir "$BATS_TEST_TMPDIR/newer"
    # shellcheck disable=SC2016 # their own shells expand it
    printf '#!/bin/sh\nfor o; do :; done\nprintf ".version 9.0\\n.target $2\\n" >"$o"\n' >"$BATS_TEST_TMPDIR/newer/nvcc"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nfor o; do case $o in --image3*) echo "${o%%%%,file*}"; cat "${o##*file=}" ;; --create=*) to=${o#*=} ;; esac; done >"$ASKED.image"; mv "$ASKED.image" "$to"\n' \
        >"$BATS_TEST_TMPDIR/newer/fatbinary"
    chmod +x "$BATS_TEST_TMPDIR"/newer/*
    scripts/nvcc-older "$BATS_TEST_TMPDIR/newer/nvcc" "$home/nvidia/cuda_nvcc/bin/ptxas" -fatbin -std=c++14 -t 2 -I. \
        -gencode arch=compute_75,code=sm_75 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_75,code=compute_75 \
        kernels.cu -o "$BATS_TEST_TMPDIR/image"
    [ "$(paste -sd ' ' <"$ASKED")" = ".version 8.0 .version 8.1 .version 8.0 .version 8.1" ]
    [ "$(paste -sd ' ' <"$BATS_TEST_TMPDIR/image")" = "--image3=kind=elf,sm=75 machine code for -arch=sm_75 --image3=kind=elf,sm=90 machine code for -arch=sm_90 --image3=kind=ptx,sm=75 .version 8.1 .target -arch=compute_75" ]
}
