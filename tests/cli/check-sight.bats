#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# plumb check: the smallest detectable loss, against losses that are planted into recorded noise; and
# its outputs at several widths.

bats_require_minimum_version 1.5.0
load made

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    work=$BATS_TEST_TMPDIR
    noise=$top/results/reference/epyc-zen5-2vcpu
    cd "$work" || return 1
    unset GITHUB_STEP_SUMMARY NO_COLOR
}

plant() { python3 "$top/tests/tools/plant-losses.py" "$plumb" "$noise" "$work/nights" "$@" > told; }
told() { python3 -c 'import json, sys
o = json.load(open("told"))
assert eval(sys.argv[1]), o' "$1"; }

nights() { # two noisy nights, and one that lost and has another kernel
    for i in 1 2 3; do
        made_by cli/make_runs.py "base/n$i" --seed "$i" --run-spread .01
    done
    made_by cli/make_runs.py lost --seed 9 --run-spread .01 --fact host.kernel=6.99 \
        --shift 'memory triad 1073741824 *=0.5' --drop 'net tcp 1048576 *'
}

@test "a loss of the size that is called detectable is found in about 95 %, half of it hardly ever" {
    plant --worlds 6 --checks 4
    told '0.88 <= o["found"] / o["planted"] <= 1'
    told 'o["found_half"] / o["planted"] <= 0.1'
    told 'o["is_median"] and o["planted"] == 72 and o["alarms"] <= 1'
}

@test "what a few nights forecast for more of them is what these then give" {
    plant --forecast --nights 5 --worlds 8
    told 'o["forecasts"] >= 3 and 0.75 <= o["true_over_forecast"] <= 1.25'
}

@test "one baseline forecasts nothing of nights; without one nothing is known" {
    nights
    "$plumb" check lost --baseline base/n1 --all > out || true
    grep -q '^detects  *[0-9.]* % ' out
    ! grep -q 'night' out || return 1
    "$plumb" check lost --baseline history --history h.db --update-baseline --json j.json > out || true
    grep -q '"slowdown": null' j.json
}
