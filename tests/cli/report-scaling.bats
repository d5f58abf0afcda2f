#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb report on made-up runs of a cluster: what an efficiency and a forecast are held against, where rows are missing.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    cd "$BATS_TEST_TMPDIR" || return 1
}

# page OPTIONS: of a made-up cluster; what is on stdin (Python, `row` is a row) is done to each row of allreduce before.
page() {
    rm -rf run
    python3 "$top/tests/tools/make-cluster.py" run "$@"
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

@test "a forecast takes two smaller numbers of ranks that have a value, and names those" {
    page <<< ''
    grep -q 'forecast 8 ranks predicted from 2 and 4: ' page
    page << 'END'
if row["ranks"] == "4":
    row.update(status="failed", value="", ci_low="", ci_high="", samples="", reason="gone")
END
    grep -q "<section id='scaling'>" run/report.html
    [ "$(grep -c forecast page)" -eq 0 ]
}

@test "the first number of ranks over several nodes is held against nothing, what follows against it, by name" {
    page --per-node 2 <<< ''
    grep -Eq '^128M \| .* \| the first over several nodes \| .* \| [01]\.[0-9]+ \([0-9. to]+\), from 4 ranks' page
    [ "$(grep -c 'efficiency from 2 to' page)" -eq 0 ]
    page <<< ''
    [ "$(grep -c 'the first over several nodes\|, from 4 ranks' page)" -eq 0 ]
}
