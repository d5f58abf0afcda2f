#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb check: what may become a baseline, and how a level is accepted, on made-up run folders.

bats_require_minimum_version 1.5.0

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    work="$(mktemp -d)"
    export TMPDIR="$work/tmp"
    mkdir "$TMPDIR"
    cd "$work" || return 1
    unset GITHUB_STEP_SUMMARY
    "$plumb" check nowhere --baseline history 2>&1 | grep -q 'built without SQLite' && skip "built without SQLite"
    return 0
}

teardown() {
    cd / || return 1
    rm -rf "$work"
}

triad='memory triad 1073741824 *'
read='memory read 1073741824 *'

# made NAME SEED [options of make_runs.py]; the seed is also the minute of its start
made() {
    local name=$1 seed=$2
    shift 2
    python3 "$top/tests/cli/make_runs.py" "$name" --seed "$seed" "$@" > /dev/null
}

# tell RUN STATEMENT on the object o that its run.json holds
tell() {
    python3 -c 'import json, sys
path = sys.argv[1] + "/run.json"
o = json.load(open(path))
exec(sys.argv[2])
json.dump(o, open(path, "w"))' "$@"
}

limits='o["machine"]["virtualization"]["limits"]'

# fact LABEL: what the answer of this label says
fact() { sed -n "s/^$1  *//p" out; }

# check EXIT ARGUMENTS...: runs it, expects that exit, leaves stdout in out and stderr in err
check() {
    local want=$1 got=0
    shift
    "$plumb" check "$@" > out 2> err || got=$?
    [ "$got" -eq "$want" ] || {
        echo "exit $got instead of $want: $*" >&2
        cat out err >&2
        return 1
    }
}

night() { # night EXIT NAME SEED [options of make_runs.py]
    local exit=$1 name=$2
    shift 2
    [ -d "$name" ] || made "$name" "$@"
    check "$exit" "$name" --update-baseline --json "$name.json"
}

json() { # json FILE EXPRESSION on the object o
    python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"
}

level() { # the runs that NAME was held against
    json "$1.json" "' '.join(o['baseline']['runs'])"
}

# --- the environment ---

@test "a night under a CPU quota is judged as any other, and is not a baseline until it is accepted" {
    for i in 1 2 3 4 5; do
        made n$i $i
        tell n$i "$limits = {'cgroup_version': 2, 'cpu_quota': None}"
    done
    tell n3 "${limits}['cpu_quota'] = 0.3"
    night 3 n1 1
    night 0 n2 2
    night 0 n3 3
    grep -q "this run was added, but is not a baseline: .*CPU quota 0.3 CPUs against none; if it is meant: plumb check RUN --accept" out
    [ "$(json n3.json "o['kept']['standing']")" = apart ]
    [ "$(json n3.json "o['kept']['environment']['other']")" = \
        "[{'what': 'CPU quota', 'baseline': 'none', 'run': '0.3 CPUs', 'environment': True}]" ]
    night 0 n4 4
    [ "$(level n4)" = 'n1 n2' ]
    # Nor does it tell how runs differ: it is of another environment.
    [ "$(json n4.json "o['baseline']['spread']")" = '[]' ]
    check 0 n3 --accept --reason 'the quota stays'
    grep -q '^History  *accepted: .*; and with it the environment: CPU quota 0.3 CPUs against none; reason: the quota stays$' out
    tell n5 "${limits}['cpu_quota'] = 0.3"
    night 0 n5 5
    [ "$(level n5)" = 'n3 n4' ]
    grep -q 'as a baseline for later ones' out
}

