#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb history: which changes it names, what it writes, and with which exit code, on made-up nightly runs.

bats_require_minimum_version 1.5.0
load history

@test "each change is named with its run, size, direction and commit; a stray run is none" {
    run --separate-stderr "$plumb" history "$shared/runs"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ "$output" == *"memory triad, regular, 128 MiB: bandwidth"* ]]
    [[ "$output" == *"worse: -"[456]"."*"nightly-20260210-020000 (2026-02-10T02:00:00Z"* ]]
    [[ "$output" == *"plumb 0.1.0 1234ab1)"* ]]
    # Latency went up, which is worse.
    [[ "$output" == *"memory latency"*"worse: +"*"nightly-20260227"* ]]
    [[ "$output" != *onednn* ]]
    [[ "$output" == *"2 of 3 cases "*" 60 runs, 2026-01-01 to 2026-03-01"*"--all"* ]]
}

@test "a database tells what the folders do, also where a run was added before it was resumed" {
    cp -R "$shared/runs" runs
    # killed in the 45th night: the second half of its launches was still to come
    mv runs/nightly-20260214-020000 whole
    cp -R whole runs/nightly-20260214-020000
    python3 - << 'END'
import csv, json
folder = "runs/nightly-20260214-020000/"
rows = list(csv.reader(open(folder + "plan.csv")))
for row in rows[len(rows) // 2:]:
    row[0] = "todo"
csv.writer(open(folder + "plan.csv", "w", newline=""), lineterminator="\n").writerows(rows)
meta = json.load(open(folder + "run.json"))
meta["state"] = "interrupted"
json.dump(meta, open(folder + "run.json", "w"))
END
    for run in runs/*; do
        "$plumb" check "$run" --history h.db --accept > out 2>&1 || true
    done
    series runs > folders
    series h.db > db
    cmp folders db
    series "$shared/runs" > whole-runs
    run ! cmp -s whole-runs db
    rm -r runs/nightly-20260214-020000
    mv whole runs/nightly-20260214-020000
    "$plumb" check runs/nightly-20260214-020000 --history h.db --update-baseline > out 2>&1 || true
    series runs > folders
    series h.db > db
    cmp folders db
    cmp whole-runs db
    [[ "$(cat out)" != *"not added"* ]]
}

@test "a view exits 0; --fail-on-change is 1 when the newest runs tell of a change for the worse" {
    run "$plumb" history "$shared/runs"
    [ "$status" -eq 0 ]
    run "$plumb" history "$shared/runs" --fail-on-change
    [ "$status" -eq 1 ]
    [[ "${lines[-1]}" == "--fail-on-change: 1 case "*": memory latency,"* ]]
    run --separate-stderr "$plumb" history "$shared/runs" --fail-on-change --json
    [ "$status" -eq 1 ]
    [[ "$stderr" == "--fail-on-change: 1 case"* ]]
    run "$plumb" history "$shared/runs" --fail-on-change --case triad
    [ "$status" -eq 0 ]
    [[ "$output" != *"--fail-on-change:"* ]]
    run "$plumb" history "$shared/runs" --fail-on-change --case triad --within 30
    [ "$status" -eq 1 ]
    [[ "${lines[-1]}" == *"newest 30 runs: memory triad"* ]]
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
    [[ "$output" == *"'empty'"* ]]
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
