#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# plumb check: what may become a baseline, and how a level is accepted, on made-up run folders.

bats_require_minimum_version 1.5.0
load made
load check
load check-accept

triad='memory triad 1073741824 *'
read='memory read 1073741824 *'

limits='o["machine"]["virtualization"]["limits"]'

# --- the environment ---

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

@test "a run that regressed in another environment says both, and is no baseline" {
    night 3 n1 1
    made n2 2 --shift "$triad=0.9" --fact host.kernel=6.5
    night 1 n2 2
    grep -q 'no baseline.*kernel 6.5 against 6.1.0-18-amd64' out
    [ "$(json n2.json "o['kept']['standing']")" = seen ]
}

# --- accepting ---

@test "--accept --only of a run that lost elsewhere, too: exit 1, and it is a level in that case alone" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    made lost 4 --shift "$triad=0.9" --shift "$read=0.9"
    check 1 lost --accept --only '*op=triad*size=1073741824*' --reason meant --json j.json \
        --junit j.xml --mail m.txt --markdown m.md
    # Every output has the finding that is left, and what was accepted as accepted.
    grep -q '^Verdict  *regressed: 1 case of [0-9]* .*memory read, 1 GiB: bandwidth .*; 1 accepted' out
    grep -q '^regressed  *memory read' out
    grep -q '^accepted  *memory triad' out
    grep -q '^## plumb check: regressed' m.md
    grep -q '<property name="verdict" value="regressed"/>' j.xml
    grep -q '<testsuites .* failures="1" errors="0"' j.xml
    grep -q '^What: .*regressed: 1 case of .*memory read, 1 GiB: bandwidth ' m.txt
    [ "$(wc -l < m.txt)" -eq 3 ]
    check 1 lost --accept --only '*op=triad*size=1073741824*' --reason meant --github
    [ "$(grep -c '^::error title=regressed' out)" -eq 1 ]
    grep -q '^::error title=plumb check::1 case' out
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

# --- gains ---

@test "a gain that the next run does not show is none: the run is a baseline but in that case" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    night 0 n4 4 --shift "$triad=1.2"
    night 0 n5 5
    grep -q 'gain of n4 not confirmed .*1 case (memory triad' out
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
    grep -q 'gain of n5 confirmed' out
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
    grep -q '^accepted  *memory triad, 1 GiB.* GB/s (.*, 20[0-9-]*T[0-9:]*Z): driver 580: worse: ' out
    grep -q "^Kept  *accepted: .*1 case (memory triad, 1 GiB: bandwidth).*'base.accepted.json'" out
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
    grep -q '^regressed  *memory triad, 1 GiB.*worse ' out
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
    grep -q '^Accepted  *memory triad, 1 GiB: bandwidth .*driver 580$' out
    made repaired 24 --run-spread .003
    check 0 repaired --baseline base
    grep -q "^Accepted  *memory triad, 1 GiB: bandwidth .*driver 580 (.*'base.accepted.json')$" out
    check 0 same --baseline new
    [ "$(grep -c 'driver 580' out)" -eq 0 ]
    echo '{"accepted": [{"key": 1}]}' > new.accepted.json
    check 5 same --baseline new
    grep -q "'new.accepted.json' is damaged" err
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
