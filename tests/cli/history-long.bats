#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb history: which changes it names, what it writes, and with which exit code, on made-up nightly runs.

load common
load history

@test "what else differed from the run before is told: the machine, the program, the rows, the choices" {
    told 0 'CPU governor: none to schedutil; plumb commit: 1234ab1 to 1234ab2' "$plumb" history "$shared/runs" --case latency
    python3 "$top/tests/tools/make-history.py" rows --runs 40 --step onednn@30=0.8 --column kernel@30=3.4.1
    told 0 'avx512_core to 3.4.1' "$plumb" history rows
    # what the benchmark chose where it was left to it: no other case, but no secret
    python3 "$top/tests/tools/make-history.py" chosen --runs 40 --step triad@28=0.9 --column isa_used@28=avx2
    sed -i 's/"commit": "1234ab1"/"commit": "1234ab0"/' chosen/*/run.json
    told 0 ' isa: avx512 to avx2' "$plumb" history chosen
    # CSV, JSON and the page have the same
    "$plumb" history "$shared/runs" --case triad --csv c.csv --html h.html --json > j.json
    grep -q '6.1.0-18-amd64 to 6.1.0-20-amd64' h.html
    python3 - << 'END'
import csv, json
row = next(csv.DictReader(open("c.csv")))
assert "6.1.0-18-amd64 to 6.1.0-20-amd64; " in row["differences"], row["differences"]
at = json.load(open("j.json"))["cases"][0]["changes"][0]["differing"][0]
assert (at["run"], at["run_before"]) == ("nightly-20260210-020000", "nightly-20260209-020000"), at
assert [(d["what"], d["may_weigh"]) for d in at["differences"]] == [
    ("kernel", True), ("plumb commit", True), ("NVIDIA driver", False)], at["differences"]
END
}

@test "a slow slip is told as steps, in every form" {
    LC_ALL=C run -0 "$plumb" history "$shared/slips" --csv c.csv
    [[ "$output" == *"memory triad"*"- worse: -"*"- worse: -"*"memory latency"*"- worse: +"* ]]
    python3 - << 'END'
import csv
total = {"triad": 1.0, "latency": 1.0}
for row in csv.DictReader(open("c.csv")):
    assert row["direction"] == "worse", row
    total["triad" if "triad" in row["label"] else "latency"] *= float(row["ratio"])
assert 0.82 < total["triad"] < 0.87 and 1.10 < total["latency"] < 1.15, total
END
}

# stolen DIR WORD FIRST LAST PERCENT: in these nights (the first is 0) others took so much of the CPU from the rows that hold WORD,
# which halves their values.
stolen() {
    python3 - "$@" << 'END'
import csv, glob, sys
folder, word, first, last, percent = sys.argv[1:]
for run in sorted(glob.glob(folder + "/*"))[int(first):int(last) + 1]:
    for name in glob.glob(run + "/*.csv"):
        rows = list(csv.DictReader(open(name)))
        if "steal_percent" not in rows[0]:
            continue
        for row in rows:
            if word in row.values() or word == "*":
                row["steal_percent"] = percent
                row["value"] = repr(float(row["value"]) / 2)
        out = csv.DictWriter(open(name, "w", newline=""), rows[0].keys(), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
END
}

@test "nights in which others took the CPU are no change: left out, counted, hollow; --steal says from what share on" {
    cp -R "$shared/calm" runs
    stolen runs triad 12 19 12.5
    told 0 'memory triad* GB/s, 12 * 8 *--steal' "$plumb" history runs --all --fail-on-change --html h.html
    [[ "$output" != *nan* ]]
    grep -q 'in 1 case ' h.html
    "$plumb" history runs --json > j.json
    python3 - << 'END'
import json
j = json.load(open("j.json"))
assert j["cases_with_taken_launches"] == 1 and j["runs_with_taken_cases"] == 8, j
triad, = (c for c in j["cases"] if "triad" in c["label"])
values = triad["values"]
assert [v["value"] is None for v in values] == [i >= 12 for i in range(20)], values
assert [v["taken_launches"] > 0 for v in values] == [i >= 12 for i in range(20)], values
assert all(0.4 < v["taken_value"] / values[0]["value"] < 0.6 for v in values[12:]), values
assert all(v["taken_value"] is None for v in values[:12]), values
END
    # all of them, or from a higher share on
    for steal in 100% 12.5%; do
        told 1 'worse: -* 20 *: memory triad' "$plumb" history runs --steal "$steal" --case triad --fail-on-change --within 20
    done
    run -0 "$plumb" history runs --steal 12.4% --case triad
    [[ "$output" != *"worse: "* ]]
    told 2 --steal "$plumb" history runs --steal 0%
    # a database keeps it with each launch
    for run in runs/*; do
        "$plumb" check "$run" --history h.db --update-baseline > out 2>&1 || true
    done
    for steal in 2% 12.5%; do
        series runs --steal "$steal" > folders
        series h.db --steal "$steal" > db
        cmp folders db
    done
    series runs --steal 2% > left-out # another tale
    run ! cmp -s left-out folders
}

@test "a night that others took is no baseline: it is said, and takes no other's place" {
    cp -R "$shared/calm" runs
    mapfile -t nights < <(find runs -mindepth 1 -maxdepth 1 | sort)
    stolen runs '*' 2 3 30
    judge() { # judge EXIT NIGHT OPTION...: what it says, on one line
        run "-$1" "$plumb" check "${nights[$2]}" --all --history h.db --baseline history:2 "${@:3}"
        output=$(tr -s ' \n' ' ' <<< "$output")
    }
    judge 3 0 --update-baseline
    judge 0 1 --update-baseline # one launch shows no spread
    for night in 2 3; do
        judge 0 "$night" --update-baseline
        [[ "$output" == *"--steal"* ]]
    done
    judge 0 4
    [[ "$output" == *"baseline "*"2 runs "*"nightly-20260102-020000; 2 "*"--steal"* ]]
    judge 1 4 --steal 100%
    [[ "$output" == *"baseline "*"2 runs "*"nightly-20260104-020000"* ]]
    # nothing but such nights
    judge 3 2 --update-baseline --history only.db
    judge 3 4 --history only.db
    [[ "$output" == *"next "*"--steal 100%"*"'only.db'"* ]]
    judge 0 3 --accept
}

@test "--all shows the rest, --case, --host, --suite and --since pick" {
    run "$plumb" history "$shared/runs" --all
    [[ "$output" == *"gemm f32"* ]]
    run "$plumb" history "$shared/runs" --case latency
    [[ "$output" == *" 60 "*"2026-01-01"*"2026-03-01" ]]
    run "$plumb" history "$shared/runs" --since 2026-02-15
    [[ "$output" == *" 15 "*2026-02-15* && "$output" != *"-5."*triad* ]]
    for pick in "--case nothing" "--host elsewhere" "--suite other" "--since 2030"; do
        # shellcheck disable=SC2086 # two words
        told 2 "${pick% *} '${pick#* }' " "$plumb" history "$shared/runs" $pick
    done
}

@test "--since shows the changes since then, which are looked for in all runs" {
    for since in 2026-02-15 2026-02-26 2026-03-01; do
        told 1 'memory latency*worse: +*nightly-20260227' "$plumb" history "$shared/runs" --since $since --fail-on-change
        [[ "$output" == *"none to schedutil"* ]]
        [[ "$output" != *"memory triad"* ]]
    done
    told 0 'nightly-20260210* kernel* 18 ' "$plumb" history "$shared/runs" --since 2026-02-12 --case triad
    run -0 "$plumb" history "$shared/runs" --since 2026-02-13 --case triad
    [[ "$output" != *"worse: "* ]]
    told 0 'memory triad*worse: -*nightly-202603' "$plumb" history "$shared/slips" --since 2026-04-01 --all --html h.html
    [ -s h.html ]
}

@test "a folder with a history, or with runs in runs/, is read; an empty one tells how to begin" {
    mkdir -p nights empty
    told 2 "'empty'*--update-baseline" "$plumb" history empty
    told 2 "'results'*--update-baseline" "$plumb" history
    cp -R "$shared/calm" nights/runs
    run -0 --separate-stderr "$plumb" history nights
    [[ "$output" == *" 20 "* ]]
    [[ "$stderr" == *"'nights'"*"'nights/runs'"* ]]
    "$plumb" check "$(find "$shared/one" -mindepth 1 -maxdepth 1)" --update-baseline --history nights/history.db > out 2>&1 || true
    run -0 --separate-stderr "$plumb" history nights
    [[ "$output" == *": 1 run,"* ]]
    [[ "$stderr" == *"'nights/history.db'"* ]]
}

@test "cases of different nights that would read the same are called by all that makes them" {
    python3 "$top/tests/tools/make-history.py" runs --runs 2
    # triad with other pages on the first night: neither night says which, since they do not vary in it
    python3 - << 'END'
import csv, glob
name = sorted(glob.glob("runs/*/memory.csv"))[0]
rows = list(csv.DictReader(open(name)))
for row in rows:
    if row["op"] == "triad":
        row["pages"] = "small"
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
assert len(triad) == 2 and any(" pages=small" in t for t in triad) and any(" pages=thp" in t for t in triad), triad
assert any(label.startswith("memory latency, ") for label in labels), labels
END
}

