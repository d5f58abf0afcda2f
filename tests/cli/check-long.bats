#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb check: the gate's exit codes, its files, its history, and what CI makes of it, on made-up run folders.

load common
load made
load check

@test "of a folder, runs that were not measured to their end, and those of another host or suite, are left out and named" {
    mkdir all
    for i in 1 2; do made all/n$i --seed $i; done
    made all/cut --seed 3 --drop 'memory triad 1073741824 *'
    sed -i 's/"state": *"complete"/"state": "interrupted"/' all/cut/run.json
    made all/other --seed 4 --machine guest
    made all/full --seed 5
    sed -i 's/"suite": *"node"/"suite": "full"/' all/full/run.json
    made b --seed 6
    check 0 b --baseline all --json j.json --markdown m.md
    tr -s ' \n' ' ' < out > flat
    for file in flat m.md; do
        grep -q 'cut .*interrupted' $file
        grep -q 'other .*guest3' $file
        grep -q 'full .*suite full' $file
    done
    [ "$(json j.json "o['baseline']['runs']")" = "['n1', 'n2']" ]
    for run in cut other full; do
        check 2 b --baseline all/$run
        grep -q "'all/$run'" err
    done
}

@test "a small suite of three baselines sees a loss, every night, and it never becomes the baseline" {
    for i in 1 2 3; do made n$i --seed $i --cases 3 --level-spread .002; done
    check 3 n1 --update-baseline
    check 0 n2 --update-baseline --json j.json
    [ "$(json j.json "o['runs_unknown']")" = True ] # of one baseline three cases do not tell how runs differ
    check 0 n3 --update-baseline
    for i in 4 5 6; do
        made n$i --seed $i --cases 3 --level-spread .002 --shift 'memory*=0.7'
        check 1 n$i --update-baseline
        fact baseline | grep -q '^3 runs'
    done
}

@test "a loss that is likely and not proven: the run is kept, and is no baseline" {
    for i in 1 2; do made n$i --seed $i --cases 3 --level-spread .002; done
    check 3 n1 --update-baseline
    check 0 n2 --update-baseline
    made n3 --seed 3 --cases 3 --level-spread .002 --shift 'memory*=0.95'
    "$plumb" check n3 --update-baseline --all --json j.json > out || true
    [ "$(json j.json "[(c['verdict'], c['likely']) for c in o['cases'] if c['key'].startswith('memory|')]")" = "[('inconclusive', True)]" ]
    fact history | grep -q '(memory triad.*: 5.2[0-9]* %)'
    [ "$(json j.json "o['kept']['good'], o['cases_likely']")" = '(False, 1)' ]
    made n4 --seed 4 --cases 3 --level-spread .002
    "$plumb" check n4 --update-baseline --all > out || true
    fact baseline | grep -q '^2 runs'
    check 0 n3 --accept
}

@test "runs that differ by far more than their launches: no alarm, and --only decides no case otherwise" {
    for i in 1 2 3; do
        made a$i --seed "1$i" --spread 0.001 --run-spread 0.01
        made b$i --seed "2$i" --spread 0.001 --run-spread 0.01
        check 0 b$i --baseline a$i --json j.json
        [ "$(json j.json "o['counts']['regressed'], o['unrest'] > 10")" = "(0, True)" ]
        check 0 b$i --baseline a$i --only 'memory|' --json only.json
        python3 - <<'END'
import json
whole, some = ({c["key"]: c for c in json.load(open(f))["cases"]} for f in ("j.json", "only.json"))
assert 3 < len(some) < len(whole)
for key, c in some.items():
    assert all(c[name] == whole[key][name] for name in c if name != "label"), key
END
    done
}

@test "a loss that half of the cases share is told and not proven by one baseline, and is no baseline; four more prove it" {
    made n1 --seed 1
    check 3 n1 --update-baseline
    losses=(--shift '[gmc]*=0.94')
    made n2 --seed 2 "${losses[@]}"
    check 3 n2 --update-baseline --json j.json
    grep -q '^INCONCLUSIVE' out
    json j.json "o['moved_together']['down'] > 20 and .935 < o['moved_together']['ratio'] < .945" | grep -qx True
    [ "$(json j.json "o['kept']['good'], o['cases_doubtful'] > 5")" = '(False, True)' ]
    [ "$(json j.json "o['moved_together']['seen'], o['counts']['regressed'], {c['doubt'] for c in o['cases']} & {'together'}")" = "(True, 0, {'together'})" ]
    mkdir all
    for i in 1 2 3 4 5; do made all/g$i --seed "3$i"; done
    check 1 n2 --baseline all
}

@test "a loss that the margin lets pass is told, and none that is smaller is said to have been seen" {
    made b --seed 2 --shift 'gemm f32*=0.915'
    check 0 b --baseline a --margin 10% --json j.json
    grep -q '^ok: ' out
    fact 'in margin' | grep -qE " (8|9).[0-9]* % .*10 % .*'gemm"
    [ "$(json j.json "o['cases_slower_within_margin'] > 0")" = True ]
    # the run's own plan does not loosen what it is held to
    made c --seed 2 --shift 'gemm f32*=0.915' --margin 0.1
    check 1 c --baseline a
    made d --seed 1 --margin 0.1
    gives 3 "o['cases_unseen']" "$judged" c --baseline d --detect 5%
}

