# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For bats: a benchmark is run, and the rows that it printed as CSV to the file $out are read.

# shellcheck source-path=SCRIPTDIR
. "${BASH_SOURCE[0]%/*}/common.bash"

# measure ARGUMENTS...: runs $bin, by the launcher $under if any, with $quick and these; sets status, and leaves stdout and stderr in $out
# and $err.
measure()
{
    status=0
    # shellcheck disable=SC2086 # several words
    timeout 600 ${under-} "${bin:?}" ${quick-} "$@" >"${out:?}" 2>"${err:?}" </dev/null || status=$?
}

# good WORDS: the command ended with 0, and no row is one of WORDS, which '|' parts.
good()
{
    [ "$status" -eq 0 ] || { cat "$err" && cut -c 1-400 "$out" && return 1; }
    [ "$(cells status | grep -cE "$1")" -eq 0 ]
}

# no_launcher: nothing of a launcher that these tests run under is left.
no_launcher()
{
    local name
    for name in OMPI_COMM_WORLD_SIZE PMI_SIZE MV2_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS FLUX_JOB_SIZE JSM_NAMESPACE_SIZE PMIX_RANK \
        PALS_RANKID PMI_RANK FLUX_TASK_RANK MPI_LOCALRANKID MPI_LOCALNRANKS WORLD_SIZE RANK LOCAL_RANK; do
        unset "$name"
    done
}

# no_huge_pages: $small is a launcher of programs to which the kernel gives none.
no_huge_pages()
{
    command -v python3 >/dev/null || skip 'python3 is not installed'
    small=$BATS_TEST_TMPDIR/small
    printf '%s\n' '#!/usr/bin/env python3' 'import ctypes, os, sys' 'ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) # PR_SET_THP_DISABLE' \
        'os.execvp(sys.argv[1], sys.argv[1:])' | script "$small"
}

# For hwloc: a machine of two nodes with four cores each.
# shellcheck disable=SC2034 # for tests
two_nodes="pack:2 [numa(memory=8GB)] l3:1(size=8388608) l2:4(size=1048576) l1:1(size=32768) core:1 pu:1"

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
    [[ -x $bin ]] || skip "plumb-$1 is not built"
}

# row STATUS PATTERN: the rows, of which there is one, have this status and a reason with the pattern in it.
row()
{
    # shellcheck disable=SC2053 # a pattern is meant
    [[ $(cells status) == "$1" && $(cells reason) == *$2* ]] || { cells status && cells reason && echo "no '$2'" && return 1; }
}