@test "each fact of the environment keeps a run apart; the program does not, and what moves by itself does not" {
    local facts=(
        "$limits = {'allowed_cpus': '0-3'}|CPUs allowed"
        "o['machine']['cpu']['clock']['governors'] = ['powersave']|CPU governor"
        "o['machine']['cpu']['clock']['max_mhz'] = 2000|CPU clock, highest"
        "o['machine']['cpu']['microcode'] = '0x2'|CPU microcode"
        "o['machine']['cpu']['threads'] = 64|threads"
        "o['machine']['host']['kernel'] = '6.5'|kernel"
        "o['machine']['virtualization']['hypervisor'] = 'kvm'|virtualisation"
        "o['machine']['numa']['nodes'].pop()|NUMA nodes"
        "o['machine']['gpus']['driver_version'] = '575'|NVIDIA driver"
        "o['machine']['gpus']['devices'][0]['power_limit_watts'] = 300|GPU power limit"
        "o['machine']['gpus']['devices'] = []|GPUs"
        "o['library_settings'] = {'OMP_NUM_THREADS': '2'}|library settings"
        "o['config_hash'] = 'ff'|suite's text, by its hash"
    )
    made base 1
    tell base "$limits = {'allowed_cpus': '0-127'}; o['machine']['cpu']['microcode'] = '0x1'; o['library_settings'] = {}
o['machine']['gpus']['devices'][0]['power_limit_watts'] = 700"
    check 3 base --update-baseline
    for fact in "${facts[@]}"; do
        cp results/history.db h.db
        rm -rf other
        made other 2
        cp base/run.json other/run.json
        tell other "o['run'] = 'other'; o['started_utc'] = '2026-01-02T03:02:00Z'; ${fact%|*}"
        check 0 other --update-baseline --history h.db --json j.json
        [ "$(json j.json "o['kept']['standing'], o['kept']['environment']['other'][0]['what']")" = "$(json j.json "'apart', '''${fact#*|}'''")" ]
    done
    for same in "o['version'] = '9'; o['commit'] = 'ffff'; o['compiler'] = 'other'; o['flags'] = '-O1'" "o['only'] = 'x'" \
        "o['machine']['pci'] = [{'kind': 'gpu', 'vendor_id': '10de', 'device_id': '1', 'link': {'now_width': 16, 'now_gt_s': 2.5}}]"; do
        cp results/history.db h.db
        tell base "o['machine']['pci'] = []"
        cp base/run.json other/run.json
        tell other "o['run'] = 'other'; o['started_utc'] = '2026-01-02T03:02:00Z'; $same"
        check 0 other --update-baseline --history h.db --json j.json
        [ "$(json j.json "o['kept']['standing'], o['kept']['environment']['other']")" = "('baseline', [])" ]
    done
}

@test "another version of a library, which the rows alone tell, keeps a run apart" {
    night 3 n1 1
    made n2 2
    sed -i 's/,avx512,\([^,]*,\)throughput/,avx2,\1throughput/; s/0-63,avx512/0-63,other 2.0/' n2/gemm.csv
    night 0 n2 2
    [ "$(json n2.json "o['kept']['standing'], [d['what'] for d in o['kept']['environment']['other']]")" = "('apart', ['library'])" ]
}

@test "what one side does not tell is neither the same nor different: it is said, and is no bar" {
    night 3 n1 1
    made n2 2
    tell n2 "$limits = {'cgroup_version': 2, 'cpu_quota': 0.3}"
    night 0 n2 2
    grep -q 'as a baseline for later ones; missing in the run or its baselines, and not compared: CPU quota, memory allowed$' out
    [ "$(json n2.json "o['kept']['standing'], o['kept']['environment']['unknown']")" = "('baseline', ['CPU quota', 'memory allowed'])" ]
    # From then on one of them tells.
    made n3 3
    tell n3 "$limits = {'cgroup_version': 2, 'cpu_quota': None}"
    night 0 n3 3
    [ "$(json n3.json "o['kept']['standing']")" = apart ]
}

@test "a run that regressed in another environment says both, and is no baseline" {
    night 3 n1 1
    made n2 2 --shift "$triad=0.9" --fact host.kernel=6.5
    night 1 n2 2
    grep -q 'is no baseline, and measured in another environment than the baselines: kernel 6.5 against 6.1.0-18-amd64' out
    [ "$(json n2.json "o['kept']['standing']")" = seen ]
}

# --- accepting ---

@test "--accept --only takes single cases: these start anew, the others keep their baselines" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    made lost 4 --shift "$triad=0.9"
    check 1 lost --update-baseline
    check 0 lost --accept --only '*op=triad*size=1073741824*' --reason 'driver 580 costs 10 % in triad' --json j.json --markdown m.md
    grep -q '^History  *accepted: the level of 1 case (memory triad.*) in this run, .*; the other cases: .*, as a baseline for later ones; reason: driver 580' out
    grep -q '^Verdict  *accepted: ' out
    grep -q 'accepted: the level of 1 case' m.md
    [ "$(json j.json "o['exit'], o['accepted'], o['kept']['standing'], len(o['kept']['accepted']['cases']), o['kept']['accepted']['reason']")" = \
        "(0, True, 'baseline', 1, 'driver 580 costs 10 % in triad')" ]
    # The level of that case is the run's; another case is held against all.
    night 0 n5 5 --shift "$triad=0.9"
    [ "$(level n5)" = 'n1 n2 n3 lost' ]
    grep -q 'accepted: run lost, memory .*(.*): driver 580 costs 10 % in triad' out
    [ "$(json n5.json "o['baseline']['accepted'][0]['reason']")" = 'driver 580 costs 10 % in triad' ]
    made n6 6 --shift "$triad=0.81"
    check 1 n6 --baseline history
    grep -q "^Verdict .*: [0-9]* cases* of [0-9]* lost: " out
    made n7 7 --shift "$read=0.9"
    check 1 n7 --baseline history
    # Back at its old level it is a gain, which it would not be against the baselines before.
    made n8 8
    check 0 n8 --baseline history
    grep -q '^Verdict .*[;,] 1 better' out
}