@test "a case without a value in the newest runs is told, and --fail-on-change ends with 4 until it is back" {
    python3 "$top/tests/tools/make-history.py" gone --runs 30 --gap triad@20..29
    told 0 'missing: * 10 *nightly-20260120-020000 (2026-01-20)' "$plumb" history gone
    [ "$(grep -c 'missing: ' <<<"$output")" -eq 1 ]
    run --separate-stderr -4 "$plumb" history gone --fail-on-change
    [[ "${lines[-1]}" == "--fail-on-change: 1 "*": memory triad"* ]]
    "$plumb" history gone --json > h.json
    grep -q '"newest_runs_without_value": 10' h.json
    grep -q '"cases_without_value_in_the_newest_run": 1' h.json
    "$plumb" history gone --html h.html > out
    grep -q '1 case .*: memory triad' h.html
    run -0 "$plumb" history gone --fail-on-change --case latency
    # a gap that has ended, and runs of some cases alone, are none
    python3 "$top/tests/tools/make-history.py" back --runs 30 --gap triad@20..28
    run -0 "$plumb" history back --fail-on-change
    for run in gone/nightly-202601{2[1-9],30}*; do
        sed -i 's/"suite": "nightly"/&, "only": "*latency*"/' "$run/run.json"
    done
    grep -q '"only"' gone/nightly-20260130*/run.json
    run -0 "$plumb" history gone --fail-on-change
}

