#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb compare, and verdicts in plumb report: what they say of made-up runs whose changes are known.

load made
load compare

@test "a loss in one case is named first, with its ratio, and is exit 1" {
    make_run a --seed 1
    make_run b --seed 2 --shift 'memory triad 536870912*=0.9'
    compare a b --csv all.csv
    [ "$status" -eq 1 ]
    [ "$(cells all.csv label worse)" = "memory triad, 512 MiB: bandwidth" ]
    [ "$(cells all.csv label | wc -l)" -eq 50 ]
    verdict | grep -q "^Verdict worse: .*Memory (0\.[89][0-9]* times A, 0\.[89][0-9]* to 0\.[89][0-9]*, in 1 of 14 cases)"
    grep -Eq "^Memory +14 +1 +0 +0 +13" out
    grep -Eq "^Network +8 +0 +0 +0 +8" out
}

@test "rows that the plan promises and that are gone are told: exit 4" {
    make_run a --seed 1
    make_run b --seed 2
    sed -i '$d' b/memory.csv
    compare a b
    [ "$status" -eq 4 ]
    verdict | grep -q "failed"
    flat | grep -q "memory.csv has "
}

@test "the ratio's interval holds what was put in, for what is better when low, too" {
    make_run a --seed 1 --spread 0.002
    make_run b --seed 2 --spread 0.002 --shift 'net * latency=0.8' --shift 'memory *=1.25'
    compare a b --csv all.csv
    python3 - <<'END'
import csv
n = 0
for row in csv.DictReader(open("all.csv")):
    low, high = float(row["ratio_low"]), float(row["ratio_high"])
    want = .8 if "|latency|" in row["key"] else 1.25 if row["pipe"] == "Memory" else 1
    assert low - .01 < want < high + .01 and high - low < .03, row
    assert row["verdict"] == ("worse" if want == .8 else "better" if want == 1.25 else "equivalent"), row
    assert (float(row["b_value"]) > float(row["a_value"])) == ((want > 1) != (row["unit"] == "us")) or want == 1, row
    n += want != 1
assert n == 18, n
END
}

@test "a gain is better, and exit 0" {
    make_run a --seed 1
    make_run b --seed 2 --shift 'gemm f32*=1.3'
    compare a b
    [ "$status" -eq 0 ]
    verdict | grep -q "^Verdict better: .*Matrix core (1\.[0-9]* to 1\.[0-9]* times A in 2 of 8 cases)"
}

@test "noise beyond the margin is inconclusive, exit 3, with what would decide" {
    make_run a --seed 1 --spread 0.08
    make_run b --seed 2 --spread 0.08
    compare a b --csv all.csv
    [ "$status" -eq 3 ]
    verdict | grep -Eq "^Verdict undecided: .* [0-9]+ more launches"
    cells all.csv more inconclusive | grep -q '[0-9]'
    [ "$(cells all.csv more_of inconclusive | sort -u | tail -n 1)" = launches ]
}

@test "one launch a side tells no spread: nothing is decided, and what to do is said" {
    make_run a --seed 1 --launches 1
    make_run b --seed 2 --launches 1 --shift 'memory *=0.5'
    compare a b
    [ "$status" -eq 3 ]
    verdict | grep -q "^Verdict undecided: .* 50 cases"
    grep -q "50 cases undecided: one launch" out
    grep -q "0.5[0-9]* (no interval)" out
}

@test "a case that A has and B failed, skipped or does not have is exit 4, and named with its reason" {
    make_run a --seed 1
    make_run b --seed 2 --fail 'net rdma 1048576*' --skip 'gemm f64 256*' --drop 'memory read 1073741824*'
    compare a b
    [ "$status" -eq 4 ]
    verdict | grep -q "^Verdict incomplete: .*B failed in 2 cases .*2 cases "
    grep -q "2 cases: .*the peer is gone" out
    grep -q "1 case: .*no such device here" out
    grep -q "1 case: B has no " out
    grep -q "memory read, 1 GiB: bandwidth" out
    make_run c --seed 2 --skip 'gemm f64 256*'
    compare a c
    [ "$status" -eq 4 ]
    compare c a # what B alone has takes nothing from the verdict
    [ "$status" -eq 0 ]
    make_run d --seed 2 --fail 'net rdma 1048576*' --shift 'memory *=0.9'
    compare a d
    [ "$status" -eq 1 ] # what is proven comes before what is missing
}

@test "what is not comparable is refused, not paired" {
    make_run a --seed 1 --cases 3
    make_run b --seed 2 --cases 3 --origin simulated
    compare a b --csv all.csv
    [ "$status" -eq 4 ]
    verdict | grep -q "^Verdict incomplete: .* 3 cases"
    grep -q "3 cases: not comparable: " out
    [ "$(cells all.csv state | sort -u)" = "not comparable" ]
    [ -z "$(cells all.csv ratio | tr -d '\n')" ]
}

