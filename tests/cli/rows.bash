# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For bats: a benchmark is run, and the rows that it printed as CSV to the file $out are read.

# shellcheck source-path=SCRIPTDIR
. "${BASH_SOURCE[0]%/*}/common.bash"

# measure ARGUMENTS...: runs $bin with $quick and these; sets status, and leaves stdout and stderr in $out and $err.
measure()
{
    status=0
    # shellcheck disable=SC2034,SC2086 # quick is several words, status is read by tests
    timeout 600 "${bin:?}" ${quick-} "$@" >"${out:?}" 2>"${err:?}" </dev/null || status=$?
}

# cells COLUMN...: columns of the CSV in $out, a line for each row; quoted commas are no separators. Of several columns there are blanks
# between, and an empty cell is "-".
cells()
{
    awk -v names="$*" '
        {
            line = ""; quoted = 0
            for (i = 1; i <= length($0); i++) {
                c = substr($0, i, 1)
                if (c == "\"") quoted = !quoted
                else line = line (c == "," && !quoted ? "\t" : c)
            }
            n = split(line, cell, "\t")
        }
        NR == 1 {
            wanted = split(names, name, " ")
            for (w = 1; w <= wanted; w++)
                for (i = 1; i <= n; i++) if (cell[i] == name[w]) at[w] = i
            next
        }
        {
            text = ""
            for (w = 1; w <= wanted; w++)
                text = text (w > 1 ? " " : "") (!at[w] ? "no such column" : cell[at[w]] == "" && wanted > 1 ? "-" : cell[at[w]])
            print text
        }' "${out:?}"
}

# of METRIC COLUMN [RANKS]: in the first row of that metric, and of so many ranks.
of()
{
    paste -d'|' <(cells metric) <(cells ranks) <(cells "$2") | awk -F'|' -v metric="$1" -v ranks="${3-}" \
        '$1 == metric && (ranks == "" || $2 == ranks) { print $3; exit }'
}

# says FILE TEXT...: FILE has these texts, or we see FILE.
says()
{
    local text
    for text in "${@:2}"; do
        grep -qF -- "$text" "$1" || { echo "no \"$text\" in:" && cat "$1" && return 1; }
    done
}

# alike COLUMN VALUE...: of each of these columns, all rows have that value.
alike()
{
    while (($#)); do
        [ "$(cells "$1" | sort -u)" = "$2" ] || { echo "$1 is not $2, but:" && cells "$1" && return 1; }
        shift 2
    done
}

# paths_of BENCH: for a file's setup: the program in $bin, and $out and $err, from the top of the checkout.
paths_of()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=${PLUMB_BIN:-$PWD/build/bin}/plumb-$1 out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
}

# row STATUS PATTERN: the rows, of which there is one, have this status and a reason with the pattern in it.
row()
{
    # shellcheck disable=SC2053 # a pattern is meant
    [[ $(cells status) == "$1" && $(cells reason) == *$2* ]] || { cells status && cells reason && echo "no '$2'" && return 1; }
}
