# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: memory.bats, memory-long.bats.

setup()
{
    paths_of memory
    quick="--csv --budget 30ms --warmup 10ms --threads 1"
    cpus=$(nproc)
    # A machine of two nodes with four cores each, as far as hwloc tells.
    two_nodes="pack:2 [numa(memory=8GB)] l3:1(size=8388608) l2:4(size=1048576) l1:1(size=32768) core:1 pu:1"
}

memory() { measure "$@"; }