@test "a cause stands next to the loss" {
    make_run a --seed 1
    make_run b --seed 2 --machine guest --shift 'memory triad*=0.9'
    compare a b
    grep -A 99 "^What differs" out | grep -Eq "^NUMA nodes +2 +1 +Memory"
    grep -A 99 "^What differs" out | grep -q "^virt"
    grep -q "^- possible cause .*Memory: NUMA nodes: 2 against 1" out
    make_run c --seed 3
    compare a c
    ! grep -q "^What differs" out || return 1
}

@test "a run that was not measured to its end is incomplete, whatever the launches say that are there" {
    make_run a --seed 1
    make_run b --seed 2
    compare a b
    [ "$status" -eq 0 ]
    for state in interrupted stopped running; do
        set_meta b "m['state'] = '$state'"
        compare a b --markdown page.md
        [ "$status" -eq 4 ]
        verdict | grep -q "^Verdict incomplete: .*'b' of B is '$state'"
        head -n 1 page.md | grep -q "^## incomplete: "
    done
    compare b a
    [ "$status" -eq 4 ]
    verdict | grep -q "^Verdict incomplete: .*'b' of A is 'running'"
    make_run c --seed 2 --shift 'memory *=0.9'
    set_meta c "m['state'] = 'stopped'"
    compare a c
    [ "$status" -eq 1 ]
    verdict | grep -q "'c' of B is 'stopped'"
}

@test "the same run on both sides is refused, under another path and as a copy, too" {
    make_run a --seed 1 --cases 3
    make_run b --seed 2 --cases 3
    ln -s a link
    cp -r a copy
    for words in "a a" "a ./a/" "a link" "a copy" "a b --against b"; do
        # shellcheck disable=SC2086
        compare $words
        [ "$status" -eq 2 ]
        grep -q "both sides" err
        [ ! -s out ]
    done
    run "$plumb" report a --baseline copy
    [ "$status" -eq 2 ]
    [[ "$output" == *"both sides"* ]]
    set_meta copy "m['started_utc'] = '2026-01-02T05:00:00Z'"
    compare a copy
    [ "$status" -eq 0 ]
}

@test "a run that is named twice on one side is refused: its launches would count twice" {
    make_run a --seed 1 --cases 3
    make_run b --seed 2 --cases 3
    make_run c --seed 3 --cases 3
    ln -s a link
    cp -r a copy
    mkdir runs
    cp -r b runs/b
    for words in "a,a b" "a a --against b" "c --against a b a" "a,./a/ b" "a,link b" "a,copy b" "c --against b,runs"; do
        # shellcheck disable=SC2086
        compare $words
        [ "$status" -eq 2 ]
        grep -q "one side" err
        [ ! -s out ]
    done
    compare a,a b
    grep -q "'a' .*twice" err
    compare b a,copy
    grep -q "'a' and 'copy'" err
    compare a,b c
    [ "$status" -eq 0 ]
}

@test "what the benchmark chose splits no case, and is told beside it" {
    make_run a --seed 1 --isa 'memory *=avx512'
    make_run b --seed 2 --isa 'memory *=avx2' --shift 'memory triad 536870912*=0.9'
    compare a b --csv all.csv
    [ "$status" -eq 1 ]
    [ "$(cells all.csv label worse)" = "memory triad, 512 MiB: bandwidth" ]
    [ "$(cells all.csv label | wc -l)" -eq 50 ]
    grep -Eq "isa avx512 against avx2" out
    ! grep -q "isa=" all.csv || return 1
}

