#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb report on made-up runs of a cluster: scaling over ranks, the fitted model, slow hosts, late ranks, buckets of gradients.

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
    python3 "$top/tests/tools/make-cluster.py" "$@"
}

text() { # RUN or its folder: its page without its markup, a line for each row and paragraph
    sed -e 's/<svg.*<\/svg>//g' -e 's/<\/td><td[^>]*>/ | /g' -e 's/<\/th>/ | /g' -e 's/<[^>]*>//g' -e "s/&#39;/'/g" "$(cd "$runs" && cd "$1" && pwd)/report.html"
}

@test "3 rows and 300 become a page with a section on scaling" {
    for run in few plain; do
        grep -q "<section id='scaling'>" "$runs/$run/report.html"
        grep -q "href='#scaling'" "$runs/$run/report.html"
        grep -q '</html>' "$runs/$run/report.html"
    done
    run grep -c "<section id='links'>" "$runs/few/report.html"
    [ "$output" -eq 0 ]
}

@test "time and bus bandwidth over ranks are drawn, both transports in one plot, with the model and the ideal" {
    command -v gnuplot || skip "no gnuplot"
    ls "$runs"/plain/plots/scaling-busbw-*.svg "$runs"/plain/plots/scaling-time-*.png
    key="$(grep -A3 "<figure id='plot-scaling-busbw" "$runs/plain/report.html" | head -n 4)"
    for line in "ring over tcp" "ring over rdma" "ring over tcp, fitted model" "ideal at 0.120 GB/s"; do
        [[ "$key" == *"</svg>$line</li>"* ]]
    done
    # they stand in their own section, not among the plots again
    [ "$(grep -c "<figure id='plot-scaling-busbw" "$runs/plain/report.html")" -eq "$(find "$runs/plain/plots" -name "scaling-busbw-*.svg" | wc -l)" ]
}

@test "the model finds the latency and the rate that made the rows, and predicts 8 ranks from 2 and 4" {
    text plain > page
    grep -Eq '^model 3[78]\.[0-9] us a message \([0-9. to]*\), 0\.118 GB/s' page
    grep -Eq '^model 6\.[45][0-9] us a message \([0-9. to]*\), 0\.119 GB/s' page
    [ "$(grep -Ec 'forecast 8 ranks predicted from 2 and 4: (1\.0[01]|0\.99) of measured at 128M' page)" -eq 3 ]
    # of one size there is no telling
    run text few
    [[ "$output" != *"forecast"* ]]
}

@test "efficiency has an interval and its base" {
    text plain | grep -q 'efficiency from 2 to 8 ranks: [01]\.[0-9]* ([01]\.[0-9]* to [01]\.[0-9]*)'
    text plain | grep -Eq '^128M \| .* \| (1\.00|0\.99[0-9]) \((0\.98|0\.99)[0-9]* to 1\.0[0-9]\)'
}

@test "two levels are shown as two, and are in no efficiency" {
    row="$(text bad | grep -E '^128M \| .*38 %')"
    [[ "$row" == *"(62 %) or "*"(38 %)"* ]]
    # time, busbw of 2; time, busbw, no efficiency of 4
    [[ "$row" =~ ^128M\ \|\ [0-9]+\ \|\ [0-9.]+\ \|\ [0-9]+\ \(62\ %\)\ or\ [0-9]+\ \(38\ %\)\ \|\ [0-9.]+\ \(38\ %\)\ or\ [0-9.]+\ \(62\ %\)\ \|\ +\| ]]
    text bad | grep -q '2 points on two levels: shown as two, and in no efficiency and no fit'
    run grep -c "38 %" "$runs/plain/report.html"
    [ "$output" -eq 0 ]
}

@test "a bus bandwidth above its limit is flagged, or explained by what the row says" {
    text bad | grep -q '128M, 8 ranks: 1[23][0-9] % of the limit (0.09196 GB/s): nothing in the row explains it'
    [ "$(text plain | grep -c 'nothing in the row explains it')" -eq 0 ]
    make_run "$BATS_TEST_TMPDIR/node" --above --per-node 8
    "$plumb" report "$BATS_TEST_TMPDIR/node"
    text "$BATS_TEST_TMPDIR/node" | grep -q '128M, 8 ranks: .*: all ranks are on one node: memory carried it, not the link'
    [ "$(text "$BATS_TEST_TMPDIR/node" | grep -c 'nothing in the row explains it')" -eq 0 ]
}

@test "a slow host is named, in the headline and beside its matrix, and a good one is not" {
    [ "$(text bad | grep -c "node3: its 5 links carry 0.54 of the others'")" -eq 2 ]
    grep -q "slow: bandwidth, .*: node3: its 5 links" <(tr '\n' ' ' < "$runs/bad.out" | sed 's/  */ /g')
    [ "$(text bad | grep -c 'is .* below the median of its kind')" -eq 0 ]
    [ "$(text plain | grep -c 'links carry')" -eq 0 ]
    grep -q "<th scope='col' title='to node6'>node6</th>" "$runs/plain/report.html"
    # bandwidth at the largest size, and latency
    [ "$(grep -c "<figure class='matrix'>" "$runs/plain/report.html")" -eq 2 ]
}

@test "a host that is slow one way only is told so: both ways are in one matrix" {
    make_run "$BATS_TEST_TMPDIR/out" --slow-out 4
    "$plumb" report "$BATS_TEST_TMPDIR/out"
    [ "$(text "$BATS_TEST_TMPDIR/out" | grep -c "node4: its 5 links to others carry 0.54 of the others'")" -eq 2 ]
    [ "$(text "$BATS_TEST_TMPDIR/out" | grep -c "node.: its 5 links")" -eq 2 ]
}

@test "links of many pairs are matrices, not lines of plots" {
    command -v gnuplot || skip "no gnuplot"
    [ -e "$runs/plain/plots/allreduce-busbw.svg" ]
    [ -z "$(find "$runs/plain/plots" -name 'net-*')" ]
}

@test "a late rank is named once in the headlines, with its host" {
    [ "$(text bad | grep -c 'rank 2 (node3) is late: the others waited for it in 8[0-9.]* % of the samples')" -eq 2 ]
    [ "$(text plain | grep -c 'is late: ')" -eq 0 ]
    text plain | grep -Eq '^7 \| node8 \| 1[0-9.]* % \| 1[0-9.]* % \| 0 of 26 \| 30 %'
}

@test "the best bucket is named alone where its interval is apart" {
    text plain | grep -q 'best bucket: .* or .*: their intervals overlap'
    make_run "$BATS_TEST_TMPDIR/quiet" --noise .00001
    "$plumb" report "$BATS_TEST_TMPDIR/quiet"
    text "$BATS_TEST_TMPDIR/quiet" | grep -Eq 'resnet50 \| ring over tcp, 8 ranks \| .* \| best bucket: 16M, [0-9.]* ms \([0-9.]* to [0-9.]*\)$'
}

@test "several runs stand side by side, each with its series" {
    "$plumb" report "$runs/plain" "$runs/bad" --out "$BATS_TEST_TMPDIR/both"
    text "$BATS_TEST_TMPDIR/both" | grep -q '^ring over tcp, plain'
    text "$BATS_TEST_TMPDIR/both" | grep -q '^ring over tcp, bad'
}

@test "the page is readable on a phone, and its script quiet" {
    browser="$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)"
    [ -n "$browser" ] || skip "no chromium"
    command -v gnuplot || skip "no gnuplot"
    python3 "$top/tests/browser/browse.py" "$runs/bad/report.html" quiet fits_a_phone
    python3 "$top/tests/browser/browse.py" "$runs/few/report.html" plots_are_there
}
