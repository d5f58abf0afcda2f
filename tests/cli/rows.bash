# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For bats: the rows that a benchmark printed as CSV to the file $out.

# cells COLUMN: a column of the CSV in $out, a line for each row; quoted commas are no separators.
cells()
{
    awk -v name="$1" '
        {
            line = ""; quoted = 0
            for (i = 1; i <= length($0); i++) {
                c = substr($0, i, 1)
                if (c == "\"") quoted = !quoted
                else line = line (c == "," && !quoted ? "\t" : c)
            }
            n = split(line, cell, "\t")
        }
        NR == 1 { for (i = 1; i <= n; i++) if (cell[i] == name) at = i; next }
        { print at ? cell[at] : "no such column" }' "${out:?}"
}
