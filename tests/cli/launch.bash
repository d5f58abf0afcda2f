# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: launch.bats, launch-long.bats.

setup()
{
    paths_of launch
    quick="--csv --budget 300ms --warmup 20ms --min-samples 200"
}

launch() { measure "$@"; }
