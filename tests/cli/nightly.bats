#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# examples/ci/nightly.sh: which run folders it keeps, and which go.

bats_require_minimum_version 1.5.0

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    work="$(mktemp -d)"
    cd "$work" || return 1
    # A plumb that makes the folder it is asked for, and finds nothing lost.
    cat > fake << 'END'
#!/bin/sh
[ "$1" != run ] || { mkdir "$4" && echo "$4" > made; }
END
    chmod +x fake
    export PLUMB=$work/fake FOLDER=$work/nights
    mkdir -p nights/runs
}

teardown() {
    cd / || return 1
    rm -rf "$work"
}

runs() { find nights/runs -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort; }

@test "old runs of a suite go; those of a suite whose name begins alike stay, and so does the new one" {
    for day in 01 02 03; do
        mkdir "nights/runs/quick-202601$day-020000" "nights/runs/quick-net-202601$day-030000"
    done
    mkdir nights/runs/quick-20260101 nights/runs/quick-20260101-020000-of-before
    others=$(runs | grep -vE '^quick-[0-9]{8}-[0-9]{6}$')
    KEEP=2 SUITE=quick run -0 "$top/examples/ci/nightly.sh"
    [ -z "$output" ]
    [ -d "$(cat made)" ]
    [ "$(runs | grep -vE '^quick-[0-9]{8}-[0-9]{6}$')" = "$others" ]
    [ "$(runs | grep -E '^quick-[0-9]{8}-[0-9]{6}$')" = "quick-20260103-020000
$(basename "$(cat made)")" ]
    # and the other way round; a path names the suite, too
    KEEP=1 SUITE=some/where/quick-net.yaml run -0 "$top/examples/ci/nightly.sh"
    [ "$(runs | grep -c '^quick-net')" -eq 1 ]
    [ -d "$(cat made)" ]
    [ "$(runs | grep -cE '^quick-[0-9]{8}-[0-9]{6}$')" -eq 2 ]
}

@test "fewer runs than are to stay: none goes" {
    mkdir nights/runs/quick-20260101-020000
    KEEP=2 run -0 "$top/examples/ci/nightly.sh"
    [ "$(runs | wc -l)" -eq 2 ]
}

@test "a suite's name is no pattern" {
    mkdir nights/runs/quick-2026010{1,2}-020000
    KEEP=1 SUITE='q*k.yaml' run -0 "$top/examples/ci/nightly.sh"
    [ "$(runs | grep -c '^quick')" -eq 2 ]
}
