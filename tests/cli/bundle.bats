#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# The bundle, unpacked somewhere else and run with an empty environment: it holds all it needs but glibc.

bats_require_minimum_version 1.5.0

setup_file()
{
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$root" || exit
    scripts/bundle "$BATS_FILE_TMPDIR/made/plumbline-test" >"$BATS_FILE_TMPDIR/said"
    mkdir "$BATS_FILE_TMPDIR/else where"
    tar -C "$BATS_FILE_TMPDIR/else where" -xzf "$BATS_FILE_TMPDIR/made/plumbline-test.tar.gz"
    rm -rf "$BATS_FILE_TMPDIR/made"
    bundle="$BATS_FILE_TMPDIR/else where/plumbline-test"
    # What must come from the machine itself.
    glibc='^(ld-linux.*|linux-vdso|lib(c|m|pthread|dl|rt|util|resolv|mvec|anl))\.so\.[0-9]+$'
    export root bundle glibc
}

setup()
{
    cd "$BATS_TEST_TMPDIR" || exit
}

# clean COMMAND...: runs it with nothing of this shell's environment.
clean()
{
    env -i HOME="$BATS_TEST_TMPDIR" "$@" </dev/null
}

# foreign COMMAND...: prints the libraries that it loaded from outside of the bundle and that are not glibc's.
foreign()
{
    clean LD_DEBUG=libs LD_DEBUG_OUTPUT="$BATS_TEST_TMPDIR/debug" "$@" >"$BATS_TEST_TMPDIR/said" 2>&1
    sed -n 's/.*calling init: //p' "$BATS_TEST_TMPDIR"/debug.* | while read -r path; do
        [[ $path == "$bundle"/* || ${path##*/} =~ $glibc ]] || echo "$path"
    done
}

# missing FILES...: the libraries that they ask for and that are neither in the bundle nor glibc's.
missing()
{
    objdump -p "$@" 2>/dev/null | awk '$1 == "NEEDED" { print $2 }' | sort -u | while read -r name; do
        [[ $name =~ $glibc || -e $bundle/lib/$name || -e $bundle/lib/math/$name ]] || echo "$name"
    done
}

