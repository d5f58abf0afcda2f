#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# plumb report on made-up runs of a cluster: scaling over ranks, the fitted model, slow hosts, late ranks.

load made

setup_file() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    export top plumb
    runs="$BATS_FILE_TMPDIR"
    make_run "$runs/few" --rows 3
    make_run "$runs/plain"
    make_run "$runs/bad" --slow-host 3 --late-rank 2 --two-levels --above
    for run in few plain bad; do
        "$plumb" report "$runs/$run" > "$runs/$run.out" 2> "$runs/$run.err"
    done
}

setup() {
    runs="$BATS_FILE_TMPDIR"
}

make_run() { # make_run DIR [options of make-cluster.py]
    made_by tools/make-cluster.py "$@"
}

text() { # RUN or its folder: its page without its markup, a line for each row and paragraph
    sed -e 's/<svg.*<\/svg>//g' -e 's/<\/td><td[^>]*>/ | /g' -e 's/<\/th>/ | /g' -e 's/<[^>]*>//g' -e "s/&#39;/'/g" "$(cd "$runs" && cd "$1" && pwd)/report.html"
}

@test "time and bus bandwidth over ranks are drawn, both transports in one plot, with the limit" {
    ls "$runs"/plain/plots/scaling-busbw-*.svg "$runs"/plain/plots/scaling-time-*.svg
    chart=$(sed -n "/<figure id='plot-scaling-busbw/,/<\/figure>/p" "$runs/plain/report.html")
    for row in "ring, tcp, ranks 2" "ring, rdma, ranks 8" "limit 119"; do
        [[ "$chart" == *">$row"* ]]
    done
    make_run "$runs/sixteen" --hosts 16 # lines, from four points on
    "$plumb" report "$runs/sixteen" > "$runs/sixteen.out"
    key="$(grep -A3 "<figure id='plot-scaling-busbw" "$runs/sixteen/report.html" | head -n 4)"
    for line in "ring, tcp" "ring, rdma" "ring, tcp, fitted model" "ideal at 0.120 GB/s"; do
        [[ "$key" == *"</svg>$line</li>"* ]]
    done
    # they stand in their own section, not among the plots again
    [ "$(grep -c "<figure id='plot-scaling-busbw" "$runs/plain/report.html")" -eq "$(find "$runs/plain/plots" -name "scaling-busbw-*.svg" | wc -l)" ]
}

@test "two levels are shown as two, and are in no efficiency" {
    row="$(text bad | grep -E '^128M \| .*38 %')"
    # ranks, time, busbw, no efficiency
    [[ "$row" =~ ^128M\ \|\ 4\ \|\ [^|]*62\ %[^|]*38\ %[^|]*\|\ [^|]*38\ %[^|]*62\ %[^|]*\|\ *$ ]]
    text bad | grep -q '2 points '
    ! grep -q "38 %" "$runs/plain/report.html" || return 1
}

@test "a bus bandwidth above its limit is flagged, or explained by what the row says" {
    text bad | grep -q '128M, 8 ranks: 1[23][0-9] % .*(0.09196 GB/s)'
    [ "$(text plain | grep -c '128M, 8 ranks: ')" -eq 0 ]
    make_run "$BATS_TEST_TMPDIR/node" --above --per-node 8
    "$plumb" report "$BATS_TEST_TMPDIR/node"
    text "$BATS_TEST_TMPDIR/node" | grep -q '128M, 8 ranks: .*one node'
}

@test "a slow host is named, in the headline and beside its matrix, and a good one is not" {
    [ "$(text bad | grep -c "node3: .* 5 links .*0.54 ")" -eq 4 ] # and beside the models
    grep -q '^Answer  *[1-9] problem' "$runs/bad.out"
    grep -q '^  *node3: .* 5 links .* 0.54 ' "$runs/bad.out"
    grep -q '^node3 -> .* 50[4-9]! ' "$runs/bad.out" # in the matrix, too
    [ "$(text plain | grep -c ' 5 links ')" -eq 0 ]
    grep -q "<th scope='col' title='to node6'>node6</th>" "$runs/plain/report.html"
    # bandwidth at the largest size, and latency
    [ "$(grep -c "<figure class='matrix'>" "$runs/plain/report.html")" -eq 2 ]
}

# Edits rows of allreduce.csv in the folder DIR: python on `rows`, a list of dicts.
edit_rows() { # edit_rows DIR CODE
    python3 - "$1/allreduce.csv" "$2" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
columns = list(rows[0])
exec(sys.argv[2])
with open(sys.argv[1], "w", newline="") as out:
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
END
}

@test "launches that died before a row: the headline has their reason" {
    dead="$BATS_TEST_TMPDIR/dead"
    cp -r "$runs/few" "$dead"
    # shellcheck disable=SC2016 # python
    edit_rows "$dead" '
rows = [row for row in rows if row["metric"] == "time"]
for row in rows:
    row.update(dict.fromkeys("metric unit value ci_low ci_high confidence samples ranks nodes vector_bytes stop".split(), ""),
               status="failed", reason="cannot reach node7")'
    sed -i 's/,0002,/,0001,/' "$dead/plan.csv"
    "$plumb" report "$dead" > "$BATS_TEST_TMPDIR/out"
    tr '\n' ' ' < "$BATS_TEST_TMPDIR/out" | grep -q 'allreduce.* failed: cannot reach node7'
    [ "$(grep -c '^  allreduce ' "$BATS_TEST_TMPDIR/out")" -eq 1 ] # in no line of times
}

@test "the page is readable on a phone, and its script quiet" {
    browser="$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)"
    [ -n "$browser" ] || skip "no chromium"
    python3 "$top/tests/browser/browse.py" "$runs/bad/report.html" quiet fits_a_phone
    python3 "$top/tests/browser/browse.py" "$runs/few/report.html" plots_are_there
}
