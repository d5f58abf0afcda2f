# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: gemm.bats, gemm-long.bats.

setup()
{
    paths_of gemm
    quick="--csv --budget 60ms --warmup 20ms"
    cpus=$(nproc)
}

gemm() { measure "$@"; }

needs_library()
{
    local name
    for name; do
        "$bin" --describe | grep -q "{\"name\": \"$name\", \"state\": \"present" || skip "$name is not here"
    done
}
