#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb compare, and verdicts in plumb report: what they say of made-up runs whose changes are known.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    work="$(mktemp -d)"
    cd "$work" || return 1
    export LC_ALL=C.UTF-8
}

teardown() {
    cd / || return 1
    rm -rf "$work"
}

make_run() { # make_run DIR [options of make_runs.py]
    python3 "$top/tests/cli/make_runs.py" "$@"
}

compare() { # compare ARGUMENTS: sets $status, leaves the files out and err
    status=0
    "$plumb" compare "$@" > out 2> err || status=$?
}

verdict() { # the first answer, on one line
    sed '/^A  /,$d' out | tr '\n' ' ' | tr -s ' '
}

cells() { # cells FILE COLUMN [STATE]: that column of the CSV, of all cases or those whose verdict is STATE
    python3 - "$@" <<'END'
import csv, sys
for row in csv.DictReader(open(sys.argv[1])):
    if len(sys.argv) < 4 or row["verdict"] == sys.argv[3]:
        print(row[sys.argv[2]])
END
}

@test "a loss in one case is named first, with its ratio, and is exit 1" {
    make_run a --seed 1
    make_run b --seed 2 --shift 'memory triad 536870912*=0.9'
    compare a b --csv all.csv
    [ "$status" -eq 1 ]
    [ "$(cells all.csv label worse)" = "memory triad, 512 MiB: bandwidth" ]
    [ "$(cells all.csv label | wc -l)" -eq 50 ]
    verdict | grep -q "^Verdict worse: B (b) against A (a): worse in Memory (0\.[89][0-9]* times A, 0\.[89][0-9]* to 0\.[89][0-9]*, in 1 of 14 cases)\. B is equivalent in "
    grep -Eq "^Memory +14 +1 +0 +0 +13" out
    grep -Eq "^Network +8 +0 +0 +0 +8" out
}

@test "rows that the plan promises and that are gone are told: exit 4" {
    make_run a --seed 1
    make_run b --seed 2
    sed -i '$d' b/memory.csv
    compare a b
    [ "$status" -eq 4 ]
    verdict | grep -q "ome launches of B failed in "
    tr -s ' \n' ' ' < out | grep -q "its rows are missing: memory.csv has "
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

@test "nothing changed is equivalent and exit 0, and never called equal" {
    make_run a --seed 1
    make_run b --seed 2
    compare a b
    [ "$status" -eq 0 ]
    verdict | grep -q "^Verdict equivalent: B (b) against A (a): equivalent in all 6 components"
    grep -q "50 equivalent cases: --all lists them" out
    run grep -ci "equal" out
    [ "$output" -eq 0 ]
    compare a b --all
    [ "$(grep -Ec "\) +equivalent " out)" -ge 50 ]
}

@test "a gain is better, and exit 0" {
    make_run a --seed 1
    make_run b --seed 2 --shift 'gemm f32*=1.3'
    compare a b
    [ "$status" -eq 0 ]
    verdict | grep -q "better: B (b) against A (a): better in Matrix core (1\.[0-9]* to 1\.[0-9]* times A in 2 of 8 cases)\. B is equivalent in "
}

@test "noise beyond the margin is inconclusive, exit 3, with what would decide" {
    make_run a --seed 1 --spread 0.08
    make_run b --seed 2 --spread 0.08
    compare a b --csv all.csv
    [ "$status" -eq 3 ]
    verdict | grep -Eq "^Verdict undecided: B \(b\) against A \(a\): .*undecided in .*\. [0-9]+ more launches a side would decide"
    cells all.csv more inconclusive | grep -q '[0-9]'
    [ "$(cells all.csv more_of inconclusive | sort -u | tail -n 1)" = launches ]
    run grep -ci "equal" out
    [ "$output" -eq 0 ]
    grep -Eq 'undecided +\+[0-9]+|More launches: \+[0-9]+' out
    run grep -c "inconclusive" out
    [ "$output" -eq 0 ]
    [ "$(cells all.csv verdict | sort -u | grep -c inconclusive)" -eq 1 ] # the code stays
}

@test "one launch a side tells no spread: nothing is decided, and what to do is said" {
    make_run a --seed 1 --launches 1
    make_run b --seed 2 --launches 1 --shift 'memory *=0.5'
    compare a b
    [ "$status" -eq 3 ]
    verdict | grep -q "nothing could be decided: none of 50 cases has a value and a spread"
    grep -q "50 cases undecided: one launch on a side" out
    grep -q "0.5[0-9]* (no interval)" out
}

@test "a case that A has and B failed, skipped or does not have is exit 4, and named with its reason" {
    make_run a --seed 1
    make_run b --seed 2 --fail 'net rdma 1048576*' --skip 'gemm f64 256*' --drop 'memory read 1073741824*'
    compare a b
    [ "$status" -eq 4 ]
    verdict | grep -q "^Verdict incomplete: B (b) against A (a): equivalent in .*\. B failed in 2 cases that A has\. B has nothing to compare with in 2 cases that A has"
    grep -q "2 cases: B failed: the peer is gone" out
    grep -q "1 case: B skipped it: no such device here" out
    grep -q "1 case: B has no such case" out
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
    verdict | grep -q "^Verdict incomplete: .*\. B has nothing to compare with in 3 cases that A has"
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
    grep -q "^- possible cause in Memory: NUMA nodes: 2 against 1" out
    make_run c --seed 3
    compare a c
    run grep -c "^What differs" out
    [ "$output" -eq 0 ]
}