@test "--accept --only of a run that lost elsewhere, too: exit 1, and it is a level in that case alone" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    made lost 4 --shift "$triad=0.9" --shift "$read=0.9"
    check 1 lost --accept --only '*op=triad*size=1073741824*' --reason meant --json j.json \
        --junit j.xml --mail m.txt --markdown m.md
    grep -q 'the other cases are not good: this run was added, but is no baseline' out
    # Every output has the finding that is left, and what was accepted as accepted.
    grep -q '^Verdict  *regressed: 1 case of [0-9]* lost: memory read, 1 GiB: bandwidth by .*; 1 accepted' out
    grep -q '^regressed  *memory read' out
    grep -q '^accepted  *memory triad' out
    grep -q '^## plumb check: regressed' m.md
    grep -q '<property name="verdict" value="regressed"/>' j.xml
    grep -q '<testsuites .* failures="1" errors="0"' j.xml
    grep -q '^What: .*regressed: 1 case of .* lost: memory read, 1 GiB: bandwidth by ' m.txt
    [ "$(wc -l < m.txt)" -eq 3 ]
    check 1 lost --accept --only '*op=triad*size=1073741824*' --reason meant --github
    [ "$(grep -c '^::error title=regressed' out)" -eq 1 ]
    grep -q '^::error title=plumb check::1 case of' out
    [ "$(json j.json "o['kept']['standing'], o['verdict']")" = "('seen', 'regressed')" ]
    made n5 5 --shift "$triad=0.9" --shift "$read=0.9"
    check 1 n5 --baseline history --json n5.json
    [ "$(json n5.json "[c['label'][:11] for c in o['cases'] if c['state'] == 'regressed']")" = "['memory read']" ]
    made n6 6 --shift "$triad=0.9"
    check 0 n6 --baseline history
}

@test "a case that was taken out of the suite is accepted by itself" {
    night 3 n1 1
    made n2 2 --drop "$triad"
    check 4 n2 --update-baseline
    check 0 n2 --accept --only '*op=triad*size=1073741824*' --reason 'triad is measured elsewhere'
    night 0 n3 3 --drop "$triad"
    [ "$(level n3)" = 'n1 n2' ]
}

@test "a reason is kept with who gave it and when, and plumb history shows it" {
    for i in 1 2; do night $((i == 1 ? 3 : 0)) n$i $i; done
    made lost 3 --shift '*triad*=0.9'
    check 0 lost --accept --reason 'driver 580'
    "$plumb" history results/history.db --all > shown
    grep -q "run lost, all cases ($(id -un), 20.*Z): driver 580$" shown
    "$plumb" history results/history.db --json > shown.json
    [ "$(json shown.json "[(a['run'], a['reason'], a['cases']) for a in o['accepted']]")" = "[('lost', 'driver 580', None)]" ]
    # Without one it is accepted all the same, and said.
    made more 4 --shift '*triad*=0.8'
    check 0 more --accept
    grep -q 'no reason is kept: --reason TEXT keeps one' out
    "$plumb" history results/history.db --all | grep -q 'run more, all cases (.*): no reason given'
}

@test "--reason, --only and --accept that make no sense are refused, and nothing is written" {
    made n1 1
    for words in '--baseline n2 --reason x' '--update-baseline --reason x' '--accept --only nothing' '--update-baseline --only triad'; do
        # shellcheck disable=SC2086 # words
        check 2 n1 $words
        [ ! -e results/history.db ]
    done
    check 2 n1 --accept --reason ' '
    grep -q -- '--reason is empty' err
}

# --- gains ---

