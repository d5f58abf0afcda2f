#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2086,SC2154 # of variables that the files of this name share
# plumb compare, and verdicts in plumb report: what they say of made-up runs whose changes are known.

load common
load made
load compare

make_pair() { # make_pair DIR SEED: as plumb run --against leaves it
    for side in a b; do
        mkdir -p "$1"
        make_run "$1/$side" --seed "$2$([ $side = a ] && echo 1 || echo 2)" --cases 3
        set_meta "$1/$side" "m['run'] = '$1-$side'; m['against'] = {'pair': '$1', 'side': '$side', 'command': 'target-$side plumb'}"
    done
}

# of_pairs WORDS...: what this comparison has of pairs measured in turn, "yes" or "no".
of_pairs() {
    compare "$@" --csv all.csv
    cells all.csv by_pairs | sort -u
}

@test "the folder of two targets measured in turn is compared by itself, and is never one side" {
    make_pair one 1
    make_pair two 2
    make_run x --seed 9 --cases 3
    exits 0 compare one --csv alone.csv
    grep -Eq "^A +one-a \('one/a'\) on node7" out
    grep -Eq "^B +one-b \('one/b'\) on node7" out
    flat | grep -q " A .*'target-a plumb' .* B .*'target-b plumb'"
    compare one/a one/b --csv named.csv
    cmp alone.csv named.csv
    for words in "one two" "one x" "x one" "one/a one/b --against x"; do
        exits 2 compare $words
        grep -q "plumb run --against.*plumb compare PAIR\|plumb compare PAIR.*plumb run --against" <(tr '\n' ' ' < err)
        [ ! -s out ]
    done
    [ "$(of_pairs one/a two/a --against one/b two/b)" = yes ]
    [ "$(cells all.csv a_runs | sort -u)" = 2 ]
    # The order on a side does not matter; a run without its partner leaves all of them without, and is named.
    compare one/a two/a --against two/b one/b --csv crossed.csv
    cmp all.csv crossed.csv
    blamed() { sed '/^Component/,$d' out | tr -s ' \n' ' ' | grep -q "^.*Note .*'$1' "; }
    for without in 'one/b x' one/b; do
        [ "$(of_pairs one/a two/a --against $without)" = no ]
        blamed two/a
        run ! blamed one/a
    done
    for words in "one/a two/a --against one/b two/b" "one/a two/b" "one/a --against x"; do
        compare $words
        run ! blamed '[a-z]*/a'
    done
    exits 2 compare x
    [ -s err ]
}

@test "a disturbed side hides no loss of the other: such an equivalence is inconclusive" {
    make_run a --seed 1 --shift 'memory*=0.9'
    make_run b --seed 2 --shift 'memory*=0.9'
    disturb a memory steal_percent=10
    exits 3 compare a b --csv all.csv
    [ "$(cells all.csv word | grep -c disturbed)" -eq 14 ]
    # The same time taken from both, a little of it, or time that counts as measured, changes nothing.
    exits 0 compare a b --as-measured
    disturb b memory steal_percent=10
    exits 0 compare a b
    disturb a memory steal_percent=2
    disturb b memory steal_percent=1
    exits 0 compare a b
    # So it is where B is the disturbed side: undisturbed, it may be better.
    disturb b memory steal_percent=12
    exits 3 compare a b --csv all.csv
    [ "$(cells all.csv word | grep -c disturbed)" -eq 14 ]
}

@test "cases that --steal leaves out are inconclusive, and wrong data stays wrong" {
    make_run b --seed 2 --shift 'memory*=0.5'
    disturb b memory steal_percent=5
    exits 3 compare a b --steal 2% --json all.json
    grep -Eq "^Memory +14 +0 +14 " out
    grep -q "14 cases .*--steal" out
    python3 - << 'END'
import json
all = json.load(open("all.json"))
memory = [p for p in all["pipes"] if p["pipe"] == "Memory"][0]
assert memory["cases"] == memory["counts"]["inconclusive"] == 14, memory
assert all["verdict"] == "inconclusive" and all["counts"]["inconclusive"] == 14 and all["exit"] == 3, all["counts"]
END
    # Nothing but cases that were left out.
    exits 3 compare a b --steal 2% --only 'memory triad*'
    # What is decided as worse stays so.
    make_run c --seed 3 --shift 'copy*=0.8'
    disturb c memory steal_percent=5
    exits 1 compare a c --steal 2%
    # Wrong data in some launches, and steal in the others.
    disturb b memory steal_percent=5 status=wrong,wrong,wrong,ok,ok
    exits 4 compare a b --steal 2% --csv all.csv
    [ "$(states)" = "36 compared 14 failed-b" ]
    [ "$(cells all.csv reason | grep -c "3 of 5 ")" -eq 14 ]
    # Wrong data in some launches of B, and steal in all of A.
    disturb a memory steal_percent=5
    disturb b memory steal_percent=0 status=wrong,ok,ok,ok,ok
    exits 4 compare a b --steal 2%
    flat | grep -q "1 of 5 .*wrong"
}