@test "a loss that the time taken can explain is undecided, and a larger one is not" {
    make_run a --seed 1
    make_run b --seed 2 --shift 'memory*=0.935'
    make_run c --seed 2 --shift 'memory*=0.85'
    for run in b c; do disturb $run memory steal_percent=12,12,12,1,1; done
    compare a b --csv b.csv --json b.json
    [ "$status" -eq 3 ]
    verdict | grep -q "undecided in Memory"
    grep -q "Disturbed *B .*14 of 50 cases" out
    grep -q "14 cases undecided" out
    flat | grep -q "8 more launches .* 5 .*--steal 2%"
    compare a b --as-measured --csv as.csv
    [ "$status" -eq 1 ]
    verdict | grep -q "worse in Memory (0"
    [ "$(cells as.csv word worse | wc -l)" -eq 14 ]
    compare a c --csv c.csv --json c.json
    [ "$status" -eq 1 ]
    verdict | grep -q "worse in Memory"
    flat | grep -q "B: steal 7.6 %"
    grep -q "^(1) B alone was disturbed" out
    # A gain over a side that was disturbed is none, either.
    compare b a --csv gain.csv --json gain.json
    [ "$status" -eq 3 ]
    python3 - << 'END'
import csv, json, math, statistics
def launches(run, key):
    m = [part.split("=", 1) for part in key.split("|") if "=" in part]
    rows = [r for r in csv.DictReader(open(run + "/memory.csv")) if all(r[k] == v for k, v in m)]
    assert len(rows) == 5, (key, len(rows))
    return rows
log = lambda x: math.log(float(x))
for name, (x, y) in {"b": "ab", "c": "ac", "gain": "ba"}.items():
    cases = {c["key"]: c for c in json.load(open(name + ".json"))["cases"]}
    words = set()
    for row in csv.DictReader(open(name + ".csv")):
        if row["pipe"] != "Memory":
            assert row["word"] == "equivalent" or row["word"] == "undecided", row
            continue
        sides = [launches(run, row["key"]) for run in (x, y)]
        means = [sum(log(r["value"]) for r in rows) / 5 for rows in sides]
        taken = [statistics.median(float(r["steal_percent"] or 0) / 100 for r in rows) for rows in sides]
        assert abs(math.exp(means[1] - means[0]) - float(row["ratio"])) < 1e-6, row
        for side, share in zip("ab", taken):
            assert abs(share - float(row[side + "_taken"])) < 1e-6, (row, taken)
        given = (1 - taken[0]) / (1 - taken[1])
        low, high = float(row["ratio_low"]) * given, float(row["ratio_high"]) * given
        if row["proven"] == "yes" and not (float(row["ratio_low"]) >= .95 and float(row["ratio_high"]) <= 1 / .95):
            explained = low <= 1 <= high or (low > 1) != (float(row["ratio_low"]) > 1)
            assert (row["word"] == "disturbed") == explained, (row, low, high)
        words.add(row["word"])
        assert row["verdict"] == "inconclusive" or row["word"] == row["verdict"], row
        assert cases[row["key"]]["word"] == row["word"]
        assert abs(cases[row["key"]]["b_disturbance"]["taken"] - taken[1]) < 1e-6
    assert words == ({"worse"} if name == "c" else {"disturbed"}), (name, words)
END
    # Without the disturbed launches, the loss is there, and is no longer explained.
    disturb b memory steal_percent=9,1,1,1,1
    compare a b --steal 2% --csv quiet.csv
    [ "$(cells quiet.csv b_launches | sort -u | tr '\n' ' ')" = "4 5 " ]
    ! grep -q ",disturbed," quiet.csv || return 1
    for share in 0 200% x; do
        compare a b --steal $share
        [ "$status" -eq 2 ]
    done
}

@test "one disturbed launch of five takes back nothing that the others prove" {
    make_run a --seed 1
    make_run b --seed 2 --shift 'memory*=0.9'
    disturb b memory steal_percent=0,0,45,0,0
    compare a b
    [ "$status" -eq 1 ]
    verdict | grep -q "worse in Memory"
    disturb b memory steal_percent=0,45,45,45,0
    compare a b
    [ "$status" -eq 3 ]
}

@test "--only takes the cases that match any of its patterns; none is a usage error" {
    make_run a --seed 1
    make_run b --seed 2
    compare a b --only '*triad, 1 GiB*' --only='gemm*' --csv all.csv
    [ "$status" -eq 0 ]
    [ "$(cells all.csv label | wc -l)" -eq 9 ]
    compare a b --only nothing
    [ "$status" -eq 2 ]
    grep -q "'nothing'" err
    make_run c --seed 3
    compare a b c --only nothing
    [ "$status" -eq 2 ]
    grep -q "'nothing'" err
}

@test "the margin decides what is equivalent" {
    make_run a --seed 1
    make_run b --seed 2 --shift '*=0.97'
    compare a b
    [ "$status" -eq 0 ]
    compare a b --margin 1%
    [ "$status" -eq 1 ]
    grep -q "margin 1 %" out
}

@test "a suite's own margin holds, unless the user says one" {
    make_run a --seed 1 --margin 0.01
    make_run b --seed 2 --margin 0.01 --shift '*=0.97'
    compare a b
    [ "$status" -eq 1 ]
    grep -q "margin 1 %" out
    compare a b --margin 5%
    [ "$status" -eq 0 ]
}