@test "every library that a file in it asks for is in it, or glibc's; glibc itself is not" {
    mapfile -t files < <(find "$bundle" -type f \( -path '*/bin/*' -o -path '*/lib/*' \) \
        -not -name plumb-rdma.so -not -name plumb-mpi.so)
    [ "${#files[@]}" -gt 5 ]
    [ -z "$(missing "${files[@]}")" ]
    inside=$(find "$bundle/lib" -name '*.so*' | while read -r path; do
        [[ ! ${path##*/} =~ $glibc ]] || echo "$path"
    done)
    [ -z "$inside" ]
}

@test "every benchmark starts from there, with the bundle's libraries alone" {
    for program in "$bundle"/bin/plumb-*; do
        run -0 foreign "$program" --help
        [ -z "$output" ]
    done
}

@test "oneDNN and OpenBLAS are the bundle's own, with all that they need" {
    [ -e "$bundle/lib/math" ] || skip "neither is installed here"
    run foreign "$bundle/bin/plumb-gemm" --library onednn,openblas --dtype f32 --size 64 --csv --budget 10ms
    [ -z "$output" ]
    [ "$(grep -cE ',(ok|noisy),' "$BATS_TEST_TMPDIR/said")" -eq "$(find "$bundle/lib" -name 'plumb-lib*.so.*' | wc -l)" ]
}

# What NVIDIA's libraries need, NCCL libstdc++ above all, may be newer on the machine than in the bundle.
@test "a library of the machine takes the machine's libstdc++, not the bundle's" {
    theirs=$(ldconfig -p | sed -n 's/.*libstdc++\.so\.6 .*=> //p' | head -n 1)
    [ "$theirs" ] || skip "there is no libstdc++ here"
    echo 'int x;' | "${CC:-cc}" -shared -fPIC -x c - -x none -Wl,--no-as-needed "$theirs" -o libnccl.so.2
    clean PLUMB_LIBNCCL="$PWD/libnccl.so.2" LD_DEBUG=libs LD_DEBUG_OUTPUT="$PWD/debug" \
        "$bundle/bin/plumb" list >said
    mapfile -t loaded < <(grep -l 'calling init: .*libnccl.so.2' debug.*)
    [ "${#loaded[@]}" -gt 0 ]
    cat "${loaded[@]}" | sed -n 's/.*calling init: \(.*libstdc++.*\)/\1/p' | sort -u | while read -r path; do
        [ "$path" -ef "$theirs" ] || echo "$path"
    done >others
    [ ! -s others ]
    grep -q 'calling init: .*libstdc++' "${loaded[@]}"
}

@test "BUNDLE=gpu has what a GPU is measured with, the tests of the GPU module too, and no more" {
    [ -e "$root/build/lib/plumbline/plumb-cuda.so" ] || skip "plumb-cuda.so was not built: there is no nvcc here"
    cd "$root" || exit
    BUNDLE=gpu scripts/bundle "$BATS_TEST_TMPDIR/slim" >"$BATS_TEST_TMPDIR/said"
    [ -e "$BATS_TEST_TMPDIR/slim.tar.gz" ]
    [ -z "$(find "$BATS_TEST_TMPDIR/slim" -name 'libdnnl*' -o -name 'libopenblas*' -o -name 'libstdc++*' -o -name 'libgcc_s*')" ]
    for file in plumb scripts/gpu-check lib/plumbline/plumb-cuda.so; do
        [ -e "$BATS_TEST_TMPDIR/slim/$file" ]
    done
    if [ -x build/tests/test_cuda_module ]; then
        clean PLUMB_LIBCUDA=/nonexistent "$BATS_TEST_TMPDIR/slim/tests/test_cuda_module" 2>&1 | grep -q 'test(s) run'
    fi
}

@test "scripts/crosscheck is in it, and finds the bundle's programs" {
    clean PATH="$PATH" "$bundle/scripts/crosscheck" nccl-allreduce --out "$BATS_TEST_TMPDIR/cross" >said 2>&1 || [ $? -eq 4 ]
    grep -q '^skipped: ' said
}

@test "a benchmark finds the GPU module of the bundle, and says that there is no driver" {
    [ -e "$root/build/lib/plumbline/plumb-cuda.so" ] || skip "plumb-cuda.so was not built: there is no nvcc here"
    clean PLUMB_LIBCUDA=/nonexistent "$bundle/bin/plumb-memory" --device cuda --op copy --size 1M --csv >said
    grep -q ',skipped,.*PLUMB_LIBCUDA' said
    rm "$bundle/lib/plumbline/plumb-cuda.so"
    clean "$bundle/bin/plumb-memory" --device cuda --op copy --size 1M --csv >said
    grep -q ',skipped,.*no GPU module' said
    cp "$root/build/lib/plumbline/plumb-cuda.so" "$bundle/lib/plumbline"
}

@test "scripts/gpu-check is in it where the GPU module is, with what it runs" {
    [ -e "$root/build/lib/plumbline/plumb-cuda.so" ] || skip "plumb-cuda.so was not built: there is no nvcc here"
    clean PATH="$PATH" "$bundle/scripts/gpu-check" --help | grep -q '^usage:'
    clean PATH="$PATH" "$bundle/scripts/peer-gpu" --help | grep -q collectives
    [ -e "$bundle/tests/peers/torch_gpu.py" ]
    [ -z "$(find "$bundle" -name __pycache__)" ]
    # What the whole of it does with no GPU: it says so, from the bundle's own programs.
    clean PATH="$PATH" PLUMB_LIBCUDA=/nonexistent "$bundle/scripts/gpu-check" --out "$BATS_TEST_TMPDIR/check" >said 2>&1 ||
        [ "$?" -eq 2 ]
    grep -q "'cuda:0': skipped: .*PLUMB_LIBCUDA" said
    if [ -x "$root/build/tests/test_cuda_module" ]; then
        run foreign PLUMB_LIBCUDA=/nonexistent "$bundle/tests/test_cuda_module"
        [ -z "$output" ]
        clean PLUMB_LIBCUDA=/nonexistent "$bundle/tests/test_cuda_module" >said 2>&1 || true
        grep -q 'test(s) run' said
    fi
}

@test "cuBLASLt is left out, which is said, unless BUNDLE_CUBLASLT=yes" {
    grep -q '^HAVE_CUBLASLT := yes' "$root/build/config.mk" || skip "there is no GPU module with matrix products here"
    name=libcublasLt.so.$(sed -n 's/^CUDA_RELEASE := \([0-9]*\).*/\1/p' "$root/build/config.mk")
    [ ! -e "$bundle/lib/$name" ]
    grep -q "^  $name.*BUNDLE_CUBLASLT=yes" "$bundle/README"
    [ -e "$root/build/sim/$name" ] || skip "the simulated cuBLASLt was not built"
    cd "$root" || exit
    BUNDLE_CUBLASLT=yes PLUMB_LIBCUBLASLT="$root/build/sim/$name" \
        scripts/bundle "$BATS_TEST_TMPDIR/large" >"$BATS_TEST_TMPDIR/said"
    cmp "$root/build/sim/$name" "$BATS_TEST_TMPDIR/large/lib/$name"
    [ "$(grep -c "$name" "$BATS_TEST_TMPDIR/large/README")" -eq 0 ]
}

@test "plumb finds its benchmarks and suites from any folder, by either name" {
    [ -e "$bundle/plumb" ] || skip "plumb was not built"
    clean "$bundle/plumb" list >said
    grep -q null said
    grep -q quick said
    clean "$bundle/bin/plumb" list | cmp - said
    ln -s "$bundle/plumb" by-link
    clean ./by-link list | cmp - said
}

@test "plumb measures and reports from there" {
    [ -e "$bundle/plumb" ] || skip "plumb was not built"
    printf 'suite: tiny\nabout: two cases\ncases:\n  - bench: "null"\n    number: [1, 2]\n' >tiny.yaml
    clean "$bundle/plumb" run tiny.yaml --out there
    [ -s there/report.html ]
    [ "$(wc -l <there/null.csv)" -eq 11 ] # a header, and two cases five times
    [ "$(find there/plots -name '*.svg' | wc -l)" -ge 1 ]
}