@test "time that the CPU lost explains no loss of a GPU, nor do noise and throttling" {
    for i in 1 2 3; do make_run "b$i" --seed 2 --shift 'memory*=0.93'; done
    disturb b1 memory steal_percent=20 gpu_clock_mhz_high=1980
    disturb b2 memory gpu_throttled_ms=900 gpu_clock_mhz_high=1980
    disturb b3 memory throttle_events=7 status=noisy
    disturbed() { grep -q ' worse (1)' out; } # is there a note on the losses?
    for i in 1 2 3; do
        exits 1 compare a "b$i" --all --csv all.csv
        [ "$(tally worse)" = "14 Memory" ]
        disturbed
    done
    flat | grep -q "throttled .*5 of 5, noisy .*5 of 5"
    # One tick of steal, which rounding may make, is told as 1 %.
    make_run t --seed 2 --shift 'memory*=0.93'
    disturb t memory steal_percent=1
    exits 1 compare a t
    run ! disturbed
    # Of a quota and of a GPU, more than 0.1 % is told.
    disturb t memory steal_percent=0 quota_percent=0.1 gpu_throttled_ms=1
    compare a t
    run ! disturbed
    # A quota does. Of one thread it took 10 % of what that wanted, of 128 CPUs next to nothing.
    make_run q --seed 2 --shift 'memory*=0.93'
    disturb q memory quota_throttled_ms=100 quota_percent=10
    exits 3 compare a q
    # Rows without that share have the time alone, which is added up over 128 CPUs.
    make_run q --seed 2 --shift 'memory*=0.93'
    disturb q memory quota_throttled_ms=100
    exits 1 compare a q
    disturb q memory quota_throttled_ms=12800
    exits 3 compare a q --csv q.csv
    [ "$(cells q.csv word | sort | uniq -c | grep -c '14 disturbed')" -eq 1 ]
    flat | grep -q "quota 10 %"
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
    exits 0 compare mine --to auto --json to.json
    flat | grep -q "Reference guest .*2026-01-02, .* 50 of 50 .* 7 of 7 "
    # The suite of today need not have what that of the reference had; two runs of a user do.
    make_run fewer --seed 9 --machine guest --drop 'net*'
    set_meta fewer "m['machine']['cpu'].update(family=25, model_number=17)"
    exits 0 compare fewer --to guest
    exits 4 compare refs/guest fewer
    compare mine --to small --json small.json
    flat > line
    grep -q "Reference small .* 4 of 7 .* bare metal .*KVM.* family 26 .* family 25 .*cores 2 .*64" line
    python3 -c 'import json
to, small = (json.load(open(name))["reference"] for name in ("to.json", "small.json"))
assert (to["name"], to["alike"], to["facts"], to["distance"]) == ("guest", 7, 7, 0), to
# a quarter of another model, three quarters of another family of 8; 3 at most of 5 doublings; 2
assert (small["alike"], small["facts"]) == (4, 7) and abs(small["distance"] - (6 + 3 + 2)) < 1e-9, small'
    # What is not known counts half. Of two that are as near, the newer one is taken.
    set_meta mine "m['machine']['virtualization']['hypervisor'] = None"
    set_meta refs/guest "m['machine']['cpu']['vendor'] = 'GenuineIntel'"
    compare mine --to auto
    grep -q "^Reference *old " out
    cp -r refs/old refs/new
    set_meta refs/new "m['started_utc'] = '2026-01-03T00:00:00Z'; m['run'] = 'new'"
    compare --to auto mine
    grep -q "^Reference *new .*2026-01-03" out
    # Nearness counts only among those with which nearly all of the run's cases can be compared.
    make_run refs/nearest --seed 9 --machine guest --drop 'memory*' --drop 'net*'
    set_meta refs/nearest "m['machine'] = json.load(open('mine/run.json'))['machine']"
    compare mine --to auto
    grep -q "^Reference *new .*2026-01-03" out
    warned 2 "'none' *old" compare mine --to none
    exits 2 compare --to auto
    PLUMB_REFERENCES=$PWD/nowhere warned 2 "PLUMB_REFERENCES" compare mine --to auto
}