@test "usage errors say what to do, and are exit 2" {
    make_run a --cases 3
    make_run b --cases 3
    for words in "" "a" "a b a" "a b a b a b a b a" "a --against" "--against b" "a nowhere" "a b --margin 0" "a b --margin x" \
        "a b --uot" "a b --csv - --json -" "a b --html - --markdown -" "a b --csv x --json x"; do
        # shellcheck disable=SC2086
        compare $words
        [ "$status" -eq 2 ]
        [ -s err ]
        [ ! -s out ]
    done
    compare a b a
    grep -q "both sides" err
    compare a b a b a b a b a
    grep -q "9 runs .* 8 .*--against" err
    compare a b --csv - --json -
    grep -q -- "--csv.*--json" err
    compare a b --csv x --json x
    grep -q -- "--csv.*--json.*'x'" err
    [ ! -e x ]
    compare a nowhere
    grep -q "nowhere" err
    mkdir empty
    compare a empty
    [ "$status" -eq 2 ]
    grep -q "empty" err
    make_run new --cases 3 --schema 99
    compare a new
    [ "$status" -eq 2 ]
    grep -q "schema" err
    compare --help
    [ "$status" -eq 0 ]
    grep -q -- "--against" out
}

@test "a damaged run is exit 5 and named; a file that cannot be written is exit 4" {
    make_run a --cases 3
    make_run b --cases 3
    compare a b --html /nowhere/page.html
    [ "$status" -eq 4 ]
    grep -q "'/nowhere/page.html'" err
    sed -i '2s/,[^,]*,/,/' b/memory.csv
    compare a b
    [ "$status" -eq 5 ]
    grep -q "memory.csv" err
}

@test "values that have no logarithm, and runs without a row, are said and not decided" {
    make_run a --cases 3
    for value in 0 -1; do
        make_run b --cases 3 --seed 2 --value "memory*=$value"
        compare a b
        [ "$status" -eq 4 ]
        flat | grep -q "'memory triad, regular, 1 GiB: bandwidth', 5 of 5 "
        grep -q "1 case undecided" out
    done
    for value in nan inf; do
        make_run b --cases 3 --seed 2 --value "memory*=$value"
        compare a b
        [ "$status" -eq 4 ]
        verdict | grep -q "B failed in 1 case"
        grep -q "^- 1 case: B has no number" out
    done
    make_run c --cases 3 --empty
    make_run d --cases 3 --empty
    compare c d
    [ "$status" -eq 3 ]
    grep -q "no row" err
}

@test "JSON and CSV are read by others and agree with the table" {
    make_run a --seed 1
    make_run b --seed 2 --shift 'memory triad*=0.9'
    compare a b --json - --csv all.csv
    [ "$status" -eq 1 ]
    python3 - <<'END'
import csv, json
j = json.load(open("out"))
rows = list(csv.DictReader(open("all.csv")))
assert j["verdict"] == "worse" and j["exit"] == 1
assert [c["key"] for c in j["cases"]] == [r["key"] for r in rows]
assert len({r["key"] for r in rows}) == len(rows) == 50
for c, r in zip(j["cases"], rows):
    assert c["verdict"] == r["verdict"] and abs(c["ratio"] - float(r["ratio"])) < 1e-6
    assert len(c["a_launches"][0]) == int(r["a_launches"]) == 5
    assert None not in r and None not in r.values(), r
assert j["counts"] == {v: sum(r["verdict"] == v for r in rows) for v in j["counts"]}
assert sum(p["cases"] for p in j["pipes"]) == 50
END
    compare b a --json - --only 'memory*'
    python3 -c 'import json; assert json.load(open("out"))["verdict"] == "better"'
}

@test "the report of a run has verdicts against a baseline, and a line on the terminal" {
    make_run a --seed 1
    make_run b --seed 2 --machine guest --shift 'memory triad*=0.9'
    "$plumb" report b --baseline a > out
    grep -q "<section id='verdicts'>" b/report.html
    grep -q "<a href='#verdicts'>" b/report.html
    grep -q "^against the baseline: worse: .*Memory" out
    [ "$(tail -n 1 out)" = "b/report.html" ]
    "$plumb" report b > out
    ! grep -q "verdicts'" b/report.html || return 1
    ! grep -q "baseline" out || return 1
}

@test "a report's baseline that is none is an error, and no page is written" {
    make_run a --cases 3
    make_run b --cases 3
    run "$plumb" report b --baseline nowhere
    [ "$status" -eq 2 ]
    [[ "$output" == *nowhere* ]]
    [ ! -e b/report.html ]
    run "$plumb" report a b --baseline a --out both
    [ "$status" -eq 2 ]
    [[ "$output" == *"plumb compare"* ]]
    sed -i '2s/,[^,]*,/,/' a/memory.csv
    run "$plumb" report b --baseline a
    [ "$status" -eq 5 ]
}
