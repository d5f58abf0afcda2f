#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# What a benchmark chooses by a race is decided once a run: plumb run with a plumb-memory whose race falls one way and the other.

bats_require_minimum_version 1.5.0
load kept

@test "each case decides for itself, and what a case asks for stays" {
    fickle one generic "$unit"
    printf '  - {bench: memory, op: write, size: 32K, threads: 1, isa: [auto, %s]}\n' "$unit" >> t.yaml
    one/plumb run t.yaml --out r --no-report
    [ "$(wc -l < one/launches)" -eq 9 ]
    [ "$(wc -l < one/raced)" -eq 2 ]
    [ "$(units_of r | wc -l)" -eq 3 ]
    units_of r | grep -qx "3 $unit"
    [ "$(units_of r | head -n 2 | cut -d' ' -f2- | sort)" = "$(printf '%s\n' generic "$unit" | sort)" ]
    [ "$(grep -c -- '--isa auto' r/plan.csv)" -eq 3 ]
}

@test "a run that goes on takes the choice from its rows" {
    fickle one generic "$unit"
    touch broken
    run one/plumb run t.yaml --out r --no-report
    [ "$status" -eq 4 ]
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