@test "three runs: each against the first, proven over all comparisons, as of two runs" {
    make_run a --seed 11
    make_run b --seed 12 --shift 'memory*=1.15'
    make_run c --seed 13 --shift 'memory*=1.3' --shift 'copy*node0*=0.9'
    for run in a b c; do set_meta $run "m['machine']['gpus']['driver_version'] = '58' + str(ord('$run') - 96)"; done
    exits 0 compare a b c --json all.json --csv all.csv --html page.html --markdown page.md
    grep -q "^against a: b and c faster$\|^against a: c .*; b faster$" out
    grep -Eq "^Memory +14 +1\.1[0-9]*, 14 better +1\.[23][0-9]*, 14 better" out
    grep -Eq "^NVIDIA driver +581 +582 +583$" out
    grep -q "2 comparisons" out
    grep -q "<title>a, b and c - Plumbline</title>" page.html
    grep -q "^## a, b and c$" page.md
    compare a c --json two.json || true
    python3 - << 'END'
import csv, json
all, two = json.load(open("all.json")), json.load(open("two.json"))
assert [c["run"] for c in all["comparisons"]] == ["B", "C"] and all["exit"] == 0
ratios = {c["key"]: c["ratio"] for c in two["cases"]}
assert len(ratios) == 50
wider = 0
for c, other in zip(all["comparisons"][1]["cases"], two["cases"]):
    assert abs(c["ratio"] / ratios[c["key"]] - 1) < 1e-6
    wider += c["ratio_high"] - c["ratio_low"] > other["ratio_high"] - other["ratio_low"]
assert wider == 50
rows = list(csv.DictReader(open("all.csv")))
assert len(rows) == 100
verdicts = {(o["run"], c["key"]): c["verdict"] for o in all["comparisons"] for c in o["cases"]}
assert not any(verdicts[r["run"], r["key"]] != r["verdict"] for r in rows)
END
    # A run that failed where the first has a value makes it incomplete; one too noisy, inconclusive.
    make_run f --seed 14 --fail 'gemm f64 256*'
    exits 4 compare a b f
    make_run worse --seed 15 --shift 'memory*=0.8' --fail 'gemm f64 256*'
    for order in "a worse b" "f a b"; do # what is worse, or first, hides nothing
        exits 4 compare $order
    done
    exits 2 compare a b b
    make_run noisy --seed 17 --spread 0.6 --shift 'memory*=0.7'
    exits 3 compare a noisy c
}

@test "300 cases: the twenty that lost most have their line, in the order of the loss, and --all has each one" {
    make_run a --seed 1 --cases 300
    make_run b --seed 2 --cases 300 --shift 'memory triad*=0.9' --shift 'copy node0*=0.8'
    exits 1 compare a b --csv all.csv --html page.html --markdown page.md
    [ "$(cells all.csv label worse | wc -l)" -eq 40 ]
    grep -E ' worse$' out | grep -Eo ' 0\.[0-9]+ ' > ratios
    [ "$(wc -l < ratios)" -eq 20 ]
    sort -n ratios | cmp - ratios
    grep -q "^\.\.\. .* 20 .*--all" out
    [ "$(wc -l < out)" -lt 50 ]
    awk 'length > 100 { exit 1 }' out
    compare a b --all
    [ "$(grep -cE ' worse( |$)' out)" -ge 40 ]
    awk 'length > 100 { exit 1 }' out
    [ "$(grep -o "data-of='case'>memory triad" page.html | wc -l)" -eq 20 ]
    [ "$(grep -c '<details' page.html)" -eq 6 ] # a component each
}

@test "the page holds all it shows, is well formed, and takes texts as texts" {
    make_run b --seed 2 --machine guest --shift 'memory triad*=0.9' --fail 'net*'
    mv b '<img src=x>&"b'
    exits 1 compare a '<img src=x>&"b' --html page.html --markdown page.md --json all.json
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
        self.rows += tag == "td" and ("data-of", "ratio") in attrs
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
assert page.count("<figure") == 1 and "<figcaption>Memory<" in page # the others are equivalent
END
    ! grep -Eq "@import|url\(|https?://" page.html || return 1
    ! grep -q "<img" page.md || return 1
}

