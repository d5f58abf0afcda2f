#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run: plans, launches and faults, on the null benchmark.

load common
load run

# waits: for launches that hang

@test "a suite's name that is mistyped: the nearest is told, and none where none is near" {
    mkdir configs
    small_suite
    cp t.yaml configs/nightly.yaml
    cp t.yaml configs/weekly.yaml
    export PLUMB_CONFIGS=$work/configs
    "$plumb" run nightly --dry-run > plan
    told 2 "'nihgtly' *'nightly'*?plumb list?" "$plumb" run nihgtly --dry-run
    told 2 "'monthly-in-full' *configs'*?plumb list?" "$plumb" run monthly-in-full --dry-run
}

@test "--repeat launches every case so often, whatever the suite says" {
    small_suite
    "$plumb" run t.yaml --dry-run --repeat 7 > plan
    [ "$(tail -n +2 plan | wc -l)" -eq 56 ]
    [ "$(tail -n +2 plan | cut -d, -f3 | sort -n | tail -n 1)" -eq 7 ]
    "$plumb" run t.yaml --dry-run --repeat 1 > plan
    [ "$(tail -n +2 plan | wc -l)" -eq 8 ]
}

@test "the same seed plans the same cases in the same order, another seed another; that is what is run" {
    small_suite
    "$plumb" run t.yaml --dry-run --seed 7 > a
    "$plumb" run t.yaml --dry-run --seed 7 > b
    "$plumb" run t.yaml --dry-run --seed 8 > c
    cmp a b
    run cmp -s a c
    [ "$status" -ne 0 ]
    diff <(tail -n +2 a | cut -d, -f2- | sort) <(tail -n +2 c | cut -d, -f2- | sort)
    [ "$(wc -l < a)" -eq 17 ]
    # the order is what is run, and launches of a case do not draw the same data
    "$plumb" run t.yaml --seed 7 --out r --no-report
    diff <(tail -n +2 a | cut -d, -f2,3) <(paste -d, <(column r/null.csv case) <(column r/null.csv repeat))
    [ "$(paste -d' ' <(column r/null.csv noise) <(column r/null.csv number) <(column r/null.csv value) | grep '^normal 1 ' | sort -u | wc -l)" -eq 2 ]
}

@test "plumb list counts the launches of a suite as a run plans them" {
    "$plumb" list > listed
    for suite in quick net; do
        "$plumb" run "$suite" --dry-run > plan.csv 2> said
        planned="$(($(wc -l < plan.csv) - 1))"
        grep -q "^  $suite .*($(awk -F, 'NR > 1 {print $2}' plan.csv | sort -u | wc -l) cases, $planned launches[;)]" listed
    done
}

@test "of a run folder that may not be read, no command says that it is none" {
    local as=()
    mkdir closed
    cp "$plumb" program
    chmod a+rx . program
    if [ "$EUID" -eq 0 ]; then
        command -v setpriv || skip "no setpriv"
        as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    fi
    chmod 0 closed
    for command in "report closed" "history closed" "compare closed closed"; do
        # shellcheck disable=SC2086 # several words
        run -4 ${as[@]+"${as[@]}"} ./program $command
        [[ "$output" == *?closed?": Permission denied" ]]
    done
}

@test "every sample is kept, and the row's median is that of its samples" {
    small_suite
    "$plumb" run t.yaml --out r --no-report
    python3 - <<'END'
import csv, statistics
samples = {}
for s in csv.DictReader(open("r/samples/null.csv")):
    assert s["origin"] == "simulated" and s["disturbed"] == "", s
    samples.setdefault((s["case"], s["repeat"]), []).append(float(s["value"]))
rows = list(csv.DictReader(open("r/null.csv")))
assert len(rows) == 16, len(rows)
for row in rows:
    own = samples[row["case"], row["repeat"]]
    assert len(own) == int(row["samples"]), row
    assert abs(statistics.median(own) - float(row["value"])) < 1e-6 * float(row["value"]), row
    assert row["run"] == "r" and row["origin"] == "simulated"
END
}

