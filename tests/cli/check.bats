#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086,SC2154 # of variables that the files of this name share
# plumb check: the gate's exit codes, its files, its history, and what CI makes of it, on made-up run folders.

load common
load made
load check

@test "nothing changed: exit 0, and one line says so, with the slowdown that would have been detected" {
    made b --seed 2
    check 0 b --baseline a
    head -n 1 out | grep -qE "^ok: $judged .* [0-9.]+ % "
    [ ! -s err ]
}

@test "what others took of the CPU is no loss: such launches are left out, and it is said" {
    made b --seed 2 --steal 'memory triad 1073741824 *=30' --steal 'memory read 1073741824 *=12.5@3'
    check 0 b --baseline a --markdown page.md
    grep -q "^ok: $((judged - 1)) " out
    fact steal | grep -q "^in 2 .*--steal"
    grep -q 'memory triad.*5 of 5 .*30 %' page.md
    made e --seed 5 --steal 'memory triad 1073741824 *=99.7'
    check 0 e --baseline a --markdown page.md
    grep -q '5 of 5 .*99.7 %' page.md
    check 1 b --baseline a --steal 100%
    grep -q '^REGRESSION  *memory triad, 1 GiB' out
    check 0 b --baseline a --steal 20% # of the other case the launches are kept
    ! fact steal | grep -q '^in 2 ' || return 1
    # Missing is missing, whatever the baseline's launches met.
    made d --seed 4 --drop 'memory read 1073741824 *'
    check 4 d --baseline b
    # Of the baseline, too; with nothing left nothing is decided.
    check 0 a --baseline b
    grep -q '^ok' out
    fact steal | grep -q "^in 2 .*--steal"
    made c --seed 3 --steal '*=5'
    check 3 c --baseline a
    grep -q '^INCONCLUSIVE' out
    check 2 b --baseline a --steal 0%
    grep -q -- '--steal' err
}

@test "a loss of 5 % in one case: exit 1, that case and no other, first, with what to do next" {
    made b --seed 2 --shift 'memory triad 1073741824 *=0.95'
    check 1 b --baseline a
    fact REGRESSION | grep -qE "^memory triad, 1 GiB -[456]\.[0-9] % \(-[0-9.]+ to -[0-9.]+\) .*'a'.* $((judged - 1)) "
    fact next | grep -q 'plumb run node --only memory .*plumb check .*--baseline a --only memory$'
    grep -qE '^regressed .* 0\.9[45][0-9] \(0\.9[0-9]+-0\.9[0-9]+\) +p .* +[0-9.]+ % ' out
}

@test "lower is better: a latency that grew is the loss, and one that fell is none; medians without a logarithm are failures" {
    made b --seed 2 --shift '* latency=0.9' # the rate
    gives 1 "{'latency' in c['key'] for c in o['cases'] if c['state'] == 'regressed'}" '{True}' b --baseline a
    made c --seed 2 --shift '* latency=1.1'
    check 0 c --baseline a
    grep -q '^better ' out
    for value in nan -1; do
        made v$value --seed 2 --value "memory triad 1073741824 *=$value"
        gives 4 "[c['state'] for c in o['cases'] if 'triad|' in c['key'] and 'size=1073741824' in c['key']]" "['failed']" v$value --baseline a
    done
}

@test "a failed case, a skipped one and a missing one: exit 4, each with its reason; a loss beside it: exit 1" {
    made b --seed 2 --fail 'memory triad 1073741824 *'
    gives 4 "o['verdict'], o['counts']['failed']" "('incomplete', 1)" b --baseline a --junit j.xml
    grep -q '^failed ' out
    grep -q '<error message=' j.xml
    for without in skip drop; do
        made $without --seed 2 --$without 'memory triad 1073741824 *'
        gives 4 "o['counts']['missing']" 1 $without --baseline a
    done
    grep -q '^ *missing ' out
    grep -q '^next ' out
    made e --seed 2 --drop 'memory triad 1073741824 *' --shift 'memory read 1073741824 *=0.9'
    check 1 e --baseline a
}

@test "rows that the plan promises and that are gone: exit 4 with the reason, of one launch or of all" {
    made b --seed 2
    cp -r b c
    sed -i '$d' c/memory.csv
    check 4 c --baseline a
    grep -q 'memory.csv .*[0-9] of [0-9]' out
    cp -r b d
    sed -i '2,$d' d/memory.csv
    check 4 d --baseline a --json j.json
    [ "$(json j.json 'sum("memory.csv" in c["sentence"] for c in o["cases"])')" -ge 10 ]
    [ "$(json j.json 'sum(c["state"] == "failed" for c in o["cases"])')" -ge 10 ]
}

