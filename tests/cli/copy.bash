# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: copy.bats, copy-long.bats.

setup()
{
    paths_of copy
    quick="--csv --budget 30ms --warmup 10ms"
}

copy() { measure "$@"; }
