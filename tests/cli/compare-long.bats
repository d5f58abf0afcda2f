#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb compare, and verdicts in plumb report: what they say of made-up runs whose changes are known.

load made
load compare

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
    notes | grep -q "Note measured in turn: .* A is .*'target-a plumb' .* B is .*'target-b plumb'"
    compare one/a one/b --csv named.csv
    cmp alone.csv named.csv
    for words in "one two" "one x" "x one" "one/a one/b --against x"; do
        # shellcheck disable=SC2086
        compare $words
        [ "$status" -eq 2 ]
        grep -q "plumb run --against" err
        grep -q "plumb compare PAIR" err
        [ ! -s out ]
    done
    compare one/a two/a --against one/b two/b
    [ "$status" -ne 2 ]
    notes | grep -q "Rests on 2 runs a side"
    notes | grep -q "Note measured in turn: "
    notes | grep -q "2 pairs of runs; A is .* B is"
    ! grep -q "Note *where a side has several" out || return 1
    # The order on a side does not matter; a run without its partner leaves all of them without.
    compare one/a two/a --against one/b two/b --csv straight.csv
    compare one/a two/a --against two/b one/b --csv crossed.csv
    cmp straight.csv crossed.csv
    [ "$(cells straight.csv by_pairs | sort -u)" = yes ]
    compare one/a two/a --against one/b x --csv x.csv
    notes | grep -q "Note where a side has several"
    ! grep -q "measured in turn: " out || return 1
    # That pairs were there, and were not used, is said, with the run that is to blame.
    [ "$(cells x.csv by_pairs | sort -u)" = no ]
    [[ "$(notes)" == *"Note runs here"*"'two/a' (and 1 more)"* ]]
    compare one/a two/a --against one/b --json x.json
    [[ "$(notes)" == *"Note runs here"*"'two/a' "* ]]
    python3 -c 'import json; assert not any(c["by_pairs"] for c in json.load(open("x.json"))["cases"])'
    for words in "one/a two/a --against one/b two/b" "one/a two/b" "one/a --against x"; do
        # shellcheck disable=SC2086
        compare $words --json y.json
        [[ "$(notes)" != *"Note runs here"* ]]
    done
    compare x
    [ "$status" -eq 2 ]
    grep -q "against which run?" err
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
    verdict | grep -q "^Verdict undecided: .*Memory"
    grep -Eq "^Memory +14 +0 +14 +0 +0 +no ratio" out
    grep -q "14 cases undecided: .*--steal" out
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
    verdict | grep -q "^Verdict undecided: .* steal"
    # What is decided as worse stays so.
    make_run c --seed 3 --shift 'copy*=0.8'
    disturb c memory steal_percent=5
    compare a c --steal 2%
    [ "$status" -eq 1 ]
    # Wrong data in some launches, and steal in the others.
    disturb b memory steal_percent=5 status=wrong,wrong,wrong,ok,ok
    compare a b --steal 2% --csv all.csv
    [ "$status" -eq 4 ]
    verdict | grep -q "B failed in 14 cases"
    [ "$(cells all.csv reason | grep -c "3 of 5 .*wrong data")" -eq 14 ]
    # Wrong data in some launches of B, and steal in all of A.
    disturb a memory steal_percent=5
    disturb b memory steal_percent=0 status=wrong,ok,ok,ok,ok
    compare a b --steal 2%
    [ "$status" -eq 4 ]
    flat | grep -q "1 of 5 .*wrong data"
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
    flat | grep -q "throttled in 5 of 5, noisy in 5 of 5"
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
    compare mine --to auto --json to.json
    [ "$status" -eq 0 ]
    flat | grep -q "Reference guest of 2026-01-02, .* 50 of 50 .* 7 of 7 "
    # The suite of today need not have what that of the reference had; two runs of a user do.
    make_run fewer --seed 9 --machine guest --drop 'net*'
    set_meta fewer "m['machine']['cpu'].update(family=25, model_number=17)"
    compare fewer --to guest
    [ "$status" -eq 0 ]
    compare refs/guest fewer
    [ "$status" -eq 4 ]
    compare mine --to small --json small.json
    flat > line
    grep -q "Reference small of 2026-01-02, .* 4 of 7 .* AuthenticAMD family 26 model 17 against AuthenticAMD family 25 model 17, cores 2 against 64, virtualisation none against kvm" line
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
    # Nearness counts only among those with which nearly all of the run's cases can be compared.
    make_run refs/nearest --seed 9 --machine guest --drop 'memory*' --drop 'net*'
    set_meta refs/nearest "m['machine'] = json.load(open('mine/run.json'))['machine']"
    compare mine --to auto
    grep -q "^Reference *new of 2026-01-03" out
    compare mine --to none
    [ "$status" -eq 2 ]
    grep -q "'none' .*old" err
    compare --to auto
    [ "$status" -eq 2 ]
    PLUMB_REFERENCES=$PWD/nowhere compare mine --to auto
    [ "$status" -eq 2 ]
    grep -q "PLUMB_REFERENCES" err
}

