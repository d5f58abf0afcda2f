# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: memory.bats, memory-long.bats.

setup()
{
    paths_of memory
    quick="--csv --budget 30ms --warmup 10ms --threads 1"
    cpus=$(nproc)
}

memory() { measure "$@"; }
