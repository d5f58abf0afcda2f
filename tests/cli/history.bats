#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb history: which changes it names, what it writes, and with which exit code, on made-up nightly runs.

bats_require_minimum_version 1.5.0

setup_file() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    shared="$(mktemp -d)"
    export top shared
    python3 "$top/tests/tools/make-history.py" "$shared/runs" --runs 60 --step triad@40=0.95 \
        --step latency@57=1.1 --once onednn@50=0.5 --gap triad@20..24
    python3 "$top/tests/tools/make-history.py" "$shared/calm" --runs 20
    python3 "$top/tests/tools/make-history.py" "$shared/one" --runs 1
}

teardown_file() {
    rm -rf "$shared"
}

setup() {
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    work="$(mktemp -d)"
    cd "$work" || return 1
}

teardown() {
    cd / || return 1
    rm -rf "$work"
}

@test "each change is named with its run, size, direction and commit; a stray run is none" {
    run --separate-stderr "$plumb" history "$shared/runs"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ "$output" == *"memory triad, regular, 128 MiB: bandwidth"* ]]
    [[ "$output" == *"worse: -"[456]"."*"from run nightly-20260210-020000 (2026-02-10T02:00:00Z"* ]]
    [[ "$output" == *"1234ab1; the run before had plumb 0.1.0 1234ab0"* ]]
    # Latency went up, which is worse.
    [[ "$output" == *"memory latency"*"worse: +"*"from run nightly-20260227"* ]]
    [[ "$output" != *onednn* ]]
    [[ "$output" == *"2 of 3 cases changed level in 60 runs, 2026-01-01 to 2026-03-01; in 1 no change"*"--all"* ]]
}

@test "a sparkline marks the step, in ASCII where the locale has no UTF-8" {
    LC_ALL=C run "$plumb" history "$shared/runs" --case triad
    [ "$status" -eq 0 ]
    [[ "$output" == *$'\n'"    "*" ^"* ]]
    [ "$(printf '%s' "$output" | LC_ALL=C tr -d '\000-\177' | wc -c)" -eq 0 ]
    LC_ALL=C.UTF-8 run "$plumb" history "$shared/runs" --case triad
    [[ "$output" == *█* ]]
}

@test "--all shows the rest, --case, --host, --suite and --since pick" {
    run "$plumb" history "$shared/runs" --all
    [[ "$output" == *"gemm f32, onednn"* ]]
    run "$plumb" history "$shared/runs" --case latency
    [[ "$output" == *"1 of 1 case changed level in 60 runs, 2026-01-01 to 2026-03-01" ]]
    run "$plumb" history "$shared/runs" --since 2026-02-15
    [[ "$output" == *"in 15 runs, 2026-02-15 to"* && "$output" != *"-5."*triad* ]]
    for pick in "--case nothing" "--host elsewhere" "--suite other" "--since 2030"; do
        # shellcheck disable=SC2086 # two words
        run "$plumb" history "$shared/runs" $pick
        [ "$status" -eq 2 ]
        [[ "$output" == *"no case there: ${pick% *} '${pick#* }' "* ]]
    done
}

@test "a filter that leaves nothing is named, with what there is; --since takes dates and days alone" {
    run "$plumb" history "$shared/runs" --host elsewhere --case triad
    [[ "$output" == *"--host 'elsewhere' leaves none; there is 'loaner-7'" ]]
    run "$plumb" history "$shared/runs" --host loaner-7 --suite other
    [[ "$output" == *"--suite 'other' leaves none; there is 'nightly'" ]]
    run "$plumb" history "$shared/runs" --case nothing --since 2030
    [[ "$output" == *"--case 'nothing' stands in the label or key of none of 3, such as 'gemm f32"* ]]
    run "$plumb" history "$shared/runs" --case triad --since 2030-01
    [[ "$output" == *"--since '2030-01' leaves none; the newest run that has one began 2026-03-01T02:00:00Z" ]]
    for since in 2026-02-30 yesterday 0d ""; do
        run -2 "$plumb" history "$shared/runs" --since "$since"
        [[ "$output" == *"--since '$since' is no date: 2025-01-31"* ]]
    done
    run -0 "$plumb" history "$shared/runs" --since 36500d
    [[ "$output" == *"in 60 runs"* ]]
}

