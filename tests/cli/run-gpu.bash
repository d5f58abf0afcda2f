# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: run-gpu.bats, run-gpu-long.bats.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    cd "$top" || return 1
    bin="${PLUMB_BIN:-$top/build/bin}"
    plumb="$bin/plumb"
    work=$BATS_TEST_TMPDIR
    export PLUMB_CONFIGS=$top/configs
}

# in_work MACHINE: simulates it, from an empty folder.
in_work() {
    simulate "$1"
    cd "$work" || return 1
}

suite() { # suite: the cases on stdin
    { printf 'suite: t\ndefaults: {repeat: 1, budget: 60ms, warmup: 20ms}\ncases:\n'; cat; } > t.yaml
}

cases() { # cases SUITE: arguments of its plan
    "$plumb" run "$1" --dry-run 2>/dev/null | tail -n +2 | cut -d, -f5-
}

# The text with its lines put together again: they are wrapped, and what goes on is indented.
flat() { sed ':a; N; $!ba; s/\n  */ /g' "$1"; }