@test "the last good runs are the level, the first ones the anchors: a slow loss is found against these" {
    for i in 1 2 3 4 5; do
        made n$i --seed $i
        check $((i == 1 ? 3 : 0)) n$i --update-baseline
    done
    made n6 --seed 6 --shift 'memory triad 1073741824 *=0.9'
    check 1 n6 --update-baseline
    made n7 --seed 7
    gives 0 "[o['baseline'][k] for k in ('runs', 'anchors')]" "[['n4', 'n5'], ['n1', 'n2']]" n7 --baseline history:2
    for i in {10..24}; do
        made "s$i" --seed "$i" --shift "memory triad 1073741824 *=0.$((1000 - 3 * (i - 9)))"
        "$plumb" check "s$i" --baseline history:3 --update-baseline --history results/history.db --json s.json > out && continue
        [ "$(json s.json "[(c['slipped'], c['label'][:19]) for c in o['cases'] if c['state'] == 'regressed']")" = "[(True, 'memory triad, 1 GiB')]" ]
        return 0
    done
    false
}

@test "no baseline: whether the history has none yet, none that is earlier, or none that is good, is told" {
    for i in 1 2 3; do made n$i --seed $i; done
    check 3 n2 --update-baseline
    check 3 n3 --baseline history --history other.db --update-baseline
    check 3 n1 --baseline history
    fact baseline | grep -q "'results/history.db' .*'node' .*'node7'"
    gives 3 "o['verdict'], o['baseline']['runs']" "('first', [])" n2 --baseline history
    # of the same second, but added before
    cp -r n2 same
    sed -i 's/"run": *"[^"]*"/"run": "same"/' same/run.json
    check 0 same --baseline history
    fact baseline | grep -q "^1 run .*'results/history.db', n2"
    made bad --seed 1 --drop 'memory triad 1073741824 *'
    sed -i 's/"state": *"complete"/"state": "interrupted"/' bad/run.json
    check 4 bad --update-baseline --history third.db
    check 3 n2 --baseline history --history third.db
    fact next | grep -q -- '--accept'
}

# --- examples/ci ---

# The commands in a YAML file's `run: |` blocks and script lines.
commands_of() {
    awk '
        /^ *run: \|/ { at = match($0, /[^ ]/); block = 1; next }
        block && /[^ ]/ && match($0, /[^ ]/) <= at { block = 0 }
        block { print; next }
        /^  script:/ { script = 1; next }
        script && /^  [^ ]/ { script = 0 }
        script && /^    - / { sub(/^    - /, ""); print }' "$1"
}

@test "the rehearsal of docs/check.md: 3, 0, 0, and 1 for the case that was slowed down" {
    sed -n '/^    suite: rehearsal/,/^        loss: 0%/s/^    //p' "$top/docs/check.md" > rehearsal.yaml
    [ "$(wc -l < rehearsal.yaml)" -eq 8 ]
    sed -i 's/50ms/5ms/' rehearsal.yaml
    mkdir r
    for night in 1 2 3 4; do
        [ $night -lt 4 ] || sed -i 's/loss: 0%/loss: 5%/' rehearsal.yaml
        "$plumb" run rehearsal.yaml --out r/n$night --seed $night --no-report 2> err
        check "$(cut -d' ' -f$night <<< "3 0 0 1")" r/n$night --history r --update-baseline
    done
    grep -qE '^REGRESSION +null number 12 -[45].[0-9] % .* 11 other ' <(tr -s ' \n' ' ' < out)
    sed 's/"null"/null/' rehearsal.yaml > plain.yaml
    told 2 'plain.yaml:4: "bench"*null' "$plumb" run plain.yaml --out plain
}

@test "the examples for CI: their commands are this program's, and the shell parts are clean" {
    for file in github.yml gitlab-ci.yml; do
        commands_of "$top/examples/ci/$file" > "$file.sh"
        grep -q 'plumb check' "$file.sh"
        bash -n "$file.sh"
        if command -v shellcheck; then shellcheck -s bash -e SC2154 "$file.sh"; fi
        { "$plumb" check --help && "$plumb" run --help; } > help
        while IFS= read -r word; do
            grep -q -- "$word" help
        done < <(grep -o -- '--[a-z-]*' "$file.sh" | sort -u)
    done
    if command -v shellcheck; then shellcheck "$top/examples/ci/nightly.sh"; fi
    grep -q '/nightly.sh$' "$top/examples/ci/crontab"
    # one place for the history, in all of them
    for file in crontab nightly.sh; do
        grep -qE 'FOLDER(=|:-)/var/lib/plumbline\b' "$top/examples/ci/$file"
    done
    grep -q '^PATH=' "$top/examples/ci/crontab"
    [ "$(grep -ohE '[^ ]*/history\.db' "$top"/examples/ci/*.{yml,md} | sort -u)" = /var/lib/plumbline/history.db ]
}

@test "the steps for GitHub, run as its shell does: 0 and 3 go on, 1 fails" {
    mkdir bin
    script bin/plumb <<END
#!/bin/sh
[ "\$1" != run ] || exec cp -r "$work/made" "\$4"
exec "$plumb" "\$@"
END
    commands_of "$top/examples/ci/github.yml" > steps.sh
    export PATH="$work/bin:$PATH" SUITE=quick HISTORY=$work/h.db
    made made --seed 1
    RUN=results/1 bash -e steps.sh > out
    grep -q '^::warning title=plumb check::' out
    rm -r made && made made --seed 2
    RUN=results/2 bash -e steps.sh
    rm -r made && made made --seed 3 --shift '*triad*=0.9'
    RUN=results/3 run -1 bash -e steps.sh
    [ -s check.xml ] && [ -s check.json ]
}