@test "figures of another sort are refused, not compared: exit 4, with the reason" {
    made b --seed 2 --origin simulated
    gives 4 "o['counts']['refused']" "$judged" b --baseline a --junit j.xml
    grep -q 'measured.*simulated' out
    grep -q "errors=\"$judged\"" j.xml
}

@test "one launch only: nothing can be decided, exit 3, and it says why" {
    made a --seed 1 --launches 1
    made b --seed 2 --launches 1 --shift '*=0.5'
    gives 3 "o['verdict'], o['cases_held'], {c['doubt'] for c in o['cases']}" "('inconclusive', 0, {'one repetition'})" b --baseline a
    grep -q '^INCONCLUSIVE ' out
    check 3 b --baseline a --detect 50%
}

@test "--detect: exit 3 if any case could not have shown that loss, with their number; --margin decides what is a regression" {
    made a --seed 1 --spread 0.004
    made b --seed 2 --spread 0.004
    check 0 b --baseline a --detect 9%
    # what these data could have shown lies between 1.2 % and 1.8 % in most cases
    check 3 b --baseline a --margin 1% --detect 1.2% --json j.json
    json j.json "o['detect'] == .012 and 0 < o['cases_unseen'] == o['counts']['unseen']" | grep -qx True
    check 0 b --baseline a --margin 1%
    made c --seed 2 --spread 0.001 --shift 'memory triad 1073741824 *=0.97'
    check 1 c --baseline a
    check 0 c --baseline a --margin 5% # equivalent, even where a small loss is proven
    # noise alone hides nothing: what could not have been seen is said
    made n1 --seed 1 --spread 0.2
    made n2 --seed 2 --spread 0.2
    check 0 n2 --baseline n1 --json j.json
    json j.json "o['cases_unseen'], .2 < o['detectable']['slowdown'] <= 1" | grep -qx '(0, True)'
}

@test "what differs between the machines stands on the terminal, in Markdown, JUnit and annotations alike" {
    made b --seed 2
    python3 - b/run.json <<'END'
import json, sys
o = json.load(open(sys.argv[1]))
o["machine"].setdefault("host", {})["kernel"] = "6.99-made-up"
json.dump(o, open(sys.argv[1], "w"))
END
    check 0 b --baseline a --markdown m.md --junit j.xml
    fact changed | grep -q 'kernel 6.1.0-18-amd64 .*6.99-made-up'
    grep -q '^- \*\*changed\*\*: kernel .* 6.99-made-up' m.md
    grep -q '<property name="differs" value="[^"]*kernel .*6.99-made-up' j.xml
    check 0 b --baseline a --github
    grep -q '^::notice title=plumb check::.*kernel .*6.99-made-up' out
}

@test "--only with --update-baseline is refused: what is outside of it could have regressed" {
    made q1 --seed 1
    made q2 --seed 2 --shift '*triad*=0.8'
    check 3 q1 --update-baseline
    check 2 q2 --only gemm --baseline history --update-baseline
    check 0 q2 --only gemm --baseline history
    check 1 q2 --update-baseline
    made q3 --seed 3 --shift '*triad*=0.8'
    check 1 q3 --baseline history
    fact baseline | grep -q "^1 run .*'results/history.db', q1"
}

@test "the first run begins the history: 3, neither a failure nor a pass; then runs are held against it, and none of another host" {
    made n1 --seed 1
    made n2 --seed 2
    check 2 n1 --baseline history
    grep -q "'results/history.db'.*--update-baseline" err
    check 3 n1 --update-baseline --junit j.xml --json j.json
    tr -s ' \n' ' ' < out | grep -q "'results/history.db'.*'node'.*'node7'"
    grep -q "tests=\"$judged\" failures=\"0\" errors=\"0\" skipped=\"$judged\"" j.xml
    [ "$(json j.json "o['verdict'], o['exit'], o['counts']['new']")" = "('first', 3, $judged)" ]
    check 0 n2 --update-baseline
    fact baseline | grep -q "^1 run .*'results/history.db', n1"
    [ -z "$(ls -A "$TMPDIR")" ]
    made n3 --seed 3 --machine guest
    check 3 n3 --update-baseline
    grep -q "2 .*'node7'" out
}

