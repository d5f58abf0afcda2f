#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb history: which changes it names, what it writes, and with which exit code, on made-up nightly runs.

load common
load history

@test "each change is named with its run, size, direction and commit; a stray run is none" {
    run -0 --separate-stderr "$plumb" history "$shared/runs"
    [ -z "$stderr" ]
    [[ "${lines[0]}" == "memory latency, "*" is "*" % slower since 27 Feb 2026 (run nightly-20260227-"*"memory triad, regular, 128 MiB is "[456].""*" % slower since 10 Feb 2026 (run nightly-20260210-020000); 1 other case unchanged" ]]
    [[ "$output" == *"memory triad, regular, 128 MiB: bandwidth"* ]]
    [[ "$output" == *"worse: -"[456]"."*"nightly-20260210-020000 (2026-02-10T02:00:00Z"* ]]
    [[ "$output" == *"plumb 0.1.0 1234ab1)"* ]]
    # Latency went up, which is worse.
    [[ "$output" == *"memory latency"*"worse: +"*"nightly-20260227"* ]]
    [[ "$output" != *onednn* ]]
    [[ "$output" == *" 60 "*2026-01-01*2026-03-01*"--all"* ]]
}

@test "of a case that changed more than once, today's level is told against the first, too" {
    python3 "$top/tests/tools/make-history.py" steps --runs 60 --step triad@20=0.80 --step triad@40=1.075 \
        --step latency@20=0.80 --step latency@40=1.075 --step onednn@20=0.80 --step onednn@40=1.25
    run -0 --separate-stderr "$plumb" history steps
    [[ "${lines[0]}" == *"triad"*" faster since 10 Feb 2026 (run nightly-20260210-020000), 1"[345].?" % slower than at first"* ]]
    [[ "${lines[0]}" == *"latency"*" slower since 10 Feb 2026 (run nightly-20260210-020000), 1"[345].?" % faster than at first"* ]]
    [[ "${lines[0]}" == *"gemm f32"*" faster since 10 Feb 2026 (run nightly-20260210-020000), as at first"* ]]
    run -0 --separate-stderr "$plumb" history "$shared/runs"
    [[ "${lines[0]}" != *"at first"* ]]
}

@test "--fail-on-change is 1 when the newest runs tell of a change for the worse" {
    run -1 "$plumb" history "$shared/runs" --fail-on-change
    [[ "${lines[-1]}" == "--fail-on-change: 1 "*"memory latency,"* ]]
    run -1 --separate-stderr "$plumb" history "$shared/runs" --fail-on-change --json
    [[ "$stderr" == "--fail-on-change: 1 "* ]]
    run -0 "$plumb" history "$shared/runs" --fail-on-change --case triad
    [[ "$output" != *"--fail-on-change:"* ]]
    run -1 "$plumb" history "$shared/runs" --fail-on-change --case triad --within 30
    [[ "${lines[-1]}" == *" 30 "*"memory triad"* ]]
    run -0 "$plumb" history "$shared/calm" --fail-on-change --within 30
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
assert change["run"] == "nightly-20260210-020000"
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
    told 2 '--json*--csv' "$plumb" history "$shared/runs" --csv - --json
}

@test "a database that is not there, or is not one of plumb, is refused" {
    command -v sqlite3 || skip "no sqlite3"
    run -2 "$plumb" history none.db
    sqlite3 other.db 'create table t(x); insert into t values(1)'
    told 5 other.db "$plumb" history other.db
    printf 'this is no database' > text.db
    run -5 "$plumb" history text.db
}

@test "what is wrong is named: no folder, a damaged run, a file among folders, an unknown option" {
    told 2 "'nowhere'" "$plumb" history nowhere
    touch file
    told 2 "'file'" "$plumb" history "$shared/one" file
    told 2 json "$plumb" history --jsn
    told 4 "'/nowhere/c.csv'" "$plumb" history "$shared/one" --csv /nowhere/c.csv
    run -4 "$plumb" history "$shared/one" --html /nowhere/h.html
}
