#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# What a benchmark chooses by a race is decided once a run: plumb run with a plumb-memory whose race falls one way and the other.

load common
load kept

@test "a run that goes on takes the choice from its rows" {
    fickle one generic "$unit"
    touch broken
    run -4 one/plumb run t.yaml --out r --no-report
    rm broken
    one/plumb run --resume r --retry --no-report
    [ "$(units_of r)" = "1 generic" ]
    [ "$(wc -l < one/launches)" -eq 3 ]
    [ "$(wc -l < one/raced)" -eq 1 ]
}

@test "two targets in turn decide each for itself" {
    fickle one generic "$unit"
    fickle two "$unit" generic
    run one/plumb run t.yaml --of "exec $work/one/plumb" --against "exec $work/two/plumb" --out r --no-report
    [ "$(units_of r/a)" = "1 generic" ]
    [ "$(units_of r/b)" = "1 $unit" ]
    [ "$(cat one/raced two/raced | wc -l)" -eq 2 ]
    [ "$(wc -l < two/launches)" -eq 3 ]
}
