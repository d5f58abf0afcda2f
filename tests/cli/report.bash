# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: report.bats, report-long.bats.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    work=$BATS_TEST_TMPDIR
    cd "$work" || return 1
    make_run r # which most tests report
}

make_run() { # make_run DIR [options of make-run.py]
    made_by tools/make-run.py "$@"
}
