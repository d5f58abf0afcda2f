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

@test "the model is the one that the run's benchmark describes, whatever the name of the benchmark" {
    cp -r "$runs/plain" "$BATS_TEST_TMPDIR/foo"
    python3 - "$BATS_TEST_TMPDIR/foo" "$(dirname "$plumb")/plumb-allreduce" <<'END'
import json, os, subprocess, sys
run, bench = sys.argv[1:]
meta = json.load(open(run + "/run.json"))
rows = json.loads(subprocess.run([bench, "--describe"], stdout=subprocess.PIPE, check=True).stdout)["rows"]
meta["benchmarks"] = {"foo": rows}
json.dump(meta, open(run + "/run.json", "w"))
os.rename(run + "/allreduce.csv", run + "/foo.csv")
plan = open(run + "/plan.csv").read().replace("allreduce", "foo")
open(run + "/plan.csv", "w").write(plan)
END
    page() { sed -e 's/<[^>]*>/ /g' "$1/report.html" | grep -Eo "(model|forecast) .*(message|predicted).*"; }
    "$plumb" report "$BATS_TEST_TMPDIR/foo"
    page "$runs/plain" > "$BATS_TEST_TMPDIR/before"
    page "$BATS_TEST_TMPDIR/foo" > "$BATS_TEST_TMPDIR/after"
    [ "$(wc -l < "$BATS_TEST_TMPDIR/before")" -ge 4 ]
    cmp "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
    # one that was measured before benchmarks described it has the terms of then
    cp -r "$runs/plain" "$BATS_TEST_TMPDIR/then"
    python3 - "$BATS_TEST_TMPDIR" <<'END'
import json, sys
rows = json.load(open(sys.argv[1] + "/foo/run.json"))["benchmarks"]["foo"]
del rows["terms"]
meta = json.load(open(sys.argv[1] + "/then/run.json"))
meta["benchmarks"] = {"allreduce": rows}
json.dump(meta, open(sys.argv[1] + "/then/run.json", "w"))
END
    "$plumb" report "$BATS_TEST_TMPDIR/then"
    page "$BATS_TEST_TMPDIR/then" > "$BATS_TEST_TMPDIR/after"
    cmp "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
    # without terms there is no model
    sed -i 's/"terms": \[[^]]*\]/"terms": []/' "$BATS_TEST_TMPDIR/foo/run.json"
    "$plumb" report "$BATS_TEST_TMPDIR/foo"
    grep -q 'not fitted: no model of this operation is known' "$BATS_TEST_TMPDIR/foo/report.html"
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
    page="$BATS_TEST_TMPDIR/page"
    text plain > "$page"
    grep -Eq '^model 3[78]\.[0-9] us a message \([0-9. to]*\), 0\.118 GB/s' "$page"
    grep -Eq '^model 6\.[45][0-9] us a message \([0-9. to]*\), 0\.119 GB/s' "$page"
    [ "$(grep -Ec 'forecast 8 ranks predicted from 2 and 4: (1\.0[01]|0\.99) of measured at 128M' "$page")" -eq 3 ]
    # of one size there is no telling
    run text few
    [[ "$output" != *"forecast"* ]]
}

@test "two limits are two lines of different colours" {
    key="$(grep -A3 "<figure id='plot-scaling-busbw" "$runs/bad/report.html" | sed 's/<li>/\n/g' | grep 'ideal at')"
    [ "$(wc -l <<<"$key")" -ge 2 ]
    [ "$(grep -o 'ideal at [0-9.]* GB/s' <<<"$key" | sort -u | wc -l)" -eq "$(grep -o 'series-[0-9]*' <<<"$key" | sort -u | wc -l)" ]
}

@test "efficiency has an interval and its base; of single launches it has none" {
    text plain | grep -Eq 'efficiency from 2 to 8 ranks: [01]\.[0-9]+( \(no interval\))?'
    [ "$(text plain | grep -c 'efficiency from 2 to 8 ranks: [01]\.[0-9]* ([01]\.[0-9]* to')" -eq 0 ]
    make_run "$BATS_TEST_TMPDIR/launched" --launches 3
    "$plumb" report "$BATS_TEST_TMPDIR/launched"
    text "$BATS_TEST_TMPDIR/launched" | grep -q 'efficiency from 2 to 8 ranks: [01]\.[0-9]* ([01]\.[0-9]* to [01]\.[0-9]*)'
    text "$BATS_TEST_TMPDIR/launched" | grep -Eq '^128M \| .* \| (1\.00|0\.99[0-9]) \((0\.98|0\.99)[0-9]* to 1\.0[0-9]\)'
}

