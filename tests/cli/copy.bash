# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: copy.bats, copy-long.bats.

setup()
{
    paths_of copy
    quick="--csv --budget 30ms --warmup 10ms"
    two_nodes="pack:2 [numa(memory=8GB)] l3:1(size=8388608) l2:4(size=1048576) l1:1(size=32768) core:1 pu:1"
}

copy() { measure "$@"; }
