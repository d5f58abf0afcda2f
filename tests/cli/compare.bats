#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086,SC2154 # of variables that the files of this name share
# plumb compare, and verdicts in plumb report: what they say of made-up runs whose changes are known.

load common
load made
load compare

@test "a loss in one case is named, with its ratio, and is exit 1; JSON and CSV agree with the table" {
    make_run b --seed 2 --shift 'memory triad 536870912*=0.9'
    exits 1 compare a b --csv all.csv --json all.json
    [ "$(cells all.csv label worse)" = "memory triad, 512 MiB: bandwidth" ]
    head -n 1 out | grep -Eq "^b is slower than a: Memory by [0-9.]+ % .* in 1 of 14 cases; .* 5 %$"
    grep -Eq "^Memory +14 +13 +1 +0\.[0-9]+ +memory triad, 512 MiB$" out
    grep -Eq "^memory triad, 512 MiB +26\.1 +[0-9.]+ GB/s .* worse$" out
    python3 - <<'END'
import csv, json
j = json.load(open("all.json"))
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
    exits 0 compare b a --csv all.csv --only 'memory*' # a gain
    [ "$(tally better)" = "1 Memory" ]
}

@test "of two machines that each win, the sentence says who wins where, the largest first, and what is open" {
    make_run b --seed 2 --shift 'gemm *=1.4' --shift 'memory *=0.8' --skip 'net *'
    exits 1 compare a b
    flat | grep -Eq "^b is faster than a in Matrix core by (39|40|41) % .*; slower in Memory by (19|20|21) % .*; otherwise 20 cases equivalent within 5 % and 8 not compared"
    ! grep -q "all else" out || return 1
}