@test "faults: each gets a row with its code, the other cases run, the exit code tells" {
    suite <<'END'
  - {bench: "null", fault: [none, skip, fail, wrong, crash, garbage], repeat: 1}
  - {bench: "null", fault: hang, repeat: 1, timeout: 500ms}
END
    run -1 "$plumb" run t.yaml --out r --no-report
    python3 - <<'END'
import csv
rows = {r["fault"]: r for r in csv.DictReader(open("r/null.csv"))}
wanted = {"none": ("ok", "", "done"), "skip": ("skipped", "unsupported", "skip"), "fail": ("failed", "failed", "fail"),
          "wrong": ("wrong", "wrong-data", "fail"), "crash": ("failed", "crashed", "fail"), "garbage": ("failed", "no-rows", "fail"),
          "hang": ("failed", "timeout", "late")}
states = {r["arguments"].split()[1]: r["state"] for r in csv.DictReader(open("r/plan.csv"))}
assert {fault: (r["status"].replace("noisy", "ok"), r["code"], states[fault]) for fault, r in rows.items()} == wanted, rows
for fault, row in rows.items():
    assert (row["value"] != "") == (fault in ("none", "wrong")) and bool(row["reason"]) == (fault != "none"), row
    assert row["number"] == "1", (fault, "the parameters are missing")
assert "11" in rows["crash"]["reason"] and "0.5 s" in rows["hang"]["reason"], rows
END
    sed -i 's/, wrong, /, /' t.yaml
    run -4 "$plumb" run t.yaml --out q --no-report
}

@test "a suite that is wrong is refused with file, line and what is allowed" {
    printf '  - bench: "null"\n    noise: [normal, loud]\n' | suite
    told 2 "t.yaml:6:*'loud'*none, normal, lognormal" "$plumb" run t.yaml --out r
    [ ! -e r ]
}

@test "--only, given several times: what any of them takes, wherever the options stand" {
    small_suite
    "$plumb" run --only 'number 2 --noise none' -o x t.yaml --only='number 4*normal' --dry-run > out
    [ "$(tail -n +2 out | cut -d, -f5 | sort | uniq -c | awk '{ print $1, $3, $5 }' | xargs)" = "2 2 none 2 4 normal" ]
    "$plumb" run t.yaml --dry-run --only 'number 2 --noise none|number 4*normal' > same
    diff out same
    # What is the value of another option is no --only.
    "$plumb" run t.yaml --out --only --dry-run --only 'number 2 --noise none' > out
    [ "$(tail -n +2 out | wc -l)" -eq 2 ]
    told 2 "--only*'this|that'" "$plumb" run t.yaml --dry-run --only this --only that
}

@test "without a terminal a line now and then says how far it is, and none before its time" {
    small_suite
    local line='^plumb run: [0-9]+ of 16 .* [0-9]+ s .*null --number '
    PLUMB_PROGRESS=1ms "$plumb" run t.yaml --out r --no-report 2> said
    grep -qE "$line" said
    PLUMB_PROGRESS=1h "$plumb" run t.yaml --out q --no-report 2> said
    [ "$(grep -cE "$line" said)" -eq 0 ]
    [ "$(grep -c $'\r' said)" -eq 0 ]
}

@test "a run of which a whole benchmark was skipped is incomplete, and --allow-skip accepts it" {
    printf '%s\n' '  - {bench: "null", fault: skip}' '  - {bench: memory, op: triad, size: 64K}' | suite
    run -4 "$plumb" run t.yaml --out some --no-report
    [ "$(grep -c "'null'" <<<"$output") $(grep -c "'memory'" <<<"$output")" = '1 0' ]
    "$plumb" run t.yaml --out accepted --no-report --allow-skip
    sed -i 's/fault: skip/fault: [skip, none]/' t.yaml
    "$plumb" run t.yaml --out part --no-report # one case of two has a value
}