@test "three runs: each against the first, proven over all comparisons, as of two runs" {
    make_run a --seed 11
    make_run b --seed 12 --shift 'memory*=1.15'
    make_run c --seed 13 --shift 'memory*=1.3' --shift 'copy*node0*=0.9'
    for run in a b c; do set_meta $run "m['machine']['gpus']['driver_version'] = '58' + str(ord('$run') - 96)"; done
    compare a b c --json all.json --csv all.csv --html page.html --markdown page.md
    [ "$status" -eq 0 ]
    flat | grep -q " B better: b on node7.* 0 worse, 14 better, 36 equivalent, 0 undecided of 50 cases"
    flat | grep -Eq " Memory 14 1 1\.1[0-9]*( to 1\.1[0-9]*)?: 14 better 1\.[23][0-9]*( to 1\.3[0-9]*)?: 14 better "
    grep -Eq "^NVIDIA driver +581 +582 +583$" out
    grep -q "^Rests on *2 comparisons.* (97.5 % each)" out
    grep -q "^- 28 cases .*--all" out
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
    # A run that failed where the first has a value makes it incomplete; one too noisy, undecided.
    make_run f --seed 14 --fail 'gemm f64 256*'
    compare a b f
    [ "$status" -eq 4 ]
    flat | grep -q " C incomplete: .*no value in 1 case"
    make_run worse --seed 15 --shift 'memory*=0.8' --fail 'gemm f64 256*'
    for order in "a worse b" "f a b"; do # what is worse, or first, hides nothing
        # shellcheck disable=SC2086
        compare $order
        [ "$status" -eq 4 ]
    done
    compare a b b
    [ "$status" -eq 2 ]
    make_run noisy --seed 17 --spread 0.6 --shift 'memory*=0.7'
    compare a noisy c
    [ "$status" -eq 3 ]
    flat | grep -q " B undecided: "
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
for o in json.load(open("three.json"))["comparisons"]:
    for p in o["cases"]:
        runs = ["r1", "r%d" % ("ABC".index(o["run"]) + 1)]
        got, want = [p["ratio"], p["ratio_low"], p["ratio_high"]], expected(*runs, p["key"].split("|")[0], 2)
        assert near(got, want), (p, want)
        n += 1
assert n == 9, n
END
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
    ! grep -Eq "@import|url\(|https?://" page.html || return 1
    ! grep -q "<img" page.md || return 1
}

@test "one run a side is remarked on; several runs take the spread between runs" {
    for i in 1 2 3 4; do
        make_run "a$i" --seed "1$i" --level-spread 0.03
        make_run "b$i" --seed "2$i" --level-spread 0.03
    done
    compare a1 b1
    grep -q "^Note *one run a side" out
    compare a1 a2 a3 a4 --against b1 b2 b3 b4 --csv flags.csv
    grep -q "^Rests on *4 runs a side, 5 launches" out
    ! grep -q "one run a side" out || return 1
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
    ! grep -q "^kernel" out || return 1
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
    make_run a --seed 1
    make_run b --seed 2
    sustain a 1
    sustain b 1
    compare a b
    [ "$status" -eq 0 ]
    sustain b 0.77 23
    compare a b
    [ "$status" -eq 1 ]
    flat | grep -q "quota 23 %"
    compare a b --csv cases.csv
    [ "$(cells cases.csv judged_by worse | sort -u)" = sustained ]
    cells cases.csv ratio worse | awk '!($1 > 0.74 && $1 < 0.8) { exit 1 } END { exit !NR }'
    [ -z "$(cells cases.csv ratio equivalent)" ]
}

@test "a processor that is sold under the same name is told, and no network where none was used" {
    for run in a b; do
        if [ $run = a ]; then make_run a --seed 1; else make_run b --seed 1 --shift '*=0.5'; fi
        set_meta $run "m['machine']['cpu'].update(family=25, model_number=17)
m['machine']['network'] = [{'name': 'eth0', 'driver': 'mlx5_core', 'speed_mbits': 100000 if '$run' == 'a' else 10000}]
m['machine']['tcp'] = {'congestion_control': 'cubic' if '$run' == 'a' else 'bbr'}"
    done
    set_meta b "m['machine']['cpu'].update(family=26, model_number=2)"
    compare a b
    flat > line
    grep -q "AuthenticAMD family 25 model 17 against AuthenticAMD family 26 model 2" line
    grep -q bbr line
    disturb a '*' carrier=shm
    disturb b '*' carrier=shm
    compare a b
    grep -q "processor: AuthenticAMD" out
    ! grep -q bbr out || return 1
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
    compare a b --model gpt2-nosuch
    [ "$status" -eq 2 ]
    compare a b --price 100:150
    [ "$status" -eq 2 ]
}
