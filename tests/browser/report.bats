#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The report in a browser: headless Chromium looks at pages made from made-up runs.

load env

setup_file() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    export top
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    for run in plain hostile many; do
        case $run in
        hostile) set -- --hostile ;;
        many) set -- --rows 10000 ;;
        *) set -- ;;
        esac
        python3 "$top/tests/tools/make-run.py" "$BATS_FILE_TMPDIR/$run" "$@"
        "$plumb" report "$BATS_FILE_TMPDIR/$run"
    done
    python3 "$top/tests/tools/make-run.py" "$BATS_FILE_TMPDIR/other" --seed 2 --factor 0.8
    "$plumb" report "$BATS_FILE_TMPDIR/plain" "$BATS_FILE_TMPDIR/other" --out "$BATS_FILE_TMPDIR/both"
}

look() { # look RUN CHECK...
    python3 "$top/tests/browser/browse.py" "$BATS_FILE_TMPDIR/$1/report.html" "${@:2}"
}

@test "the console stays quiet and nothing is asked for" {
    look plain quiet
    look both quiet
}

@test "tables sort by their headings, what was not measured last; they filter, show all columns, and have every row" {
    look plain sorts empty_cells_come_last filters shows_all_columns every_row_is_there
}

@test "every plot is there, wide and on a phone, which the page fits; light and dark are readable" {
    look plain plots_are_there fits_a_phone light_and_dark
    look both plots_are_there fits_a_phone
    look hostile fits_a_phone
}

@test "a run of the suite quick is printed on five pages" {
    "${PLUMB_BIN:-$top/build/bin}/plumb" report "$top/results/reference/epyc-zen5-2vcpu" --out "$BATS_FILE_TMPDIR/quick"
    look quick printed_on_five_pages
}

@test "texts that try to be script or markup do nothing" {
    look hostile hostile_texts_do_nothing plots_are_there
}

@test "10,000 rows sort and filter, with few of them in the page at once" {
    look many starts_small quiet sorts filters
}