@test "a run that regressed is kept, and is no baseline; --accept makes it the first of a new reference" {
    for i in 1 2 3; do made n$i --seed $i; "$plumb" check n$i --update-baseline > /dev/null || true; done
    made lost --seed 4 --shift '*triad*=0.9'
    made next --seed 5 --shift '*triad*=0.9'
    check 1 lost --update-baseline
    fact 'or accept it' | grep -q '^plumb check lost --accept '
    rm -r n? # the history has all it needs
    check 1 next --update-baseline --markdown m.md
    fact baseline | grep -q '^3 runs'
    fact since | grep -q '^2026-01-02T03:04:00Z (run lost), 2 '
    grep -q '^- \*\*since\*\*: 2026-01-02T03:04:00Z .run lost., 2 ' m.md
    check 0 lost --accept --json j.json --junit j.xml --markdown m.md --github
    fact history | grep -q "^'results/history.db': "
    [ "$(json j.json "o['accepted'], o['exit'], o['counts']['regressed'], o['counts']['accepted'] > 2")" = "(True, 0, 0, True)" ]
    grep -q '<property name="verdict" value="accepted"/>' j.xml
    grep -q '^## .*accepted' m.md
    [ "$(grep -c '^::error' out)" -eq 0 ]
    grep -q '^::notice title=plumb check::.*accepted' out
    made later --seed 6 --shift '*triad*=0.9'
    check 0 later --update-baseline --baseline history:5
    fact baseline | grep -q "^1 run .*'results/history.db', lost"
    # a run that is judged again is there once, and is not its own baseline
    gives 0 "o['baseline']['runs']" "['lost']" later --update-baseline
}

@test "--accept with a history that is mistyped: no folder is made, and a file that was is told" {
    made n1 --seed 1
    check 2 n1 --accept --history elsewhere/history.db --json j.json
    [ ! -e elsewhere ]
    grep -q "'elsewhere'.*'elsewhere/history.db'" err
    [ "$(json j.json "o['kept']")" = None ]
    check 0 n1 --accept --history other.db
    fact history | grep -q "^'other.db', .*new"
    check 0 n1 --accept --history other.db
    [ "$(fact history | grep -c "'other.db', .*new")" -eq 0 ]
    check 2 n1 --update-baseline --history none/h.db
    [ ! -e none ]
    check 2 n1 --update-baseline --history none
    [ ! -e none ]
}

@test "an incomplete run is no baseline, so a case that failed stays missed the next night; one that was cut short neither" {
    made n1 --seed 1
    for i in 2 3; do made n$i --seed $i --drop 'memory triad 1073741824 *'; done
    check 3 n1 --update-baseline
    check 4 n2 --update-baseline
    gives 4 "o['baseline']['runs']" "['n1']" n3 --update-baseline --baseline history:1
    made n4 --seed 4
    sed -i 's/"state": *"complete"/"state": "interrupted"/' n4/run.json
    gives 4 "o['kept']['good']" False n4 --update-baseline
}