@test "a case taken out of the suite fails once, and a case in another unit is two series, which is told" {
    python3 "$top/tests/tools/make-history.py" out --runs 30 --gap triad@29..29
    sed -i 's/"config_hash": "[^"]*"/"config_hash": "other"/' out/nightly-20260130*/run.json
    grep -q '"config_hash": "other"' out/nightly-20260130*/run.json
    run -4 "$plumb" history out --fail-on-change
    python3 "$top/tests/tools/make-history.py" out2 --runs 30 --gap triad@20..29
    for run in out2/nightly-202601{2[1-9],30}*; do
        sed -i 's/"config_hash": "[^"]*"/"config_hash": "other"/' "$run/run.json"
    done
    run -0 "$plumb" history out2 --fail-on-change
    python3 "$top/tests/tools/make-history.py" unit --runs 30
    for run in unit/nightly-202601{2[1-9],30}*; do
        sed -i 's#GB/s#Gb/s#' "$run/memory.csv"
    done
    told 0 'unit: *GB/s *nightly-20260120-020000 (2026-01-20)* Gb/s ' "$plumb" history unit
}

@test "a damaged run folder is named and left out, and the exit is 5; where all are, nothing is shown" {
    cp -R "$shared/calm" some
    printf '{' > some/nightly-20260105-020000/run.json
    printf 'no,plan\n' > some/nightly-20260107-020000/plan.csv
    rm some/nightly-20260109-020000/memory.csv
    run -5 --separate-stderr "$plumb" history some --all --html h.html
    mapfile -t said <<< "$stderr"
    [ "${#said[@]}" -eq 3 ]
    [[ "${said[0]}" == "plumb history: "*some/nightly-20260105-020000/run.json*" 1"* ]]
    [[ "${said[1]}" == *some/nightly-20260107-020000/plan.csv* ]]
    [[ "${said[2]}" == *some/nightly-20260109-020000* ]]
    [[ "$output" == *" 17 runs"* ]]
    [[ "${lines[-1]}" == "3 run folders "* ]]
    grep -q '3 run folders ' h.html
    run -5 --separate-stderr "$plumb" history some --json
    python3 -c 'import json, sys; assert len(json.loads(sys.argv[1])["runs_left_out"]) == 3' "$output"
    # the same among folders that are named one by one
    run -5 --separate-stderr "$plumb" history some/nightly-20260105-020000 some/nightly-20260106-020000
    [[ "$output" == *": 1 run,"*"1 run folder "* ]]
    # a loss is not hidden by it
    cp -R "$shared/runs" lost
    printf '{' > lost/nightly-20260105-020000/run.json
    run -1 "$plumb" history lost --fail-on-change
    run -5 "$plumb" history lost --fail-on-change --case triad
    # nothing left
    cp -R "$shared/one" broken
    printf '{' > "$(find broken -name run.json)"
    run -5 --separate-stderr "$plumb" history broken
    [ -z "$output" ]
    [[ "$stderr" == *broken* ]]
}

@test "values that are no number, or 0, are left out and counted" {
    cp -R "$shared/calm" runs
    sed -i '2s/,GB\/s,[0-9.]*,/,GB\/s,0,/' runs/nightly-20260105-020000/memory.csv
    sed -i '2s/,GB\/s,[0-9.]*,/,GB\/s,nan,/' runs/nightly-20260106-020000/memory.csv
    told 0 ' 18 runs' "$plumb" history runs --case triad --all
}
