# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: allreduce.bats, allreduce-long.bats, allreduce-alone.bats.

teardown() {
    local pid
    for pid in "${ranks[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

all_good() { good 'wrong|failed'; }

setup() {
    paths_of allreduce
    no_launcher
    ranks=()
    quick="--csv --budget 100ms --warmup 10ms --min-samples 5 --no-cpu"
    export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS} # of Open MPI, in a build with sanitizers
}

allreduce() { measure "$@"; }