@test "a folder with a history, or with runs in runs/, is read; an empty one tells how to begin" {
    mkdir -p nights empty
    run -2 "$plumb" history empty
    [[ "$output" == *"no run folder in 'empty', and no history.db: "*"--update-baseline"* ]]
    run -2 "$plumb" history
    [[ "$output" == *"there is no folder 'results' here"*"--update-baseline begins the history results/history.db"* ]]
    cp -R "$shared/calm" nights/runs
    run -0 --separate-stderr "$plumb" history nights
    [[ "$output" == *"in 20 runs"* ]]
    [[ "$stderr" == *"'nights' holds no run itself; read is 'nights/runs'"* ]]
    "$plumb" check "$(find "$shared/one" -mindepth 1 -maxdepth 1)" --update-baseline --history nights/history.db > out 2>&1 || true
    ! grep -q 'built without SQLite' out || skip "built without SQLite"
    run -0 --separate-stderr "$plumb" history nights
    [[ "$output" == *"in 1 run,"* ]]
    [[ "$stderr" == *"read is 'nights/history.db'"* ]]
}

@test "cases of different nights that would read the same are called by all that makes them" {
    python3 "$top/tests/tools/make-history.py" runs --runs 2
    # triad with other threads on the first night: neither night says how many, since they do not vary in it
    python3 - << 'END'
import csv, glob
name = sorted(glob.glob("runs/*/memory.csv"))[0]
rows = list(csv.DictReader(open(name)))
for row in rows:
    if row["op"] == "triad":
        row["threads"] = "7"
out = csv.DictWriter(open(name, "w"), rows[0].keys(), lineterminator="\n")
out.writeheader()
out.writerows(rows)
END
    "$plumb" history runs --all --json > j.json
    python3 - << 'END'
import json
cases = json.load(open("j.json"))["cases"]
labels = [c["label"] for c in cases]
assert len({c["key"] for c in cases}) == len(cases) == len(set(labels)) == 4, labels
triad = [label for label in labels if "triad" in label]
assert len(triad) == 2 and any(" threads=7" in t for t in triad) and any(" threads=2" in t for t in triad), triad
assert any(label.startswith("memory latency, ") for label in labels), labels
END
}

@test "a view exits 0; --fail-on-change is 1 when the newest runs tell of a change for the worse" {
    run "$plumb" history "$shared/runs"
    [ "$status" -eq 0 ]
    run "$plumb" history "$shared/runs" --fail-on-change
    [ "$status" -eq 1 ]
    [[ "${lines[-1]}" == "--fail-on-change: 1 case changed for the worse, first told by the newest run: memory latency,"* ]]
    run --separate-stderr "$plumb" history "$shared/runs" --fail-on-change --json
    [ "$status" -eq 1 ]
    [[ "$stderr" == "--fail-on-change: 1 case"* ]]
    run "$plumb" history "$shared/runs" --fail-on-change --case triad
    [ "$status" -eq 0 ]
    [[ "$output" != *"--fail-on-change:"* ]]
    run "$plumb" history "$shared/runs" --fail-on-change --case triad --within 30
    [ "$status" -eq 1 ]
    [[ "${lines[-1]}" == *"first told by one of the newest 30 runs: memory triad"* ]]
    run "$plumb" history "$shared/calm" --fail-on-change --within 30
    [ "$status" -eq 0 ]
}

@test "--json has every case with its values, --csv a line a change" {
    "$plumb" history "$shared/runs" --json --csv c.csv > j.json
    python3 - << 'END'
import csv, json
j = json.load(open("j.json"))
cases = {c["label"].split(",")[0]: c for c in j["cases"]}
assert j["runs"] == 60 and len(j["cases"]) == 3
triad = cases["memory triad"]
assert len(triad["values"]) == 55 and len(triad["changes"]) == 1
change = triad["changes"][0]
assert change["direction"] == "worse" and change["ratio_low"] < 0.95 < change["ratio_high"]
assert change["run"]["name"] == "nightly-20260210-020000"
assert cases["gemm f32"]["changes"] == []
rows = list(csv.DictReader(open("c.csv")))
assert [r["direction"] for r in rows] == ["worse", "worse"]
assert float(next(r for r in rows if "triad" in r["label"])["ratio"]) == change["ratio"] or \
    abs(float(next(r for r in rows if "triad" in r["label"])["ratio"]) - change["ratio"]) < 1e-8
END
}

@test "--csv - is stdout, in place of the text; with --json it is refused" {
    "$plumb" history "$shared/runs" --csv c.csv > /dev/null
    "$plumb" history "$shared/runs" --csv - > out
    cmp c.csv out
    [ ! -e ./- ]
    run -2 "$plumb" history "$shared/runs" --csv - --json
    [[ "$output" == *"both go to stdout"* ]]
    "$plumb" history --help | grep -q "'-' is"
}

