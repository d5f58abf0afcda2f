#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# plumb report on made-up runs of a cluster: what an efficiency is held against, and a model; where rows are missing.

load made

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    cd "$BATS_TEST_TMPDIR" || return 1
}

# page OPTIONS: of a made-up cluster; what is on stdin (Python, `row` is a row) is done to each row of allreduce before.
page() {
    rm -rf run
    made_by tools/make-cluster.py run "$@"
    python3 -c "
import csv, sys
change = compile(sys.stdin.read(), 'change', 'exec')
rows = list(csv.DictReader(open('run/allreduce.csv')))
with open('run/allreduce.csv', 'w', newline='') as out:
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator='\n')
    writer.writeheader()
    for row in rows:
        exec(change, {'row': row})
        writer.writerow(row)
"
    "$plumb" report run > out 2> err
    sed -e 's/<svg.*<\/svg>//g' -e 's/<\/td><td[^>]*>/ | /g' -e 's/<\/th>/ | /g' -e 's/<[^>]*>//g' -e "s/&#39;/'/g" run/report.html > page
}

@test "the first number of ranks over several nodes is held against nothing, what follows against it, by name" {
    page --per-node 2 <<< ''
    grep -Eq '^128M \| .* \| .* \| [01]\.[0-9]+, from 4 ranks' page # of single launches: no interval
    [ "$(grep -c 'efficiency from 2 to' page)" -eq 0 ]
    page <<< ''
    [ "$(grep -c ', from 4 ranks' page)" -eq 0 ]
}

# Rows of 8 ranks, of 64 KiB and more, take FACTOR times as long.
slow_8() { # slow_8 FACTOR [options of make-cluster.py]
    page "${@:2}" <<< "
if row['ranks'] == '8' and row['size'] and int(row['size']) >= 2 ** 16 and row['metric'] in ('time', 'busbw', 'algbw'):
    for column in ('value', 'ci_low', 'ci_high'):
        row[column] = f\"{float(row[column]) * ($1 if row['metric'] == 'time' else 1 / $1):.9g}\""
}

@test "a wire that is 5 times as slow with 8 ranks is no model, and where that is stands there" {
    slow_8 5
    [ "$(grep -Ec "^model .* (8|4|2) ranks, [0-9]+[KM] .* ([2-5]\.[0-9]+|0\.[0-5][0-9]+) times " page)" -eq 3 ]
    [ "$(grep -c 'GB/s (' page)" -eq 0 ]
}

@test "what is off by more than chance has no intervals" {
    slow_8 1.3 --noise .01
    [ "$(grep -Ec "^model [0-9.]+ us [^(]*, 0\.[0-9]+ GB/s; .* [248] ranks .* 1\.[12][0-9]* times " page)" -eq 3 ] # no interval in brackets
}
