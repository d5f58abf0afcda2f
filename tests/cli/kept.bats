#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# What a benchmark chooses by a race is decided once a run: plumb run with a plumb-memory whose race falls one way and the other.

load common
load kept

@test "launches of a case take what its first one chose, though the race would fall otherwise" {
    fickle one generic "$unit"
    one/plumb run t.yaml --out r --no-report
    [ "$(units_of r)" = "1 generic" ]
    [ "$(wc -l < one/launches)" -eq 3 ]
    [ "$(wc -l < one/raced)" -eq 1 ]
    # The plan is as it was, and the log tells what a launch was given.
    run ! grep -q -- --isa r/plan.csv
    [ ! -e r/log/1-1.txt ]
    for repeat in 2 3; do
        [[ $(head -n 1 r/log/1-$repeat.txt) == "plumb run: "*"--isa generic, "* ]]
    done
}
