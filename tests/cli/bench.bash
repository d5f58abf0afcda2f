# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: bench.bats, bench-long.bats.

# bench ARGUMENTS...: runs the benchmark; sets status, and leaves stdout and stderr in $out and $err.
bench()
{
    status=0
    # shellcheck disable=SC2086 # quick is several words
    "$bin" $quick "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# cell COLUMN [LINE]: a cell of the CSV in $out, which holds no quotes; LINE 1 (the default) is the first row.
cell()
{
    awk -F, -v name="$1" -v line="${2:-1}" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        NR == line + 1 { print at ? $at : "no such column"; found = 1 }
        END { if (!found) print "no such row" }' "$out"
}