@test "a gain is believed after a second run: both become baselines, and those cases start at the first" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    night 0 n4 4 --shift "$triad=1.1"
    grep -q 'this run was added, and is no baseline yet: better in 1 case (memory triad.*); it becomes one with the next run' out
    [ "$(json n4.json "o['kept']['standing'], len(o['kept']['gains']['waiting'])")" = "('probation', 1)" ]
    night 0 n5 5 --shift "$triad=1.1"
    [ "$(level n5)" = 'n1 n2 n3' ]
    [ "$(json n5.json "o['baseline']['spread']")" = "['n4']" ]
    grep -q 'as a baseline for later ones; gain of n4 confirmed by this run in 1 case (memory triad.*): their level starts there' out
    [ "$(json n5.json "o['kept']['standing'], [g['run'] for g in o['kept']['gains']['confirmed']], o['kept']['gains']['waiting']")" = "('baseline', ['n4'], [])" ]
    made n6 6
    check 1 n6 --baseline history --json n6.json
    [ "$(level n6)" = 'n1 n2 n3 n4 n5' ]
    grep -q "^Verdict .*: [0-9]* cases* of [0-9]* lost: " out # of that case the level is the new one
    night 0 n7 7 --shift "$triad=1.1"
    [ "$(json n7.json "o['counts']['better'], o['kept']['standing']")" = "(0, 'baseline')" ]
}

@test "a gain that the next run does not show is none: the run is a baseline but in that case" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    night 0 n4 4 --shift "$triad=1.2"
    night 0 n5 5
    grep -q 'gain of n4 not confirmed by this run in 1 case (memory triad.*): there it is no baseline, for good' out
    [ "$(json n5.json "o['kept']['standing'], [g['run'] for g in o['kept']['gains']['not_confirmed']]")" = "('baseline', ['n4'])" ]
    night 0 n6 6
    [ "$(level n6)" = 'n1 n2 n3 n4 n5' ]
    # Of that case the level is what it was: with n4 in it, it would be 4 % higher.
    json n6.json "[c['baseline'] for c in o['cases'] if c['label'].startswith('memory triad, 1 GiB')][0] < 20.2" | grep -qx True
}

@test "what tells nothing of a gain leaves it waiting: another environment, a run cut short, one from before" {
    for i in 2 3; do night $((i == 2 ? 3 : 0)) n$i $i; done
    night 0 n5 5 --shift "$triad=1.1"
    night 0 n6 6 --fact host.kernel=6.5
    made n7 7
    tell n7 'o["state"] = "interrupted"'
    check 4 n7 --update-baseline
    night 0 n4 4
    made n8 8 --shift "$triad=1.1"
    check 0 n8 --update-baseline
    grep -q 'gain of n5 confirmed by this run' out
}

@test "a gain on a night that lost elsewhere: the next run decides, and only its own loss keeps it out" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    night 0 n4 4 --shift "$triad=1.1"
    night 1 n5 5 --shift "$triad=1.1" --shift "$read=0.9"
    grep -q 'gain of n4 confirmed' out
    [ "$(json n5.json "o['kept']['standing']")" = seen ]
    night 0 n6 6 --shift "$triad=1.1"
    [ "$(level n6)" = 'n1 n2 n3 n4' ]
    [ "$(json n6.json "o['counts']['better']")" = 0 ]
}

@test "a level that is accepted is no gain to be settled" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    made n4 4 --shift "$triad=1.1"
    check 0 n4 --accept --only '*op=triad*size=1073741824*' --reason 'new library' --json j.json
    [ "$(json j.json "o['kept']['standing']")" = baseline ]
    night 0 n5 5 --shift "$triad=1.1"
    [ "$(json n5.json "o['counts']['better'], o['kept']['standing']")" = "(0, 'baseline')" ]
}

# --- a baseline that is a folder, and --accept CASE

accepted_runs() {
    for i in 1 2 3 4; do
        made "base/n$i" "$i" --run-spread .003
    done
    made lost 11 --run-spread .003 --shift "$triad=0.8" --shift "$read=0.8"
    made same 12 --run-spread .003 --shift "$triad=0.8"
    made worse 13 --run-spread .003 --shift "$triad=0.6"
}

@test "--accept CASE against a folder: the level is kept beside it, with who, when and why; a worse one alarms again" {
    accepted_runs
    check 1 same --baseline base
    # in the case that was named alone
    check 1 lost --baseline base --accept 'memory triad, 1 GiB*' --reason 'driver 580'
    grep -q '^regressed  *memory read' out
    grep -q '^accepted  *memory triad, 1 GiB.*accepted at .* GB/s (.*, 20[0-9-]*T[0-9:]*Z): driver 580: worse: ' out
    grep -q "^Kept  *accepted: the level of 1 case (memory triad, 1 GiB: bandwidth) in this run, in 'base.accepted.json'" out
    json base.accepted.json "[(c['run'], c['reason'], 15 < c['level'] < 17, bool(c['by'])) for c in o['accepted']]" |
        grep -qx "\[('lost', 'driver 580', True, True)\]"
    # the same level passes, and every output says why
    check 0 same --baseline base/ --json j.json --junit j.xml --markdown m.md
    grep -q '^Verdict  *passed: .*1 accepted' out
    for file in out j.json j.xml m.md; do
        grep -q 'driver 580' "$file"
    done
    check 0 same --baseline base --github
    grep -q '^::notice title=plumb check::accepted: memory triad.*driver 580' out
    # a worse one does not, until it is accepted itself
    check 1 worse --baseline base
    grep -q '^regressed  *memory triad, 1 GiB.*worse than the level that was accepted, ' out
    check 0 worse --baseline base --accept 'triad, 1 GiB' --reason 'and the next driver'
    json base.accepted.json "[c['run'] for c in o['accepted']]" | grep -qx "\['worse'\]"
    check 0 worse --baseline base
}