set_meta() { # set_meta RUN PYTHON: with the object m of its run.json
    python3 -c 'import json, sys
path = sys.argv[1] + "/run.json"
m = json.load(open(path))
exec(sys.argv[2])
json.dump(m, open(path, "w"))' "$@"
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
        verdict | grep -q "^Verdict incomplete: B (b) against A (a): equivalent in .*\. The run 'b' of B is '$state'"
        head -n 1 page.md | grep -q "^## incomplete: "
    done
    compare b a
    [ "$status" -eq 4 ]
    verdict | grep -q "^Verdict incomplete: .*\. The run 'b' of A is 'running'"
    make_run c --seed 2 --shift 'memory *=0.9'
    set_meta c "m['state'] = 'stopped'"
    compare a c
    [ "$status" -eq 1 ]
    verdict | grep -q "\. The run 'c' of B is 'stopped'"
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
        grep -q "the same run is on both sides" err
        [ ! -s out ]
    done
    run "$plumb" report a --baseline copy
    [ "$status" -eq 2 ]
    [[ "$output" == *"the same run is on both sides"* ]]
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
        grep -q "its launches would count as those of two" err
        [ ! -s out ]
    done
    compare a,a b
    grep -q "'a' is named twice on one side" err
    compare b a,copy
    grep -q "'a' and 'copy' on one side are the same run" err
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
    run grep -c "isa=" all.csv
    [ "$output" -eq 0 ]
}

@test "what differs is told of all runs of a side, not of the first alone" {
    make_run a1 --seed 1 --cases 3 --fact host.kernel=6.1
    make_run a2 --seed 2 --cases 3 --fact host.kernel=6.1
    make_run a3 --seed 3 --cases 3 --fact host.kernel=6.5
    make_run b1 --seed 4 --cases 3 --fact host.kernel=6.1 --fact host.distro=other
    make_run b2 --seed 5 --cases 3 --fact host.kernel=6.1 --fact host.distro=other
    compare a1,a2,a3 b1,b2 --json all.json
    grep -Eq "^kernel +6.1 in 2 of 3 runs, 6.5 in 1 +6.1 +all$" out
    grep -Eq "^distribution +Debian GNU/Linux 12 \(bookworm\) +other +all$" out
    compare b1,b2 a1,a2,a3
    grep -Eq "^kernel +6.1 +6.1 in 2 of 3 runs, 6.5 in 1 +all$" out
    compare a1,a2 b1,b2
    run grep -c "^kernel" out
    [ "$output" -eq 0 ]
}

make_pair() { # make_pair DIR SEED: as plumb run --against leaves it
    for side in a b; do
        mkdir -p "$1"
        make_run "$1/$side" --seed "$2$([ $side = a ] && echo 1 || echo 2)" --cases 3
        set_meta "$1/$side" "m['run'] = '$1-$side'; m['against'] = {'pair': '$1', 'side': '$side', 'command': 'target-$side plumb'}"
    done
}

@test "the folder of two targets measured in turn is compared by itself, and is never one side" {
    make_pair one 1
    make_pair two 2
    make_run x --seed 9 --cases 3
    compare one --csv alone.csv
    [ "$status" -eq 0 ]
    grep -Eq "^A +one-a \('one/a'\) on node7" out
    grep -Eq "^B +one-b \('one/b'\) on node7" out
    notes() { sed '/^Component/,$d' out | tr '\n' ' ' | tr -s ' '; }
    notes |
        grep -q "Note measured in turn: .*; A is what 'target-a plumb' starts, B is what 'target-b plumb' starts"
    compare one/a one/b --csv named.csv
    cmp alone.csv named.csv
    for words in "one two" "one x" "x one" "one/a one/b --against x"; do
        # shellcheck disable=SC2086
        compare $words
        [ "$status" -eq 2 ]
        grep -q "are the two targets of one plumb run --against, and would be averaged" err
        grep -q "plumb compare PAIR" err
        [ ! -s out ]
    done
    compare one/a two/a --against one/b two/b
    [ "$status" -ne 2 ]
    notes | grep -q "Rests on 2 runs a side"
    notes | grep -q "Note measured in turn: "
    notes |
        grep -q "how they vary from one to another of 2 pairs of runs; A is what 'target-a plumb' starts, B is"
    run grep -c "Note *where a side has several runs" out
    [ "$output" -eq 0 ]
    # The order on a side does not matter; a run without its partner leaves all of them without.
    compare one/a two/a --against one/b two/b --csv straight.csv
    compare one/a two/a --against two/b one/b --csv crossed.csv
    cmp straight.csv crossed.csv
    [ "$(cells straight.csv by_pairs | sort -u)" = yes ]
    compare one/a two/a --against one/b x --csv x.csv
    notes | grep -q "Note where a side has several runs"
    run grep -c "measured in turn: " out
    [ "$output" -eq 0 ]
    # That pairs were there, and were not used, is said, with the run that is to blame.
    [ "$(cells x.csv by_pairs | sort -u)" = no ]
    [[ "$(notes)" == *"Note runs here were measured in turn, and are compared as if they were not: 'two/a' (and 1 more) has no partner on the other side; name that, too, or leave it out"* ]]
    compare one/a two/a --against one/b --json x.json
    [[ "$(notes)" == *"as if they were not: 'two/a' has no partner"* ]]
    python3 -c 'import json; assert not any(c["by_pairs"] for c in json.load(open("x.json"))["cases"])'
    for words in "one/a two/a --against one/b two/b" "one/a two/b" "one/a --against x"; do
        # shellcheck disable=SC2086
        compare $words --json y.json
        [[ "$(notes)" != *"as if they were not"* ]]
    done
    # Two rows of one launch for one case: nobody knows which stood next to which, and that case stands by itself.
    python3 - << 'END'
import csv, os, shutil
shutil.copytree("one", "twice")
rows = list(csv.reader(open("twice/b/memory.csv")))
rows.append(rows[-1])
csv.writer(open("twice/b/memory.csv", "w", newline=""), lineterminator="\n").writerows(rows)
plan = list(csv.reader(open("twice/b/plan.csv")))
at = rows[0].index("case"), rows[0].index("repeat")
for line in plan[1:]:
    if (line[3], line[4]) == (rows[-1][at[0]], rows[-1][at[1]]) and line[5] == "memory":
        line[1] = "0002"
csv.writer(open("twice/b/plan.csv", "w", newline=""), lineterminator="\n").writerows(plan)
END
    compare twice --csv twice.csv --json twice.json
    [ "$(cells twice.csv by_pairs | sort | uniq -c | tr -s ' \n' ' ')" = " 1 no 2 yes " ]
    python3 -c 'import json; assert sorted(c["by_pairs"] for c in json.load(open("twice.json"))["cases"]) == [False, True, True]'
    [[ "$(notes)" == *"Note measured in turn: each launch of B stood next to one of A, and the differences of the two make the intervals; not so in 1 case, 'memory triad, regular, 1 GiB: bandwidth': a launch says the case twice, or not two of its launches have a partner, and each side stands by itself; A is what"*"Note one run a side: "* ]]
    compare x
    [ "$status" -eq 2 ]
    grep -q "against which run?" err
}