@test "--html is one page that asks for nothing, and its plots are beside it" {
    "$plumb" history "$shared/runs" --html h.html
    grep -q '</html>' h.html
    grep -q 'nightly-20260210-020000' h.html
    # its table wraps, and is not cut off
    grep -q '#changes td,#changes th{white-space:normal' h.html
    grep -q "<span class='whole'>2026-02-10T02:00:00Z</span> to <span" h.html
    run grep -Ec "@import|url\(|https?://|<script" h.html
    [ "$output" -eq 0 ]
    command -v gnuplot || skip "no gnuplot"
    [ "$(find h-plots -name '*.svg' | wc -l)" -eq 2 ]
    [ "$(find h-plots -name '*.png' | wc -l)" -eq 2 ]
    [ "$(grep -c '<figure>' h.html)" -eq 2 ]
    [ ! -e h.html.new ]
}

@test "one run and two runs tell nothing, and it says so" {
    run "$plumb" history "$shared/one"
    [ "$status" -eq 0 ]
    [[ "$output" == *"0 of 3 cases changed level in 1 run,"* ]]
    [[ "$output" == *"3 of them have fewer than 11 runs, in which no change can be told"* ]]
    run "$plumb" history "$shared/one" --case triad
    [[ "$output" == *"it has fewer than 11 runs"* ]]
    run "$plumb" history "$shared/one" --all
    [[ "$output" == *" 1 run: too few to tell"* ]]
    cp -R "$shared/one" two
    cp -R "$(find "$shared/calm" -maxdepth 1 -name '*20260102*')" two/
    run "$plumb" history two --all --html h.html
    [ "$status" -eq 0 ]
    [[ "$output" == *"2 runs: too few to tell"* ]]
}

@test "a database that is not there, or is not one of plumb, is refused" {
    command -v sqlite3 || skip "no sqlite3"
    run "$plumb" history none.db
    [ "$status" -eq 2 ]
    sqlite3 other.db 'create table t(x); insert into t values(1)'
    run "$plumb" history other.db
    [ "$status" -eq 5 ]
    [[ "$output" == *"other.db"* ]]
    printf 'this is no database' > text.db
    run "$plumb" history text.db
    [ "$status" -eq 5 ]
}

@test "what is wrong is named: no folder, a damaged run, a file among folders, an unknown option" {
    run "$plumb" history nowhere
    [ "$status" -eq 2 ]
    [[ "$output" == *"'nowhere'"* ]]
    mkdir empty
    run "$plumb" history empty
    [ "$status" -eq 2 ]
    [[ "$output" == *"no run folder in 'empty'"* ]]
    cp -R "$shared/one" broken
    printf '{' > "$(find broken -name run.json)"
    run "$plumb" history broken
    [ "$status" -eq 5 ]
    touch file
    run "$plumb" history "$shared/one" file
    [ "$status" -eq 2 ]
    [[ "$output" == *"'file' is a file"* ]]
    run "$plumb" history --jsn
    [ "$status" -eq 2 ]
    [[ "$output" == *"json"* ]]
    run "$plumb" history "$shared/one" --csv /nowhere/c.csv
    [ "$status" -eq 4 ]
    [[ "$output" == *"cannot write '/nowhere/c.csv'"* ]]
    run "$plumb" history "$shared/one" --html /nowhere/h.html
    [ "$status" -eq 4 ]
}

@test "values that are no number, or 0, are left out and counted" {
    cp -R "$shared/calm" runs
    sed -i '2s/,GB\/s,[0-9.]*,/,GB\/s,0,/' runs/nightly-20260105-020000/memory.csv
    sed -i '2s/,GB\/s,[0-9.]*,/,GB\/s,nan,/' runs/nightly-20260106-020000/memory.csv
    run "$plumb" history runs --case triad --all
    [ "$status" -eq 0 ]
    [[ "$output" == *" 18 runs"* ]]
    [[ "$output" == *"1 case has values that are no number above 0"* ]]
}

@test "without any path: results/history.db, else results/" {
    run "$plumb" history
    [ "$status" -eq 2 ]
    [[ "$output" == *"'results'"* ]]
    cp -R "$shared/one" results
    run "$plumb" history
    [ "$status" -eq 0 ]
    "$plumb" history --help | grep -q 'results/history.db'
}