@test "eight gates at once on one history that is not there yet: all runs are in it" {
    mkdir h
    for i in {1..8}; do made n$i --seed $i --cases 3; done
    for i in {1..8}; do
        "$plumb" check n$i --update-baseline --history h/h.db --json j$i > out$i 2>&1 &
    done
    wait
    for i in {1..8}; do [[ $(json j$i "o['exit']") == [03] ]] || { cat out? && return 1; }; done
    [ "$(python3 -c 'import sqlite3
db = sqlite3.connect("h/h.db")
print(db.execute("SELECT count(*) FROM runs").fetchone(), db.execute("PRAGMA integrity_check").fetchone())')" = "(8,) ('ok',)" ]
}

@test "JUnit XML is well-formed and has the shape that readers know, whatever the texts hold" {
    made b --seed 2 --shift '*triad*=0.9' --fail 'memory read*' --drop 'memory copy*'
    nasty=$'x<&>"]]>\x01\xff%0A::error::\n'
    python3 - "$nasty" <<'END'
import glob, os, sys
for f in glob.glob("b/*.csv"):
    text = open(f, "rb").read()
    open(f, "wb").write(text.replace(b"made to fail", b'"x<&>""]]>\x01\xff%0A::error::|*_y"'))
END
    check 1 b --baseline a --junit j.xml --markdown m.md --github --json j.json
    python3 - <<'END'
import xml.etree.ElementTree as E
root = E.parse("j.xml").getroot()
assert root.tag == "testsuites"
(suite,) = root
assert suite.tag == "testsuite" and suite.get("name")
order = [e.tag for e in suite]
assert order[0] == "properties" and order[-1] == "system-out" and set(order[1:-1]) == {"testcase"}, order
cases = suite.findall("testcase")
kinds = {k: sum(len(c.findall(k)) for c in cases) for k in ("failure", "error", "skipped")}
assert int(suite.get("tests")) == len(cases) == int(root.get("tests"))
assert int(suite.get("failures")) == kinds["failure"] == int(root.get("failures")) > 0, kinds
assert int(suite.get("errors")) == kinds["error"] == int(root.get("errors")) > 0, kinds
assert int(suite.get("skipped")) == kinds["skipped"]
for c in cases:
    assert c.get("name") and "/" in c.get("classname")
    assert len(c) == 1 and (c[0].tag == "system-out" or c[0].get("message")), c.get("name")
assert cases[0].find("failure") is not None and cases[0].get("classname") == "Memory/memory"
END
    if command -v xmllint; then xmllint --noout j.xml; fi
    lost='sum(o["counts"][s] for s in ("wrong", "failed", "missing", "refused"))'
    grep -q "<testsuite .* errors=\"$(json j.json "$lost")\"" j.xml
    [ "$(json j.json 'o["counts"]["missing"] > 0 and o["counts"]["failed"] > 0')" = True ]
    # no line of the annotations but those that were meant
    [ "$(grep -c '^::' out)" -eq "$(grep -cE '^::(error|warning|notice) title=[a-z ]+::' out)" ]
}

@test "JUnit: a case is called the same whatever else the run has, by all that makes it" {
    made b --seed 2
    check 0 b --baseline a --junit all.xml
    check 0 b --baseline a --junit one.xml --only 'op=triad*size=1073741824'
    made c --seed 3 --cases 3
    made d --seed 4 --cases 3
    check 3 d --baseline c --junit alone.xml
    python3 - <<'END'
import xml.etree.ElementTree as E
names = {f: [c.get("name") for c in E.parse(f + ".xml").iter("testcase")] for f in ("all", "one", "alone")}
assert len(set(names["all"])) == len(names["all"]) > 30
assert len(names["one"]) >= 1 and set(names["one"]) <= set(names["all"])
assert len(names["alone"]) >= 1 and set(names["alone"]) <= set(names["all"]), names["alone"]
assert all("=" in n and ": " in n and "|" not in n for n in names["all"]), names["all"][0]
END
}

@test "a bad night is six lines in every output: three cases of a component are one, and --all has each" {
    made b --seed 2 --shift 'memory triad *=0.85' --shift 'net tcp 1048576 bandwidth=0.8'
    run -1 "$plumb" check b --baseline a --markdown m.md
    echo "$output" > out
    fact REGRESSION | grep -qE "^net tcp, 1 MiB -[12][0-9.]+ % .* and Memory -1[0-9] % \(3 cases; worst: memory triad, .*\) .*'a'"
    [ "$(wc -l < out)" -le 10 ]
    awk 'length > 100 { exit 1 }' out
    [ "$(grep -c '^- ' m.md)" -le 6 ]
    run -1 "$plumb" check b --baseline a --github
    [ "$(grep -c '^::error' <<< "$output")" -eq 1 ]
    made c --seed 3
    run -0 "$plumb" check c --baseline a
    [ "${#lines[@]}" -eq 1 ]
    [ "${#output}" -le 80 ]
}

@test "GitHub: an error for a bad night, and the summary of the step" {
    made b --seed 2 --shift 'memory*=0.9'
    export GITHUB_STEP_SUMMARY=$work/summary
    echo before > summary
    check 1 b --baseline a --github
    [ "$(grep -c '^::error ' out)" -eq 1 ]
    grep -q '^::error title=plumb check::REGRESSION: Memory -[0-9.]* %25 ' out
    [ "$(head -n 1 summary)" = before ]
    grep -q '^## .*regressed' summary
    grep -q '^| \*\*regressed\*\* | memory ' summary
    made c --seed 3
    check 0 c --baseline a --github
    [ "$(grep -c '^::error' out)" -eq 0 ]
    grep -q '^::notice title=plumb check::' out
}

@test "JSON: the keys that are promised, null for what cannot be told" {
    made b --seed 2 --shift '*triad*=0.9' --drop 'memory copy*'
    check 1 b --baseline a --json -
    python3 - <<'END'
import json
o = json.load(open("out"))
assert o["schema"] == 4 and o["verdict"] == "regressed" and o["exit"] == 1
for key in ("program version sentence run baseline margin detect cases_held cases_unseen cases_likely unrest history kept counts "
            "differences detectable facts cases").split():
    assert key in o, key
assert o["unrest"] is None or o["unrest"] >= 1
text = open("out").read()
assert '"detect": null,' in text and '"margin": 0.02,' in text
assert o["run"]["host"] == "node7" and o["baseline"]["runs"] == ["a"]
assert sum(o["counts"].values()) == len(o["cases"])
case = o["cases"][0]
assert case["state"] == "regressed" and 0.88 < case["ratio"] < 0.92 and case["ratio_low"] < case["ratio"] < case["ratio_high"]
assert case["proven"] and case["p_worse"] < 1e-3 and not case["likely"]
lost = [c for c in o["cases"] if c["state"] == "missing"]
assert lost and "ratio" not in lost[0]
END
}

@test "--only: patterns on key or label; one that nothing matches is an error" {
    made b --seed 2 --shift 'memory triad 1073741824 *=0.9'
    check 0 b --baseline a --only 'memory read'
    check 1 b --baseline a --only 'memory read' --only 'op=triad'
    check 2 b --baseline a --only nosuchcase
    grep -q "'nosuchcase'" err
}

# refused PATTERN ARGUMENTS...: exit 2, nothing on stdout, and the reason names this
refused() {
    check 2 "${@:2}"
    grep -q -- "$1" err && [ ! -s out ]
}

@test "bad input: each names what is wrong, and has its exit code" {
    made b --seed 2
    made new --seed 3 --schema 99
    refused ''
    refused --baseline b
    refused '' b a --baseline a
    refused "'nowhere'" nowhere --baseline a
    refused "'nowhere'" b --baseline nowhere
    refused --baseline b --baseline a -b b
    refused 100 b --baseline history:0
    refused --margin b --baseline a --margin 0
    refused '--detect.*--margin' b --baseline a --margin 10% --detect 5%
    refused '--baseline history' b --baseline a --accept triad
    refused 99 new --baseline a
    refused '--json.*--github' b --baseline a --json - --github
    refused '--junit.*--markdown' b --baseline a --junit - --markdown -
    made empty --seed 3 --empty
    check 4 empty --baseline a
    cp -r b torn
    printf '"' >> torn/plan.csv
    check 5 torn --baseline a
    grep -q 'plan.csv' err
    check 0 b --baseline a --json - --junit j.xml
    cp -r b copy
    check 2 b --baseline copy # a run is not its own baseline
    mkdir twice
    cp -r a twice/1
    cp -r a twice/2
    check 0 b --baseline twice --json j.json # and one that is there twice is one
    [ "$(json j.json "o['baseline']['runs']")" = "['1']" ]
    check 2 b --baseline a --junit /nowhere/j.xml
    grep -q "'/nowhere/j.xml'" err
}

@test "a history that is none, is damaged, or lies where nobody may write: clear, and a loss is not hidden by it" {
    made b --seed 2
    made lost --seed 3 --shift '*triad*=0.9'
    echo 'a text that is long enough to look at, and that is no database at all, whatever its name may be' > text.db
    check 5 b --baseline history --history text.db
    grep -q "text.db" err
    check 5 b --baseline a --update-baseline --history text.db
    check 1 lost --baseline a --update-baseline --history text.db
    grep -q "text.db" err
    check 2 b --baseline a --update-baseline --history /proc/none/history.db
    [ ! -e /proc/none ]
}

@test "a history in a folder where nothing can be written is read" {
    as=()
    if [ "$(id -u)" -eq 0 ]; then # root may write anywhere
        command -v setpriv || skip "no setpriv"
        as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    fi
    made n1 --seed 1
    made n2 --seed 2
    mkdir kept
    check 3 n1 --update-baseline --history kept/h.db
    cp "$plumb" gate
    chmod a+rx . gate
    chmod 777 tmp
    chmod -R a-w kept
    "${as[@]}" ./gate check n2 --baseline history --history kept/h.db --all > out
    fact baseline | grep -q "^1 run .*'kept/h.db', n1"
    told 2 "'kept/h.db'" "${as[@]}" ./gate check n2 --baseline history --history kept/h.db --update-baseline
    chmod -R u+w kept
}