@test "ranks on several nodes are held against the fewest that are, not against those that share one" {
    make_run "$runs/pairs-a-node" --per-node 2
    "$plumb" report "$runs/pairs-a-node" >/dev/null
    text pairs-a-node | grep -q 'efficiency from 4 to 8 ranks'
    run text pairs-a-node
    [[ "$output" != *"efficiency from 2 to 8 ranks"* ]]
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
    [ "$(text bad | grep -c "node3: its 5 links carry 0.54 of the others'")" -eq 4 ] # and beside the models
    grep -q "^([0-9]*) node3: its 5 links" "$runs/bad.out"
    grep -q "^Weakest  slow: Network, tcp: node3: its 5 links carry 0.54 of the others'" "$runs/bad.out"
    [ "$(text bad | grep -c 'is .* below the median of its kind')" -eq 0 ]
    [ "$(text plain | grep -c 'links carry')" -eq 0 ]
    grep -q "<th scope='col' title='to node6'>node6</th>" "$runs/plain/report.html"
    # bandwidth at the largest size, and latency
    [ "$(grep -c "<figure class='matrix'>" "$runs/plain/report.html")" -eq 2 ]
}

@test "a host that is slow one way only is told so: both ways are in one matrix" {
    make_run "$BATS_TEST_TMPDIR/out" --slow-out 4
    "$plumb" report "$BATS_TEST_TMPDIR/out"
    [ "$(text "$BATS_TEST_TMPDIR/out" | grep -c "node4: its 5 links to others carry 0.54 of the others'")" -eq 4 ]
    [ "$(text "$BATS_TEST_TMPDIR/out" | grep -c "node.: its 5 links")" -eq 4 ]
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
    make_run "$BATS_TEST_TMPDIR/launched" --launches 3
    "$plumb" report "$BATS_TEST_TMPDIR/launched"
    text "$BATS_TEST_TMPDIR/launched" | grep -q 'best bucket: .* or .*: their intervals overlap'
    make_run "$BATS_TEST_TMPDIR/quiet" --noise .00001 --launches 3
    "$plumb" report "$BATS_TEST_TMPDIR/quiet"
    text "$BATS_TEST_TMPDIR/quiet" | grep -Eq 'resnet50 \| ring over tcp, 8 ranks \| .* \| best bucket: 16M, [0-9.]* ms \([0-9.]* to [0-9.]*\)$'
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

# What the page says of mpi's 128M on 8 nodes, made PERCENT of its limit by SOURCE, of operation OP.
above_says() { # above_says PERCENT SOURCE OP
    rm -rf "$BATS_TEST_TMPDIR/above"
    cp -r "$runs/plain" "$BATS_TEST_TMPDIR/above"
    edit_rows "$BATS_TEST_TMPDIR/above" "
for row in rows:
    if row['backend'] == 'mpi' and not row['model']:
        row['op'] = '$3'
        if row['metric'] == 'busbw' and row['size'] == str(2 ** 27) and row['ranks'] == '8':
            row.update(percent_of_limit='$1', limit=f\"{float(row['value']) * 100 / $1:.9g}\", limit_source='$2')"
    "$plumb" report "$BATS_TEST_TMPDIR/above" > /dev/null
    text "$BATS_TEST_TMPDIR/above" | grep -o '128M, 8 ranks: .* of the limit .*'
}

@test "no name of a library explains what is above the limit of its links" {
    for link in "node1 mlx5_0:1: sysfs: 100 Gb/s less InfiniBand framing at MTU 4096" \
        "node1 mlx5_0:1: sysfs: 100 Gb/s less RoCE v2 framing at MTU 4096" \
        "node1 eth0: sysfs: 100 Gb/s less TCP/IPv4 framing at MTU 1500"; do
        [[ "$(above_says 170 "$link" allreduce)" == *"nothing in the row explains it"* ]]
    done
}

@test "one rank alone sums nothing: it has no best bucket" {
    one="$BATS_TEST_TMPDIR/one"
    make_run "$one"
    edit_rows "$one" 'for row in rows: row["ranks"] = "1" if row["model"] == "resnet50" else row["ranks"]'
    "$plumb" report "$one"
    text "$one" | grep -q '^bert-large | ring over tcp, 8 ranks'
    [ "$(text "$one" | grep -c '^resnet50 | ring')" -eq 0 ]
}

@test "long times are told in ms, short ones in us" {
    grep -Eq '^Gradients .* [0-9.]+ ms  ' "$runs/plain.out"
    grep -Eq '^Allreduce latency .* [0-9.]+ us  ' "$runs/plain.out"
}

@test "whom the rows are of: pairs, and groups with their ranks; hosts with slots, clock and networks" {
    grep -q '<span>rows over a group: all 8 hosts, 16 ranks</span></p>' "$runs/plain/report.html"
    grep -q '<span>rows between (from to): node1 to node2, .* and 7 more</span>' "$runs/plain/report.html"
    [ "$(grep -c 'rows between' "$runs/few/report.html")" -eq 0 ]
    text plain | grep -q "^node2 | 10.0.0.2 | 2 | +0.00 s ± 0.02 | eth0 10.0.0.2 1 Gb/s, mlx5_0:1 100 Gb/s |"
    # of some hosts only, and of two groups
    some="$BATS_TEST_TMPDIR/some"
    cp -r "$runs/few" "$some"
    sed -i '2s/;node4.*//' "$some/plan.csv"
    "$plumb" report "$some"
    grep -q '<span>rows over a group: node1, node2, node3; all 8 hosts, 16 ranks</span>' "$some/report.html"
}

@test "a slow host is named beside the models that cannot describe it" {
    text bad | grep -q "^node3: its 5 links carry 0.54 of the others'. Communicators with a rank there"
    [ "$(text plain | grep -c 'Communicators with a rank')" -eq 0 ]
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
    tr '\n' ' ' < "$BATS_TEST_TMPDIR/out" | grep -q 'Allreduce .* failed .*([0-9]*) cannot reach node7'
    [ "$(grep -c 'Allreduce latency' "$BATS_TEST_TMPDIR/out")" -eq 0 ]
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