@test "what is slow beside its like within a side stands in the first lines, with its name" {
    made_by tools/make-cluster.py one
    made_by tools/make-cluster.py two --seed 2 --slow-host 2
    compare one two
    head -n 4 out | grep -q "^Slow in B .*node2"
    ! grep -q "^Slow in A" out || return 1
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

@test "ratios and intervals are those of another reader of the launches: Student's t on their logarithms" {
    for i in 1 2 3; do make_run "r$i" --seed "2$i" --cases 3 --spread 0.03; done
    compare r1 r2 --json two.json
    compare r1 r2 r3 --json three.json
    python3 - <<'END'
import csv, json, math, statistics as s
def expected(c, other, t): # t: of 8 degrees of freedom
    bench = c["key"].split("|")[0]
    a, b = ([math.log(float(r["value"])) for r in csv.DictReader(open(f"{run}/{bench}.csv"))] for run in ("r1", other))
    d = (s.mean(b) - s.mean(a)) * (-1 if bench == "allreduce" else 1) # a time: lower is better
    half = t * math.sqrt((s.variance(a) + s.variance(b)) / 2 * (1 / 5 + 1 / 5))
    assert len(a) == len(b) == 5
    return [math.exp(x) for x in (d, d - half, d + half)]
cases = [(c, "r2", 2.3060041) for c in json.load(open("two.json"))["cases"]] # 95 %
for o in json.load(open("three.json"))["comparisons"]: # two, each of 97.5 %
    cases += [(c, {"B": "r2", "C": "r3"}[o["run"]], 2.7515236) for c in o["cases"]]
assert len(cases) == 9
for c, other, t in cases:
    for got, want in zip((c["ratio"], c["ratio_low"], c["ratio_high"]), expected(c, other, t)):
        assert abs(got / want - 1) < 1e-5, (c, want)
END
}

@test "noise beyond the margin is inconclusive, exit 3, with what would decide" {
    make_run a --seed 1 --spread 0.08
    make_run b --seed 2 --spread 0.08
    exits 3 compare a b --csv all.csv
    cells all.csv more inconclusive | grep -q '[0-9]'
    [ "$(cells all.csv more_of inconclusive | sort -u | tail -n 1)" = launches ]
}

@test "one launch a side tells no spread: nothing is decided" {
    make_run a --seed 1 --launches 1
    make_run b --seed 2 --launches 1 --shift 'memory *=0.5'
    exits 3 compare a b --csv all.csv
    [ "$(cells all.csv verdict | uniq -c | xargs)" = "50 inconclusive" ]
    [ -z "$(cells all.csv ratio_low | tr -d '\n')" ]
}

@test "a case that A has and B failed, skipped or does not have is exit 4, and named with its reason" {
    make_run b --seed 2 --fail 'net rdma 1048576*' --skip 'gemm f64 256*' --drop 'memory read 1073741824*'
    exits 4 compare a b --csv all.csv
    [ "$(states)" = "46 compared 2 failed-b 2 lost-b" ]
    grep -q "peer is gone.*net rdma, 1 MiB: latency" out # the reason that make_runs.py gives it
    grep -q "memory read, 1 GiB: bandwidth" out
    make_run c --seed 2 --skip 'gemm f64 256*'
    exits 4 compare a c
    exits 0 compare c a # what B alone has takes nothing from the verdict
    make_run d --seed 2 --fail 'net rdma 1048576*' --shift 'memory *=0.9'
    exits 1 compare a d # what is proven comes before what is missing
}

@test "what is not comparable is refused, not paired" {
    make_run a --seed 1 --cases 3
    make_run b --seed 2 --cases 3 --origin simulated
    exits 4 compare a b --csv all.csv
    [ "$(states)" = "3 refused" ]
    [ -z "$(cells all.csv ratio | tr -d '\n')" ]
}

@test "a cause stands next to the loss" {
    make_run b --seed 2 --machine guest --shift 'memory triad*=0.9'
    compare a b
    flat | grep -q " Differs .*NUMA nodes 2 / 1 (may explain Memory)"
    compare a b --all
    grep -Eq "^NUMA nodes +2 +1 +Memory" out
    grep -q "^virt" out
    make_run c --seed 3
    compare a c --all
    ! grep -q "NUMA nodes" out || return 1
}

@test "a run that was not measured to its end is incomplete, whatever the launches say that are there" {
    make_run b --seed 2
    exits 0 compare a b
    for state in interrupted stopped running; do
        set_meta b "m['state'] = '$state'"
        exits 4 compare a b --markdown page.md
        flat | grep -q "'b' of B .*'$state'"
        grep -q "$state" page.md
    done
    exits 4 compare b a
    flat | grep -q "'b' of A .*'running'"
    make_run c --seed 2 --shift 'memory *=0.9'
    set_meta c "m['state'] = 'stopped'"
    exits 1 compare a c
    flat | grep -q "'c' of B .*'stopped'"
}

@test "a run on both sides, or twice on one, is refused, under another path and as a copy, too: its launches would count twice" {
    make_run a --seed 1 --cases 3
    make_run b --seed 2 --cases 3
    make_run c --seed 3 --cases 3
    ln -s a link
    cp -r a copy
    mkdir runs
    cp -r b runs/b
    for words in "a a" "a ./a/" "a link" "a copy" "a b --against b" "a b a" \
        "a,a b" "a a --against b" "c --against a b a" "a,./a/ b" "a,link b" "a,copy b" "c --against b,runs"; do
        exits 2 compare $words
        grep -q "'\(a\|b\|./a/\|copy\|link\|runs/b\)'" err
        [ ! -s out ]
    done
    told 2 "'copy'" "$plumb" report a --baseline copy
    exits 0 compare a,b c
    set_meta copy "m['started_utc'] = '2026-01-02T05:00:00Z'"
    exits 0 compare a copy
}

@test "a loss that the time taken can explain is inconclusive, and a larger one is not" {
    make_run b --seed 2 --shift 'memory*=0.935'
    make_run c --seed 2 --shift 'memory*=0.85'
    for run in b c; do disturb $run memory steal_percent=12,12,12,1,1; done
    exits 3 compare a b --csv b.csv
    grep -q "^B .*steal 7.6 %" out
    grep -q "^A .* quiet$" out
    flat | grep -q " 8 .*--steal 2%" # launches that are missing
    exits 1 compare a b --as-measured --csv as.csv
    [ "$(cells as.csv word worse | wc -l)" -eq 14 ]
    exits 1 compare a c --csv c.csv
    grep -q " worse (1)$" out
    # A gain over a side that was disturbed is none, either.
    exits 3 compare b a --csv gain.csv
    [ "$(cat b.csv gain.csv | grep -c ',disturbed,') $(cells c.csv word worse | wc -l)" = "28 14" ]
    cells b.csv b_taken | sort -u | grep -q '^0.12'
    # Without the disturbed launches, the loss is there, and is no longer explained.
    disturb b memory steal_percent=9,1,1,1,1
    compare a b --steal 2% --csv quiet.csv
    [ "$(cells quiet.csv b_launches | sort -u | tr '\n' ' ')" = "4 5 " ]
    ! grep -q ",disturbed," quiet.csv || return 1
    for share in 0 200% x; do
        exits 2 compare a b --steal $share
    done
}

@test "one disturbed launch of five takes back nothing that the others prove" {
    make_run b --seed 2 --shift 'memory*=0.9'
    disturb b memory steal_percent=0,0,45,0,0
    exits 1 compare a b --csv all.csv
    [ "$(tally worse)" = "14 Memory" ]
    disturb b memory steal_percent=0,45,45,45,0
    exits 3 compare a b
}

@test "--only takes the cases that match any of its patterns; none is a usage error" {
    make_run b --seed 2
    exits 0 compare a b --only '*triad, 1 GiB*' --only='gemm*' --csv all.csv
    [ "$(cells all.csv label | wc -l)" -eq 9 ]
    warned 2 "'nothing'" compare a b --only nothing
    make_run c --seed 3
    warned 2 "'nothing'" compare a b c --only nothing
}

@test "the margin decides what is equivalent: the suite's own, unless the user says one" {
    make_run b --seed 2 --shift '*=0.97'
    exits 0 compare a b
    exits 1 compare a b --margin 1% --csv all.csv
    [ "$(cells all.csv margin | sort -u)" = 0.01 ]
    make_run c --seed 1 --margin 0.01
    make_run d --seed 2 --margin 0.01 --shift '*=0.97'
    exits 1 compare c d
    exits 0 compare c d --margin 5%
}

@test "usage errors name what is wrong, and are exit 2" {
    make_run a --cases 3
    make_run b --cases 3
    make_run new --cases 3 --schema 99
    mkdir empty
    while IFS='|' read -r words pattern; do
        warned 2 "$pattern" compare $words
    done <<'END'
|
a|
a b a b a b a b a|9 *8 *--against
a --against|
--against b|
a nowhere|nowhere
a empty|empty
a new|99
a b --margin 0|--margin
a b --margin x|--margin
a b --uot|uot
a b --csv - --json -|--csv*--json
a b --html - --markdown -|--html*--markdown
a b --csv x --json x|--csv*--json*'x'
END
    [ ! -e x ]
    compare --help
    grep -q -- "--against" out
}

@test "a damaged run is exit 5 and named; a file that cannot be written is exit 4" {
    make_run a --cases 3
    make_run b --cases 3
    warned 4 "'/nowhere/page.html'" compare a b --html /nowhere/page.html
    sed -i '2s/,[^,]*,/,/' b/memory.csv
    warned 5 "memory.csv" compare a b
}

@test "values that have no logarithm, and runs without a row, are said and not decided" {
    make_run a --cases 3
    for value in 0 -1; do
        make_run b --cases 3 --seed 2 --value "memory*=$value"
        exits 4 compare a b --csv all.csv
        flat | grep -q "'memory triad, regular, 1 GiB: bandwidth': 5 of 5 "
        [ "$(tally inconclusive)" = "1 Memory" ]
    done
    for value in nan inf; do
        make_run b --cases 3 --seed 2 --value "memory*=$value"
        exits 4 compare a b --csv all.csv
        [ "$(states)" = "2 compared 1 failed-b" ]
    done
    make_run c --cases 3 --empty
    make_run d --cases 3 --empty
    exits 3 compare c d
    [ -s err ]
}

@test "the report of a run has verdicts against a baseline, and a line on the terminal" {
    make_run b --seed 2 --machine guest --shift 'memory triad*=0.9'
    "$plumb" report b --baseline a > out
    grep -q "<section id='verdicts'>" b/report.html
    grep -q "<a href='#verdicts'>" b/report.html
    grep -q "baseline.*slower.*Memory" out
    [ "$(tail -n 1 out)" = "b/report.html" ]
    "$plumb" report b > out
    ! grep -q "verdicts'" b/report.html || return 1
    ! grep -q "baseline" out || return 1
}

@test "a report's baseline that is none is an error, and no page is written" {
    make_run a --cases 3
    make_run b --cases 3
    told 2 nowhere "$plumb" report b --baseline nowhere
    [ ! -e b/report.html ]
    told 2 'plumb compare' "$plumb" report a b --baseline a --out both
    sed -i '2s/,[^,]*,/,/' a/memory.csv
    run -5 "$plumb" report b --baseline a
}
