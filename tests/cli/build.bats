#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The build: what it finds and says, what it builds again and what not, and where it installs. On a copy of the
# core with one benchmark, so that it is quick; as if nothing but the compiler and hwloc were there.

setup_file()
{
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    tree=$BATS_FILE_TMPDIR/tree
    tools=$BATS_FILE_TMPDIR/tools
    mkdir -p "$tree/benches" "$tree/configs" "$tools"
    cp -R "$root/Makefile" "$root/LICENSE" "$root/scripts" "$root/core" "$tree"
    cp "$root/benches/null.c" "$tree/benches"
    echo 'suite: x' >"$tree/configs/quick.yaml"
    # A pkg-config and a compiler that do not know the libraries named in the file "missing".
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
    [[ " \$* " != *" -l\$name "* ]] || exit 1
done <"$tools/missing"
exec $(command -v cc) "\$@"
END
    chmod +x "$tools/pkg-config" "$tools/cc"
    export root tree tools
    # Not those of a make that runs these tests.
    unset MAKEFLAGS MAKELEVEL MFLAGS CC CFLAGS
    lacking jansson:jansson yaml:yaml-0.1 csv:libcsv
}

# lacking NAME:PC...: from now on these libraries are not installed.
lacking()
{
    printf '%s\n' "$@" | tr ':' ' ' >"$tools/missing"
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
    build
    [ "$status" -eq 0 ]
    [ -x build/bin/plumb-null ]
    [ ! -e build/bin/plumb ]
    grep -qE '^  hwloc +[0-9.]+ +puts threads' <<<"$output"
    grep -qE '^  jansson +- +plumb: .* libjansson-dev$' <<<"$output"
    grep -qE '^  libcsv +- +plumb: .* libcsv-dev$' <<<"$output"
    grep -q 'plumb is left out (it needs jansson, libyaml and libcsv); the benchmarks are built' <<<"$output"
    [[ ${lines[-1]} == *'apt-get install '*libjansson-dev*'; then make config' ]]
}

@test "the second build does nothing and says nothing" {
    build
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "make config looks again and says what it found" {
    lacking yaml:yaml-0.1 csv:libcsv
    build config
    [ "$status" -eq 0 ]
    grep -qE '^  jansson +[0-9.]+ ' <<<"$output"
    build
    [ "$status" -eq 0 ]
    [[ $output != *jansson* ]]
    lacking jansson:jansson yaml:yaml-0.1 csv:libcsv
    build config
    grep -qE '^  jansson +- ' <<<"$output"
}

@test "without hwloc: an error that says what to install, and it is looked for again" {
    lacking hwloc:hwloc
    rm build/config.mk
    build
    [ "$status" -ne 0 ]
    grep -q 'cannot build without: hwloc (libhwloc-dev)' <<<"$output"
    [ ! -e build/config.mk ]
    lacking jansson:jansson yaml:yaml-0.1 csv:libcsv
    build
    [ "$status" -eq 0 ]
}

@test "without a compiler: an error that names it" {
    rm build/config.mk
    build CC=no-such-compiler
    [ "$status" -ne 0 ]
    grep -q "cannot build: 'no-such-compiler' does not compile a C program" <<<"$output"
    build
    [ "$status" -eq 0 ]
}

@test "other flags build everything again, the same flags nothing" {
    all=$(find core benches -name '*.c' | wc -l)
    run env PATH="$tools:$PATH" CFLAGS=-O1 make
    [ "$status" -eq 0 ]
    [ "$(compiled)" -eq "$all" ]
    run env PATH="$tools:$PATH" CFLAGS=-O1 make
    [ "$(compiled)" -eq 0 ]
    build
    [ "$(compiled)" -eq "$all" ]
}

@test "a header builds again what includes it, and nothing else" {
    touch core/csv.h
    build
    [ "$(compiled)" -eq "$(grep -l '"core/csv.h"' core/*.c core/*/*.c benches/*.c | wc -l)" ]
    grep -q '^  CC     core/csv.c$' <<<"$output"
}

@test "a header that is gone is no error" {
    echo '#define LEVEL 1' >core/extra.h
    sed -i '1i #include "core/extra.h"' core/csv.c
    build
    [ "$status" -eq 0 ]
    rm core/extra.h
    sed -i 1d core/csv.c
    build
    [ "$status" -eq 0 ]
    [ "$(compiled)" -eq 1 ]
}

@test "a new benchmark is found by itself" {
    sed 's/"null"/"second"/' benches/null.c >benches/second.c
    build
    [ "$status" -eq 0 ]
    build/bin/plumb-second --version | grep -q '^plumb-second '
    rm benches/second.c build/bin/plumb-second
}

@test "another commit compiles one file" {
    command -v git >/dev/null || skip "git is not installed"
    git init -q .
    git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m one
    build
    [ "$status" -eq 0 ]
    git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m two
    build
    [ "$(compiled)" -eq 1 ]
    grep -q '^  CC     core/build_info.c$' <<<"$output"
    grep -q "BUILD_COMMIT \"$(git rev-parse --short HEAD)" build/gen/build_values.h
    rm -rf .git
    build
    grep -q 'BUILD_COMMIT ""' build/gen/build_values.h
}

@test "V=1 shows the commands" {
    touch core/csv.c
    build V=1
    grep -qE -- '-O0 .*-c core/csv.c -o build/obj/core/csv.o$' <<<"$output"
    [ "$(compiled)" -eq 0 ]
}

@test "SAN=1 builds to a folder of its own, with both sanitizers" {
    grep -q '^HAVE_SANITIZERS := yes' build/config.mk || skip "the compiler has no sanitizers"
    build SAN=1
    [ "$status" -eq 0 ]
    nm build-san/bin/plumb-null | grep -q __asan_
    nm build-san/bin/plumb-null | grep -q __ubsan_
    build-san/bin/plumb-null --budget 50ms
    build
    [ "$(compiled)" -eq 0 ]
    [ "$(nm build/bin/plumb-null | grep -c __asan_)" -eq 0 ]
}

@test "install: programs, suites and documents, under DESTDIR" {
    build install DESTDIR="$BATS_TEST_TMPDIR/stage" PREFIX=/opt/plumbline
    [ "$status" -eq 0 ]
    at=$BATS_TEST_TMPDIR/stage/opt/plumbline
    [ -x "$at/bin/plumb-null" ]
    [ -f "$at/share/plumbline/configs/quick.yaml" ]
    [ -f "$at/share/doc/plumbline/LICENSE" ]
    "$at/bin/plumb-null" --version
}

@test "make run says what is missing when plumb cannot be built" {
    build run BOOTSTRAP=no
    [ "$status" -ne 0 ]
    grep -q 'make run: plumb was left out' <<<"$output"
}

@test "make help names every habit" {
    build help
    for word in run test lint format config install bundle clean; do
        grep -qE "^make $word " <<<"$output"
    done
}

@test "make clean leaves the sources alone" {
    build clean
    [ "$status" -eq 0 ]
    [ ! -e build ]
    [ ! -e build-san ]
    [ -f core/main.c ]
}
