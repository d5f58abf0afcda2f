# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: bench.bats, bench-long.bats.

setup()
{
    paths_of null
    quick="--budget 20s --max-samples 2000" # ends with the samples, however busy this machine is
}

bench() { measure "$@"; }

# cell COLUMN [LINE]: a cell of the CSV in $out, which holds no quotes; LINE 1 (the default) is the first row.
cell()
{
    awk -F, -v name="$1" -v line="${2:-1}" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        NR == line + 1 { print at ? $at : "no such column"; found = 1 }
        END { if (!found) print "no such row" }' "$out"
}