disturb() { # disturb RUN PATTERN COLUMN=VALUES...: of the rows of benchmarks that match; VALUES are the launches'
    python3 - "$@" << 'END'
import csv, glob, sys
for path in glob.glob(f"{sys.argv[1]}/{sys.argv[2]}.csv"):
    rows = list(csv.DictReader(open(path)))
    for row in rows:
        row["elapsed_s"] = 1
        for word in sys.argv[3:]:
            column, values = word.split("=")
            values = values.split(",")
            row[column] = values[(int(row["repeat"]) - 1) % len(values)]
    out = csv.DictWriter(open(path, "w", newline=""), rows[0], lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
END
}

@test "a loss that the time taken can explain is undecided, and a larger one is not" {
    make_run a --seed 1
    make_run b --seed 2 --shift 'memory*=0.935'
    make_run c --seed 2 --shift 'memory*=0.85'
    for run in b c; do disturb $run memory steal_percent=12,12,12,1,1; done
    compare a b --csv b.csv --json b.json
    [ "$status" -eq 3 ]
    verdict | grep -q "undecided in Memory"
    grep -q "Disturbed *B in 14 of 50 cases (the other side not)" out
    tr -s ' \n' ' ' < out | grep -q "14 cases undecided: the time that others took of the CPU can explain a difference, or hide one"
    tr -s ' \n' ' ' < out | grep -q "8 more launches at this rate would leave 5 undisturbed ones (--steal 2%)"
    compare a b --as-measured --csv as.csv
    [ "$status" -eq 1 ]
    verdict | grep -q "worse in Memory (0"
    [ "$(cells as.csv word worse | wc -l)" -eq 14 ]
    compare a c --csv c.csv --json c.json
    [ "$status" -eq 1 ]
    verdict | grep -q "worse in Memory"
    tr -s ' \n' ' ' < out | grep -q "B: steal 7.6 %"
    grep -q "^(1) B alone was disturbed. The disturbance explains a part of the loss at most." out
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
    run grep -c ",disturbed," quiet.csv
    [ "$output" -eq 0 ]
    for share in 0 200% x; do
        compare a b --steal $share
        [ "$status" -eq 2 ]
    done
}

@test "a disturbed side hides no loss of the other: such an equivalence is undecided" {
    make_run a --seed 1 --shift 'memory*=0.9'
    make_run b --seed 2 --shift 'memory*=0.9'
    disturb a memory steal_percent=10
    compare a b --csv all.csv
    [ "$status" -eq 3 ]
    verdict | grep -q "undecided in Memory"
    [ "$(cells all.csv word | grep -c disturbed)" -eq 14 ]
    # The same time taken from both, a little of it, or time that counts as measured, changes nothing.
    compare a b --as-measured
    [ "$status" -eq 0 ]
    disturb b memory steal_percent=10
    compare a b
    [ "$status" -eq 0 ]
    disturb a memory steal_percent=2
    disturb b memory steal_percent=1
    compare a b
    [ "$status" -eq 0 ]
    # So it is where B is the disturbed side: undisturbed, it may be better.
    disturb b memory steal_percent=12
    compare a b --csv all.csv
    [ "$status" -eq 3 ]
    [ "$(cells all.csv word | grep -c disturbed)" -eq 14 ]
}

@test "cases that --steal leaves out are undecided, and wrong data stays wrong" {
    make_run a --seed 1
    make_run b --seed 2 --shift 'memory*=0.5'
    disturb b memory steal_percent=5
    compare a b --steal 2% --json all.json
    [ "$status" -eq 3 ]
    verdict | grep -q "^Verdict undecided: .*ndecided in Memory"
    grep -Eq "^Memory +14 +0 +14 +0 +0 +no ratio" out
    grep -q "14 cases undecided: left out by --steal" out
    python3 - << 'END'
import json
all = json.load(open("all.json"))
memory = [p for p in all["pipes"] if p["pipe"] == "Memory"][0]
assert memory["cases"] == memory["counts"]["inconclusive"] == 14, memory
assert all["verdict"] == "inconclusive" and all["counts"]["inconclusive"] == 14 and all["exit"] == 3, all["counts"]
END
    # Nothing but cases that were left out.
    compare a b --steal 2% --only 'memory triad*'
    [ "$status" -eq 3 ]
    verdict | grep -q "nothing could be decided: all cases of both sides are left out for steal"
    # What is decided as worse stays so.
    make_run c --seed 3 --shift 'copy*=0.8'
    disturb c memory steal_percent=5
    compare a c --steal 2%
    [ "$status" -eq 1 ]
    # Wrong data in some launches, and steal in the others.
    disturb b memory steal_percent=5 status=wrong,wrong,wrong,ok,ok
    compare a b --steal 2% --csv all.csv
    [ "$status" -eq 4 ]
    verdict | grep -q "B failed in 14 cases that A has"
    [ "$(cells all.csv reason | grep -c "3 of 5 launches of B gave wrong data")" -eq 14 ]
    # Wrong data in some launches of B, and steal in all of A.
    disturb a memory steal_percent=5
    disturb b memory steal_percent=0 status=wrong,ok,ok,ok,ok
    compare a b --steal 2%
    [ "$status" -eq 4 ]
    tr -s ' \n' ' ' < out | grep -q "1 of 5 launches of B gave wrong data"
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

@test "time that the CPU lost explains no loss of a GPU, nor do noise and throttling" {
    make_run a --seed 1
    for i in 1 2 3; do make_run "b$i" --seed 2 --shift 'memory*=0.93'; done
    disturb b1 memory steal_percent=20 gpu_clock_mhz_high=1980
    disturb b2 memory gpu_throttled_ms=900 gpu_clock_mhz_high=1980
    disturb b3 memory throttle_events=7 status=noisy
    for i in 1 2 3; do
        compare a "b$i"
        [ "$status" -eq 1 ]
        verdict | grep -q "worse in Memory"
        grep -q "B alone was disturbed" out
    done
    grep -q "CPU throttled in 5 of 5, noisy in 5 of 5" <(tr -s ' \n' ' ' < out)
    # One tick of steal, which rounding may make, is told as 1 %.
    make_run t --seed 2 --shift 'memory*=0.93'
    disturb t memory steal_percent=1
    compare a t
    [ "$status" -eq 1 ]
    run ! grep -q "B alone was disturbed" out
    # Of a quota and of a GPU, more than 0.1 % is told.
    disturb t memory steal_percent=0 quota_percent=0.1 gpu_throttled_ms=1
    compare a t
    run ! grep -q "B alone was disturbed" out
    # A quota does. Of one thread it took 10 % of what that wanted, of 128 CPUs next to nothing.
    make_run q --seed 2 --shift 'memory*=0.93'
    disturb q memory quota_throttled_ms=100 quota_percent=10
    compare a q
    [ "$status" -eq 3 ]
    # Rows without that share have the time alone, which is added up over 128 CPUs.
    make_run q --seed 2 --shift 'memory*=0.93'
    disturb q memory quota_throttled_ms=100
    compare a q
    [ "$status" -eq 1 ]
    disturb q memory quota_throttled_ms=12800
    compare a q --csv q.csv
    [ "$status" -eq 3 ]
    [ "$(cells q.csv word | sort | uniq -c | grep -c '14 disturbed')" -eq 1 ]
    grep -q "held by the CPU quota 10 %" <(tr -s ' \n' ' ' < out)
}

@test "a case that only one side has is shown with the nearest one of the other, and what to do" {
    make_run a --seed 1 --drop 'memory read 1073741824*'
    make_run b --seed 2
    sed -i 's/,536870912,/,402653184,/g' b/memory.csv
    compare a b
    [ "$status" -eq 4 ]
    tr -s ' \n' ' ' < out > line
    grep -q "Nearest: B has it with size 384M in place of 512M" line
    grep -q "Measure one size on both sides: plumb run SUITE with size: 384M" line
}

@test "--to auto finds the nearest reference by the machine's facts, and says how near it is" {
    mkdir refs
    make_run refs/small --seed 1 --fact host.hostname=other
    make_run refs/guest --seed 3 --machine guest
    make_run refs/old --seed 2
    make_run mine --seed 9 --machine guest
    for run in small mine guest old; do
        folder=$run
        [ $run = mine ] || folder=refs/$run
        set_meta $folder "m['machine']['cpu'].update(family=25, model_number=17)"
    done
    set_meta refs/small "m['machine']['cpu'].update(cores=2, family=26)"
    export PLUMB_REFERENCES=$PWD/refs
    compare mine --to auto --json to.json
    [ "$status" -eq 0 ]
    grep -q "^Reference *guest of 2026-01-02, commit 1234abc: 7 of 7 facts of the machine agree$" out
    compare mine --to small --json small.json
    tr -s ' \n' ' ' < out > line
    grep -q "Reference small of 2026-01-02, commit 1234abc: 4 of 7 facts of the machine agree; differs: microarchitecture AuthenticAMD family 26 model 17 against AuthenticAMD family 25 model 17, cores 2 against 64, virtualisation none against kvm" line
    python3 -c 'import json
to, small = (json.load(open(name))["reference"] for name in ("to.json", "small.json"))
assert (to["name"], to["alike"], to["facts"], to["distance"]) == ("guest", 7, 7, 0), to
# a quarter of another model, three quarters of another family of 8; 3 at most of 5 doublings; 2
assert (small["alike"], small["facts"]) == (4, 7) and abs(small["distance"] - (6 + 3 + 2)) < 1e-9, small'
    # What is not known counts half. Of two that are as near, the newer one is taken.
    set_meta mine "m['machine']['virtualization']['hypervisor'] = None"
    set_meta refs/guest "m['machine']['cpu']['vendor'] = 'GenuineIntel'"
    compare mine --to auto
    grep -q "^Reference *old of" out
    cp -r refs/old refs/new
    set_meta refs/new "m['started_utc'] = '2026-01-03T00:00:00Z'; m['run'] = 'new'"
    compare --to auto mine
    grep -q "^Reference *new of 2026-01-03" out
    compare --to list mine
    [ "$status" -eq 0 ]
    [ "$(grep -o '^[a-z]*' out | sed '/^$/d' | head -n 2 | tr '\n' ' ')" = "new old " ]
    grep -q "^new *6 of 7 facts agree: 2026-01-03, commit 1234abc, suite node" out
    compare --to list
    [ "$status" -eq 0 ]
    grep -q "^small *2026-01-02, commit 1234abc, suite node" out
    tr -s " \n" " " < out | grep -q "microarchitecture AuthenticAMD family 26 model 17, CPU model AMD EPYC 9654, cores 2, memory 512 GiB"
    compare mine --to none
    [ "$status" -eq 2 ]
    grep -q "there is no reference 'none' in .*, but .*old.*, and auto" err
    compare --to auto
    [ "$status" -eq 2 ]
    PLUMB_REFERENCES=$PWD/nowhere compare mine --to auto
    [ "$status" -eq 2 ]
    grep -q "PLUMB_REFERENCES" err
}

@test "the references of the tree are listed with date and commit" {
    cd "$top"
    unset PLUMB_REFERENCES
    "$plumb" compare --to list > "$work/out"
    for name in results/reference/*/; do
        grep -Eq "^$(basename "$name") +20[0-9-]+, commit [0-9a-f]{7}" "$work/out"
    done
}

@test "what a word or a sentence could hide stands beside it" {
    # A difference that so few launches cannot prove, whatever its interval.
    compare "$top/results/reference/epyc-zen4-2vcpu" "$top/results/reference/epyc-zen5-2vcpu" --all
    grep -Eq '1\.202 \(1\.184 to 1\.220\) +undecided \(1\)' out
    tr -s ' \n' ' ' < out | grep -q '(1) The whole interval is past the margin. But so few launches cannot tell a change from two levels'
    # A loss that the margin lets pass, and a component of which nothing is compared.
    make_run a --seed 1
    make_run b --seed 2 --shift 'memory triad 1073741824 *=0.97' --drop 'copy*'
    compare a b
    grep -Eq "^In margin +a loss is proven in 1 equivalent case, (2.[5-9]|3.[0-5]*) % in 'memory triad, 1 GiB: bandwidth'" out
    tr -s ' \n' ' ' < out | grep -q 'Nothing of PCIe and NVLink is compared. B has nothing'
    # What the rows tell of a component stands by it.
    make_run isa --seed 3 --shift 'memory triad*=0.8' --isa 'memory triad*=avx2'
    compare a isa
    grep -q '^- Memory differs in 3 of 14 cases: isa avx512 against avx2' out
    # A run without a value leaves the ratio of the others to be read.
    make_run less --seed 4 --drop 'memory*'
    make_run more --seed 5 --shift 'memory*=1.2'
    compare less a more
    tr -s ' \n' ' ' < out | grep -Eq 'C is best of B and C in Memory \(1\.(19|2)[0-9]*( to 1\.2[0-9]*)? times B\)'
    grep -Eq '^Memory +14 +1 +1\.[12][0-9]* to 1\.2[0-9]* +C is best of B and C' out
    grep -Eq ' [0-9.]+ GB/s +1\.[12][0-9]+ \(1\.[0-9]+ to 1\.[0-9]+\) +C is best of B and C' out
    # A reference is held against the nearest other one.
    mkdir refs
    cp -r a b refs
    PLUMB_REFERENCES=$PWD/refs compare a --to auto
    grep -q '^Reference *b of' out
}

@test "three runs: a winner in each component, proven over all comparisons, and columns by what differs" {
    make_run a --seed 11
    make_run b --seed 12 --shift 'memory*=1.15'
    make_run c --seed 13 --shift 'memory*=1.3' --shift 'copy*node0*=0.9'
    for run in a b c; do set_meta $run "m['machine']['gpus']['driver_version'] = '58' + str(ord('$run') - 96)"; done
    compare a b c --json all.json --csv all.csv --html page.html --markdown page.md
    [ "$status" -eq 0 ]
    verdict | grep -q "^Verdict decided: C is best in Memory (1\.2[0-9]* to 1\.3[0-9]* times A). All runs are equivalent in Matrix core, NVLink, Network and Collectives. A and B are equivalent in PCIe"
    grep -Eq "^B +b: NVIDIA driver 582, on node7" out
    grep -Eq "A, 581 +B, 582 +C, 583 +Best" out
    grep -Eq "^NVIDIA driver +581 +582 +583$" out
    grep -q "^Rests on *3 comparisons of two runs; .* (98.3 % each)" out
    grep -q "^- 28 cases in which all runs are equivalent: --all lists them" out
    grep -q "<title>a, b and c - Plumbline</title>" page.html
    grep -q "^## a, b and c$" page.md
    python3 - << 'END'
import csv, json
all = json.load(open("all.json"))
best = {p["pipe"]: p["best"] for p in all["pipes"]}
assert best["Memory"] == {"state": "winner", "runs": ["C"]}, best
assert best["PCIe"] == {"state": "equivalent", "runs": ["A", "B"]}, best
assert best["Network"] == {"state": "equivalent", "runs": ["A", "B", "C"]}, best
assert len(all["cases"]) == 50 and all["comparisons"] == 3 and all["exit"] == 0
rows = list(csv.DictReader(open("all.csv")))
assert len(rows) == 150
pairs = {(c["key"], p["a"], p["b"]): p for c in all["cases"] for p in c["pairs"]}
for r in rows:
    p = pairs[r["key"], r["a"], r["b"]]
    assert p["verdict"] == r["verdict"] and abs(p["ratio"] - float(r["ratio"])) < 1e-6
# B against C is decided by itself: its ratio is that of the two others.
for c in all["cases"]:
    r = {p["a"] + p["b"]: p["ratio"] for p in c["pairs"]}
    assert abs(r["AB"] * r["BC"] / r["AC"] - 1) < 1e-6, c
END
    for columns in 60 80 160; do
        script -qec "stty cols $columns; '$plumb' compare a b c --all" /dev/null | tr -d '\r' > out
        awk -v n="$columns" 'length($0) > n { print; bad = 1 } END { exit bad }' <(sed 's/\x1b\[[0-9;]*m//g' out)
        [ "$(grep -c 'throughput\|Kernel' out)" -ge 1 ]
    done
    # Noise hides who is best: no winner, and no word of alike.
    for run in n1 n2 n3; do make_run $run --seed "1${run#n}" --spread 0.1; done
    compare n1 n2 n3 --json n.json
    [ "$status" -eq 3 ]
    verdict | grep -Eq "^Verdict undecided: The runs cannot be distinguished in .*: up to [0-9]+ more launches would decide"
    # A run that failed where another has a value makes it incomplete.
    make_run f --seed 14 --fail 'gemm f64 256*'
    compare a b f
    [ "$status" -eq 4 ]
    verdict | grep -q "C failed or gave wrong data in 1 case of other runs"
    for order in "a f b" "f a b"; do # the base, too
        # shellcheck disable=SC2086
        compare $order
        [ "$status" -eq 4 ]
        verdict | grep -q "failed or gave wrong data in 1 case of other runs"
    done
}

@test "three runs: the best has all values, and is proven better than each other run" {
    make_run a --seed 11 --shift 'memory triad*=1.2'
    make_run c --seed 13 --shift 'memory read*=1.2'
    # One without a value in a component, or with wrong data there, wins nothing in it.
    make_run none --seed 12 --drop 'memory*'
    make_run wrong --seed 12
    disturb wrong memory status=wrong
    for run in none wrong; do
        compare a $run c --json all.json
        [ "$status" -eq 4 ]
        verdict | grep -q "^Verdict incomplete: .*A and C each win and lose cases in Memory"
        python3 - << 'END'
import json
best = {p["pipe"]: p["best"] for p in json.load(open("all.json"))["pipes"]}
assert best["Memory"]["state"] == "mixed" and best["Network"]["state"] == "equivalent", best
END
    done
    verdict | grep -q "B failed or gave wrong data in 14 cases of other runs"
    grep -q "^Note *B lacks values, such as 'memory .*" out
    tr -s ' \n' ' ' < out | grep -q "B gave wrong data"
    compare a none c
    verdict | grep -q "B has no value in 14 cases of other runs"
    # One that has few cases, and is the fastest there.
    make_run few --seed 14 --shift 'memory triad 536870912*=1.5' --drop 'memory [!t]*' --drop 'memory triad [!5]*'
    make_run fast --seed 15 --shift 'memory*=1.3'
    make_run slow --seed 16
    compare slow fast few --json all.json
    [ "$status" -eq 4 ]
    verdict | grep -q "C has no value in [0-9]* cases of other runs"
    run grep -c "C is best in Memory\|\"C\"" out
    [ "$output" -eq 0 ]
    # One too noisy to be proven anything.
    make_run noisy --seed 17 --spread 0.6 --shift 'memory*=0.7'
    compare a noisy c
    [ "$status" -eq 3 ]
    verdict | grep -q "B is never beaten, and not proven best, in Memory"
    # Cases that --steal leaves out are undecided.
    disturb slow memory steal_percent=5
    compare a slow c --steal 2%
    [ "$status" -eq 3 ]
    verdict | grep -q "14 cases undecided: left out by --steal"
}

@test "ratios and intervals are those of another reader of the launches: Student's t on their logarithms" {
    for i in 1 2 3; do make_run "r$i" --seed "2$i" --cases 3 --spread 0.03; done
    compare r1 r2 --json two.json --csv two.csv || true
    compare r1 r2 r3 --json three.json || true
    python3 - << 'END'
import csv, glob, json, math
def quantile(p, df):
    """Of Student's t, by Simpson's rule on its density and bisection."""
    scale = math.gamma((df + 1) / 2) / math.sqrt(df * math.pi) / math.gamma(df / 2)
    density = lambda x: scale * (1 + x * x / df) ** (-(df + 1) / 2)
    def upper(t, n=2000):
        h = t / n
        return .5 - h / 3 * sum((1 if i in (0, n) else 4 if i % 2 else 2) * density(i * h) for i in range(n + 1))
    low, high = 0, 60
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if upper(middle) > 1 - p else (low, middle)
    return low
def launches(run, bench):
    return [math.log(float(r["value"])) for r in csv.DictReader(open(f"{run}/{bench}.csv"))]
mean = lambda x: sum(x) / len(x)
squares = lambda x: sum((v - mean(x)) ** 2 for v in x)
def expected(a, b, bench, comparisons):
    a, b = launches(a, bench), launches(b, bench)
    d = mean(b) - mean(a)
    if bench == "allreduce": # a time: lower is better
        d = -d
    df = len(a) + len(b) - 2
    error = math.sqrt((squares(a) + squares(b)) / df * (1 / len(a) + 1 / len(b)))
    half = quantile(1 - .05 / comparisons / 2, df) * error
    return [math.exp(x) for x in (d, d - half, d + half)]
near = lambda got, want: all(abs(g / w - 1) < 1e-5 for g, w in zip(got, want))
n = 0
for c in json.load(open("two.json"))["cases"]:
    got = [c["ratio"], c["ratio_low"], c["ratio_high"]]
    assert near(got, expected("r1", "r2", c["key"].split("|")[0], 1)), (c["key"], got, expected("r1", "r2", c["key"].split("|")[0], 1))
    n += 1
for c in json.load(open("three.json"))["cases"]:
    for p in c["pairs"]:
        runs = ["r%d" % ("ABC".index(p[side]) + 1) for side in "ab"]
        got, want = [p["ratio"], p["ratio_low"], p["ratio_high"]], expected(*runs, c["key"].split("|")[0], 3)
        assert near(got, want), (c["key"], p, want)
        n += 1
assert n == 12, n
END
}

@test "cases that are asked for by cache level pair between machines with other caches" {
    printf '%s\n' 'suite: t' 'defaults: {repeat: 2, budget: 50ms, warmup: 10ms}' 'cases:' \
        '  - {bench: memory, op: triad, level: L1, threads: 1}' > t.yaml
    "$plumb" run t.yaml --out one --no-report > /dev/null 2>&1 || true
    cp -r one other
    set_meta other "m['run'] = 'other'; m['started_utc'] = '2026-01-03T00:00:00Z'"
    python3 - << 'END'
import csv
rows = list(csv.DictReader(open("other/memory.csv")))
assert all(r["level"] == "L1" and r["working_set"] for r in rows), rows
for r in rows:
    r["working_set"] = 3 * int(r["working_set"]) // 2
out = csv.DictWriter(open("other/memory.csv", "w", newline=""), rows[0], lineterminator="\n")
out.writeheader()
out.writerows(rows)
END
    compare one other --csv levels.csv --all
    [ "$(cells levels.csv state)" = compared ]
    grep -q "working_set" out
}

@test "the page's title and heading hold the two names" {
    make_run bare --seed 1 --cases 3
    make_run guest --seed 2 --cases 3
    compare bare guest --html page.html
    grep -q "<title>equivalent: guest against bare - Plumbline</title>" page.html
    grep -q "<h1>Plumbline comparison: guest against bare</h1>" page.html
}

@test "one run a side is remarked on; several runs take the spread between runs" {
    for i in 1 2 3 4; do
        make_run "a$i" --seed "1$i" --level-spread 0.03
        make_run "b$i" --seed "2$i" --level-spread 0.03
    done
    compare a1 b1
    grep -q "^Note *one run a side" out
    compare a1 a2 a3 a4 --against b1 b2 b3 b4 --csv flags.csv
    grep -q "^Rests on *4 runs a side, 5 launches of each case" out
    run grep -c "one run a side" out
    [ "$output" -eq 0 ]
    [ "$(cells flags.csv verdict worse | wc -l)" -eq 0 ]
    [ "$(cells flags.csv a_runs | sort -u)" -eq 4 ]
    compare a1,a2,a3,a4 b1,b2,b3,b4 --csv commas.csv
    cmp flags.csv commas.csv
    mkdir a b
    mv a? a
    mv b? b
    compare a b --csv folders.csv
    cmp flags.csv folders.csv
}

@test "300 cases: every one that is not equivalent has its line, in the order of the loss" {
    make_run a --seed 1 --cases 300
    make_run b --seed 2 --cases 300 --shift 'memory triad*=0.9' --shift 'copy node0*=0.8'
    compare a b --csv all.csv --html page.html --markdown page.md
    [ "$status" -eq 1 ]
    worse="$(cells all.csv label worse | wc -l)"
    [ "$worse" -eq 40 ]
    grep -E '[0-9]\) +worse' out > worse
    [ "$(wc -l < worse)" -eq 40 ]
    [ "$(wc -l < out)" -lt 140 ]
    sed '1,/^Cases/d' out | sed -n '/^PCIe/,$p' | grep -Eo '0\.[0-9]* \([^)]*\) +worse' | cut -d' ' -f1 > ratios
    [ "$(wc -l < ratios)" -eq 20 ]
    sort -n ratios | cmp - ratios
    [ "$(grep -c "data-of='Case'>memory triad" page.html)" -eq 20 ]
    [ "$(grep -c '<details' page.html)" -eq 7 ] # a component each, and how to read it
    grep -q "<summary>Memory: 100 equivalent cases</summary>" page.html
}

@test "of many that are not equivalent, those worse and the first others are listed; all are counted" {
    make_run a --seed 1 --cases 300 --spread 0.2
    make_run b --seed 2 --cases 300 --spread 0.2 --shift 'memory triad*=0.2'
    compare a b --csv all.csv --html page.html --markdown page.md
    memory="$(grep -c '^Memory,.*,inconclusive,' all.csv)"
    [ "$memory" -gt 40 ]
    [ "$(sed -n '/^Component *Case/,/^PCIe/p' out | grep -c ' undecided ')" -lt "$memory" ]
    [ "$(grep -Ec '\) +worse' out)" -ge "$(cells all.csv label worse | wc -l)" ]
    grep -q "^- Memory: [0-9]* more cases that are not equivalent: --all lists them" out
    [ "$(wc -c < page.md)" -lt 65536 ]
    [ "$(grep -c "<tr><td class='d-text[^>]*data-of='Component'>[^<]*</td><td [^>]*data-of='Case'>" page.html)" -eq 300 ]
    compare a b --all
    [ "$(grep -Ec '\) +(undecided|likely)' out)" -ge "$memory" ]
    run grep -c "more cases that are not" out
    [ "$output" -eq 0 ]
}

@test "lines fit the terminal, and are ASCII where the locale is" {
    make_run a --seed 1 --spread 0.03
    make_run b --seed 2 --spread 0.03 --machine guest --shift 'copy*=0.8' --fail 'net*'
    for columns in 60 72 100 160; do
        LC_ALL=C script -qec "stty cols $columns; '$plumb' compare a b" /dev/null | tr -d '\r' > out || true
        grep -q "worse" out
        awk -v n="$columns" 'length($0) > n { print; bad = 1 } END { exit bad }' <(sed 's/\x1b\[[0-9;]*m//g' out)
    done
    LC_ALL=C "$plumb" compare a b > out || true
    run grep -Pc '[^\x00-\x7f]' out
    [ "$output" -eq 0 ]
}

@test "--only takes the cases that match any of its patterns; none is a usage error" {
    make_run a --seed 1
    make_run b --seed 2
    compare a b --only '*triad, 1 GiB*' --only='gemm*' --csv all.csv
    [ "$status" -eq 0 ]
    [ "$(cells all.csv label | wc -l)" -eq 9 ]
    compare a b --only nothing
    [ "$status" -eq 2 ]
    grep -q "no case matches --only 'nothing'" err
    make_run c --seed 3
    compare a b c --only nothing
    [ "$status" -eq 2 ]
    grep -q "no case matches --only 'nothing'" err
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
    grep -q "the same run is on both sides" err
    compare a b a b a b a b a
    grep -q "9 runs are named, and 8 fit side by side: put --against between" err
    compare a b --csv - --json -
    grep -q -- "--csv and --json both go to stdout" err
    compare a b --csv x --json x
    grep -q -- "--csv and --json both write 'x'" err
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
    grep -q "cannot write '/nowhere/page.html': No such file" err
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
        grep -q "'memory triad, regular, 1 GiB: bandwidth', 5 of 5 launches of B came to 0 or below" <(tr -s ' \n' ' ' < out)
        grep -q "1 case undecided: a value is 0, negative" out
    done
    for value in nan inf; do
        make_run b --cases 3 --seed 2 --value "memory*=$value"
        compare a b
        [ "$status" -eq 4 ]
        grep -q "B failed in 1 case that A has" <(verdict)
        grep -q "^- 1 case: B has no number" out
    done
    make_run c --cases 3 --empty
    make_run d --cases 3 --empty
    compare c d
    [ "$status" -eq 3 ]
    grep -q "no row" err
}

@test "the page holds all it shows, is well formed, and takes texts as texts" {
    make_run a --seed 1
    make_run b --seed 2 --machine guest --shift 'memory triad*=0.9' --fail 'net*'
    mv b '<img src=x>&"b'
    compare a '<img src=x>&"b' --html page.html --markdown page.md --json all.json
    [ "$status" -eq 1 ]
    python3 - page.html <<'END'
import html.parser, sys
void = {"meta", "link", "br", "img"}
class Check(html.parser.HTMLParser):
    stack, ids, rows = [], [], 0
    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        assert tag not in ("img", "script", "iframe"), tag
        for name, value in attrs:
            assert name not in ("src", "href", "xlink:href", "action") or value == "data:," or value[0] == "#", (tag, name, value)
            if name == "id":
                assert value not in self.ids, value
                self.ids.append(value)
        if tag not in void:
            self.stack.append(tag)
        self.rows += tag == "td" and ("data-of", "Ratio (interval)") in attrs
    def handle_startendtag(self, tag, attrs):
        for name, value in attrs:
            assert "nan" not in value and "inf" not in value, (tag, attrs)
    def handle_endtag(self, tag):
        assert self.stack and self.stack.pop() == tag, (tag, self.getpos())
check = Check()
check.feed(open(sys.argv[1]).read())
assert not check.stack, check.stack
assert check.rows == 42, check.rows
page = open(sys.argv[1]).read()
assert page.count("<figure") == 1 and "<figcaption>Memory<" in page and "Ratio and its 95 % interval" in page # the others are equivalent
END
    run grep -Ec "@import|url\(|https?://" page.html
    [ "$output" -eq 0 ]
    run grep -c "<img" page.md
    [ "$output" -eq 0 ]
}

@test "Markdown has the verdict, and tables whose rows have as many cells" {
    make_run a --seed 1
    make_run b --seed 2 --machine guest --shift 'memory triad*=0.9'
    compare a b --markdown page.md
    head -n 1 page.md | grep -q "^## worse: b against a$"
    grep -q "^- \*\*Verdict\*\*: \*\*worse\*\*: B (b) against A (a): worse in Memory" page.md
    python3 - <<'END'
cells = None
tables = 0
for line in open("page.md", encoding="utf-8"):
    n = line.replace("\\|", "").count("|")
    assert not cells or not n or n == cells, line
    tables += bool(n) and not cells
    cells = n
assert tables == 3, tables
END
    grep -q "| \*\*worse\*\* |" page.md
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
    grep -q "^against the baseline: worse: B (b) against A (a): worse in Memory" out
    [ "$(tail -n 1 out)" = "b/report.html" ]
    "$plumb" report b > out
    run grep -c "verdicts'" b/report.html
    [ "$output" -eq 0 ]
    run grep -c "baseline" out
    [ "$output" -eq 0 ]
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

@test "compare A B C: a fact in which the runs of a set differ is told of all of them" {
    for i in 1 2 3 4; do make_run k$i --seed $i; done
    for i in 2 3; do sed -i 's/"kernel": "[^"]*"/"kernel": "7.0.0"/' k$i/run.json; done
    sed -i 's/"kernel": "[^"]*"/"kernel": "6.9.0"/' k4/run.json
    compare k1,k2 k3 k4
    tr -s ' \n' ' ' < out > line
    grep -q "kernel [^ ]* in 1 of 2 runs, 7.0.0 in 1 7.0.0 6.9.0" line
    grep -q "Component Cases A B C Best" line # no name of one run stands for both
    [ "$(grep -c '^ *not known *not known *not known' out)" -eq 0 ]
}
