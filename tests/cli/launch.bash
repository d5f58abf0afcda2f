# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: launch.bats, launch-long.bats.

setup()
{
    paths_of launch
    quick="--csv --budget 300ms --warmup 20ms --min-samples 200"
}

launch() { measure "$@"; }

# machine LINE...: a machine of its own, of two GPUs, each with these lines
machine()
{
    {
        echo '[machine]'
        echo 'gpus = 2'
        echo '[gpu]'
        printf '%s\n' 'name = Simulated GPU' "$@"
    } >"$BATS_TEST_TMPDIR/machine.conf"
    simulate "$BATS_TEST_TMPDIR/machine.conf"
}
