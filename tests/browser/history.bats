#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The page of plumb history in a browser: headless Chromium looks at pages made from made-up nights.

load env

setup_file() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    export top
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    cd "$BATS_FILE_TMPDIR" || return 1
    python3 "$top/tests/tools/make-history.py" few --runs 3
    python3 "$top/tests/tools/make-history.py" some --runs 60 --step triad@40=0.95
    python3 "$top/tests/tools/make-history.py" many --runs 300 --step triad@40=0.95 --step latency@157=1.1
    python3 "$top/tests/tools/make-history.py" years --runs 500 --step triad@40=0.95
    for nights in few some many years; do
        "$plumb" history "$nights" --all --html "$nights.html"
    done
}

look() { # look NIGHTS CHECK...
    python3 "$top/tests/browser/history_page.py" "$BATS_FILE_TMPDIR/$1.html" "${@:2}"
}

@test "the labels of dates do not touch, and none is cut off, on wide and narrow pages" {
    for nights in few some many years; do
        look "$nights" ticks_do_not_touch
    done
}

@test "the changes are to be seen whole" {
    look many changes_are_whole
    look many fits_a_phone
}

@test "the console stays quiet and nothing is asked for" {
    look some quiet
}
