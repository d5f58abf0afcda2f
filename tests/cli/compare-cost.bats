#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# What a comparison costs grows with its cases, and not with their square: scripts/compare-cost on two small numbers of them.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
}

# seconds CASES: of processor time, and MiB at most.
cost() {
    scripts/compare-cost "$1" > "$BATS_TEST_TMPDIR/$1" 2>&1 || { cat "$BATS_TEST_TMPDIR/$1" && return 1; }
    sed -n 's/^\([0-9.]*\) s of processor time, .*/\1/p' "$BATS_TEST_TMPDIR/$1"
}

@test "sixteen times as many cases cost about sixteen times as much processor time, within 1 GiB" {
    local few many
    few=$(cost 1000)
    many=$(cost 16000)
    echo "1000 cases: $few s, 16000: $many s"
    grep -q '^b is equivalent to a ' "$BATS_TEST_TMPDIR/16000"
    awk -v few="$few" -v many="$many" 'BEGIN { exit !(few > 0 && many / few < 64) }' # 256, were it their square; neighbours double a time
}