@test "one run a side is remarked on; several runs take the spread between runs" {
    for i in 1 2 3 4; do
        make_run "a$i" --seed "1$i" --level-spread 0.03
        make_run "b$i" --seed "2$i" --level-spread 0.03
    done
    compare a1 b1
    flat | grep -q " Note .*plumb run --against"
    compare a1 a2 a3 a4 --against b1 b2 b3 b4 --csv flags.csv
    ! flat | grep -q "plumb run --against" || return 1
    [ "$(cells flags.csv verdict worse | wc -l)" -eq 0 ]
    [ "$(cells flags.csv a_runs | sort -u)" -eq 4 ]
    compare a1,a2,a3,a4 b1,b2,b3,b4 --csv commas.csv
    cmp flags.csv commas.csv
    rm -r a
    mkdir a b
    mv a? a
    mv b? b
    compare a b --csv folders.csv
    cmp flags.csv folders.csv
}

sustain() { # sustain RUN SHARE [QUOTA_PERCENT]: what its rows sustained, as a share of the median
    python3 - "$@" <<'END'
import csv, glob, sys
for path in glob.glob(f"{sys.argv[1]}/*.csv"):
    rows = list(csv.DictReader(open(path)))
    if "value" not in rows[0]:
        continue
    for row in rows:
        share = float(sys.argv[2]) if row["unit"] not in ("us", "ns", "ms") else 1 / float(sys.argv[2])
        row["sustained"] = float(row["value"]) * share if row["value"] else ""
        row["quota_percent"] = sys.argv[3] if len(sys.argv) > 3 else ""
    out = csv.DictWriter(open(path, "w", newline=""), rows[0], lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
END
}

@test "what a CPU quota takes shows in no median, and makes a case worse all the same" {
    make_run b --seed 2
    sustain a 1
    sustain b 1
    exits 0 compare a b
    sustain b 0.77 23
    exits 1 compare a b
    flat | grep -q "quota 23 %"
    compare a b --csv cases.csv
    [ "$(cells cases.csv judged_by worse | sort -u)" = sustained ]
    cells cases.csv ratio worse | awk '!($1 > 0.74 && $1 < 0.8) { exit 1 } END { exit !NR }'
    [ -z "$(cells cases.csv ratio equivalent)" ]
}

@test "a processor that is sold under the same name is told, and no network explains what used none" {
    for run in a b; do
        if [ $run = a ]; then make_run a --seed 1; else make_run b --seed 1 --shift '*=0.5'; fi
        set_meta $run "m['machine']['cpu'].update(family=25, model_number=17)"
    done
    set_meta b "m['machine']['cpu'].update(family=26, model_number=2); m['machine']['network'][0]['speed_gbits_per_s'] = 10"
    compare a b --all
    flat > line
    grep -q "processor AuthenticAMD family 25 model 17 / AuthenticAMD family 26 model 2 (may explain " line
    grep -q "network interfaces mlx5_core, 200 Gb/s / mlx5_core, 10 Gb/s (may explain Network" line
    disturb a '*' carrier=shm
    disturb b '*' carrier=shm
    compare a b --all
    flat | grep -q "processor AuthenticAMD"
    ! flat | grep -q "network interfaces [^/]*/s / [^/]*/s (may" || return 1
}

@test "in training steps of a model, a machine of twice the speed is twice the other" {
    made_by tools/make-run.py a
    made_by tools/make-run.py b --factor 2 --seed 3
    compare a b --model gpt2-xl --price 100:150 --json -
    python3 -c 'import json
t = json.load(open("out"))["training"]
assert t["ratio_low"] < 2 < t["ratio_high"] and abs(t["ratio"] - 2) < 0.1, t
assert t["a_recomputes"] and t["b_recomputes"], t  # 32.6 GB of 25.3 GB'
    compare a b --model gpt2-xl --price 100:150
    flat | grep -q "gpt2-xl .* 1\.3[0-9] ([0-9.]* to [0-9.]*) times .*money"
    exits 2 compare a b --model gpt2-nosuch
    exits 2 compare a b --price 100:150
}
