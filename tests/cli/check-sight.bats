#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb check: the smallest detectable loss, against losses that are planted into recorded noise; and
# its outputs at several widths.

bats_require_minimum_version 1.5.0

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    work="$(mktemp -d)"
    noise=$top/results/reference/epyc-zen4-2vcpu
    cd "$work" || return 1
    unset GITHUB_STEP_SUMMARY NO_COLOR
}

teardown() {
    cd / || return 1
    rm -rf "$work"
}

plant() { python3 "$top/tests/tools/plant-losses.py" "$plumb" "$noise" "$work/nights" "$@" > told; }
told() { python3 -c 'import json, sys
o = json.load(open("told"))
assert eval(sys.argv[1]), o' "$1"; }

nights() { # two noisy nights, and one that lost and has another kernel
    for i in 1 2 3; do
        python3 "$top/tests/cli/make_runs.py" "base/n$i" --seed "$i" --run-spread .01
    done
    python3 "$top/tests/cli/make_runs.py" lost --seed 9 --run-spread .01 --fact host.kernel=6.99 \
        --shift 'memory triad 1073741824 *=0.5' --drop 'net tcp 1048576 *'
}

# As seen on a terminal of $1 columns, without its colours.
seen() {
    TERM=xterm script -qec "stty cols $1; '$plumb' check lost --baseline base" /dev/null | tr -d '\r' > coloured
    sed 's/\x1b\[[0-9;]*m//g' coloured > seen
}

@test "a loss of the size that is called detectable is found in about 95 %, half of it hardly ever" {
    plant --worlds 6 --checks 4
    told '0.88 <= o["found"] / o["planted"] <= 1'
    told 'o["found_half"] / o["planted"] <= 0.1'
    told 'o["is_median"] and o["planted"] == 72 and o["alarms"] <= 1'
}

@test "what a few nights forecast for more of them is what these then give" {
    plant --forecast --nights 5 --worlds 5
    told 'o["forecasts"] >= 4 and 0.75 <= o["true_over_forecast"] <= 1.25'
}

@test "the first line is the verdict, the second the smallest detectable loss; one baseline forecasts nothing of nights" {
    nights
    "$plumb" check lost --baseline base > out || true
    head -n 1 out | grep -qE '^Verdict +regressed: 1 case of [0-9]+ lost: memory triad.* by [0-9.]+ %; '
    sed -n 2p out | grep -qE '^Smallest detectable loss  [0-9.]+ % today in the median case \(5 % or less in [0-9]+ of 48 cases\)'
    "$plumb" check lost --baseline base/n1 > out || true
    ! grep -q 'more night' out || return 1
    "$plumb" check lost --baseline history --history h.db --update-baseline > out || true
    sed -n 2p out | grep -q '^Smallest detectable loss  unknown: there is no run to compare with'
}

@test "the minutes of more launches count each case by its own, where dear ones have fewer" {
    for i in 1 2 3 4 5; do
        python3 "$top/tests/cli/make_runs.py" "base/n$i" --seed "$i" --spread .04
    done
    python3 "$top/tests/cli/make_runs.py" mixed --seed 9 --spread .04
    want="$(python3 - mixed <<'END'
import csv, glob, json, os, sys
run = sys.argv[1]
def edit(path, change):
    rows = list(csv.DictReader(open(path)))
    kept = [row for row in rows if change(row)]
    with open(path, "w") as out:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
    return kept
seconds, each = 0, 0
edit(f"{run}/plan.csv", lambda row: row["bench"] != "gemm" or int(row["repeat"]) <= 2)
for path in glob.glob(f"{run}/*.csv"):
    if path.endswith("plan.csv"): continue
    gemm = path.endswith("gemm.csv")
    def change(row):
        row["elapsed_s"] = "20" if gemm else "1"
        return not gemm or int(row["repeat"]) <= 2
    rows = edit(path, change)
    seconds += len(rows) * (20 if gemm else 1)
    each += len({row["case"] for row in rows}) * (20 if gemm else 1)
meta = json.load(open(f"{run}/run.json"))
meta.update(run="mixed", started_utc="2026-11-30T02:00:00Z", harness_cost={"benchmarks_ms": 1000 * seconds})
json.dump(meta, open(f"{run}/run.json", "w"))
print(each / 60)
END
)"
    "$plumb" check mixed --baseline base --see 7% --json j.json > out || true
    python3 - "$want" <<'END'
import json, sys
seen = json.load(open("j.json"))["detectable"]
assert seen["repeat"] > 5 and abs(seen["minutes"] / seen["repeat"] - float(sys.argv[1])) < 1e-6
END
}

@test "60, 80 and 160 columns: no line is longer, colour for what regressed and is missing alone" {
    command -v script > /dev/null || skip "no script(1)"
    nights
    for width in 60 80 160; do
        seen $width
        [ "$(awk -v w=$width 'length > w' seen | wc -l)" -eq 0 ]
        grep -q 'Smallest detectable loss' seen
        grep -q $'\x1b\\[1;31mregressed' coloured
        [ "$(grep -c $'\x1b\\[1;31munseen' coloured)" -eq 0 ]
    done
    "$plumb" check lost --baseline base > piped || true
    [ "$(grep -c $'\x1b' piped)" -eq 0 ]
    grep -q '^regressed  memory triad.*worse: a loss of .* is proven' piped # in one line
}

@test "a cause is in every output: another kernel, and a case that is missing" {
    nights
    "$plumb" check lost --baseline base --json j.json --junit j.xml --markdown m.md > out || true
    "$plumb" check lost --baseline base --github > github || true
    for file in out j.json j.xml m.md github; do
        grep -q 'kernel.*6\.99' "$file" || grep -A2 '"what": "kernel"' "$file" | grep -q '6\.99'
        grep -q 'this run has no such case' "$file"
        run ! grep -q 'missing: ' "$file" # the verdict's word, said once
        grep -q 'today in the median case' "$file"
    done
    # GitHub's table: as many cells in each row as in its head
    [ "$(grep '^| ' m.md | sed 's/\\|//g' | head -n 9 | awk -F'|' '{print NF}' | sort -u | wc -l)" -eq 1 ]
    LC_ALL=C "$plumb" check lost --baseline base > ascii || true
    [ "$(LC_ALL=C grep -c '[^ -~]' ascii)" -eq 0 ]
}