@test "an accepted level is shown until the baseline has come down to it" {
    accepted_runs
    check 0 same --baseline base --accept 'triad, 1 GiB' --reason 'driver 580'
    made new/n1 21 --run-spread .003 --shift "$triad=0.8"
    made new/n2 22 --run-spread .003 --shift "$triad=0.8"
    made new/n3 23 --run-spread .003 --shift "$triad=0.8"
    cp base.accepted.json new.accepted.json
    check 0 same --baseline base
    grep -q '^Accepted  *memory triad, 1 GiB: bandwidth at .* driver 580$' out
    made repaired 24 --run-spread .003
    check 0 repaired --baseline base
    grep -q "^Accepted  *memory triad, 1 GiB: bandwidth at .* driver 580 (it lost nothing in this run: if it is repaired, delete it from 'base.accepted.json')$" out
    check 0 same --baseline new
    [ "$(grep -c 'driver 580' out)" -eq 0 ]
    echo '{"accepted": [{"key": 1}]}' > new.accepted.json
    check 5 same --baseline new
    grep -q "'new.accepted.json' is damaged" err
}

@test "--accept CASE of the history is --accept --only CASE; a case that is none lists near ones" {
    made n1 1
    made n2 2 --shift "$triad=0.8"
    check 3 n1 --update-baseline
    check 1 n2 --update-baseline
    "$plumb" history --history results > text
    grep -q '^Undecided: 2 runs, and at least 11 are needed' text
    grep -q '^the newest run, n2 (.*), is no baseline: plumb check found a loss' text
    check 2 n2 --accept 'memory triat' --reason x
    grep -q "no case matches 'memory triat', so nothing is accepted; near: 'memory triad, .*'" err
    check 0 n2 --accept 'memory triad, 1 GiB*' --reason 'driver 580'
    grep -q '^History  *accepted: the level of 1 case (memory triad, 1 GiB: bandwidth) in this run' out
    [ ! -e results.accepted.json ]
    # the page of the history has it, and the same remarks as the other outputs
    "$plumb" history --history results --html h.html > text
    grep -q 'host node7, suite node: .*: driver 580' h.html
    for file in text h.html; do
        grep -q 'of them have fewer than 11 runs: too few to find a change' "$file"
    done
    "$plumb" history --json > h.json
    json h.json "[r for r in o['remarks'] if 'fewer than 11 runs' in r] != []" | grep -qx True
}

@test "--history takes the folder of its history.db, in check and in history, and says so alike" {
    mkdir kept
    made n1 1
    made kept/n2 2
    check 3 n1 --history kept --update-baseline
    [ -s kept/history.db ]
    "$plumb" history --history kept/ > out
    grep -q '^Undecided: 1 run,' out
    "$plumb" check --help > a
    "$plumb" history --help > b
    grep -A1 -e '--history PATH' a | tr -s '\n ' ' ' | grep -q 'database of the history, or the folder of its history.db'
    grep -A1 -e '--history PATH' b | tr -s '\n ' ' ' | grep -q 'database of the history, or the folder of its history.db'
}

@test "an accepted loss is no sign that the run could show another one" {
    mkdir base
    for i in 1 2 3 4; do made base/n$i $i --run-spread 0.05; done
    made lost 9 --run-spread 0.05 --shift 'memory triad*=0.5'
    check 1 lost --baseline base
    check 3 lost --baseline base --accept 'memory triad*' --reason 'driver 580'
    fact Verdict | grep -q '^inconclusive: .* accepted'
    made next 10 --run-spread 0.05 --shift 'memory triad*=0.5'
    check 3 next --baseline base
    # Where the others show a loss, an accepted one is no hindrance.
    rm -r base* lost
    mkdir base
    for i in 1 2 3 4; do made base/n$i $i; done
    made lost 9 --shift 'memory triad*=0.5'
    check 0 lost --baseline base --accept 'memory triad*' --reason 'driver 580'
}
