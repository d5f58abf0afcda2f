#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb check: what may become a baseline, and how a level is accepted, on made-up run folders.

bats_require_minimum_version 1.5.0
load made
load check
load check-accept

triad='memory triad 1073741824 *'
read='memory read 1073741824 *'

limits='o["machine"]["virtualization"]["limits"]'

# --- the environment ---

@test "a night under a CPU quota is judged as any other, and is not a baseline until it is accepted" {
    for i in 1 2 3 4 5; do
        made n$i $i
        tell n$i "$limits = {'cgroup_version': 2, 'cpu_quota': 'none'}"
    done
    tell n3 "${limits}['cpu_quota'] = 0.3"
    night 3 n1 1
    night 0 n2 2
    night 0 n3 3
    grep -q 'CPU quota 0.3 CPUs against none.*--accept' out
    [ "$(json n3.json "o['kept']['standing']")" = apart ]
    [ "$(json n3.json "o['kept']['environment']['other']")" = \
        "[{'what': 'CPU quota', 'baseline': 'none', 'run': '0.3 CPUs', 'environment': True}]" ]
    night 0 n4 4
    [ "$(level n4)" = 'n1 n2' ]
    # Nor does it tell how runs differ: it is of another environment.
    [ "$(json n4.json "o['baseline']['spread']")" = '[]' ]
    check 0 n3 --accept --reason 'the quota stays'
    grep -q '^History  *accepted: .*CPU quota 0.3 CPUs against none; reason: the quota stays$' out
    tell n5 "${limits}['cpu_quota'] = 0.3"
    night 0 n5 5
    [ "$(level n5)" = 'n3 n4' ]
    [ "$(json n5.json "o['kept']['standing']")" = baseline ]
}

# --- accepting ---

@test "--accept --only takes single cases: these start anew, the others keep their baselines" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    made lost 4 --shift "$triad=0.9"
    check 1 lost --update-baseline
    check 0 lost --accept --only '*op=triad*size=1073741824*' --reason 'driver 580 costs 10 % in triad' --json j.json --markdown m.md
    grep -q '^History  *accepted: .*1 case (memory triad.*reason: driver 580' out
    grep -q '^Verdict  *accepted: ' out
    grep -q 'accepted: .*1 case' m.md
    [ "$(json j.json "o['exit'], o['accepted'], o['kept']['standing'], len(o['kept']['accepted']['cases']), o['kept']['accepted']['reason']")" = \
        "(0, True, 'baseline', 1, 'driver 580 costs 10 % in triad')" ]
    # The level of that case is the run's; another case is held against all.
    night 0 n5 5 --shift "$triad=0.9"
    [ "$(level n5)" = 'n1 n2 n3 lost' ]
    grep -q 'accepted: run lost, memory .*driver 580 costs 10 % in triad' out
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
    grep -q -- '--reason TEXT' out
    "$plumb" history results/history.db --all | grep -q 'run more, all cases'
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
    grep -q 'no baseline.*1 case (memory triad' out
    [ "$(json n4.json "o['kept']['standing'], len(o['kept']['gains']['waiting'])")" = "('probation', 1)" ]
    night 0 n5 5 --shift "$triad=1.1"
    [ "$(level n5)" = 'n1 n2 n3' ]
    [ "$(json n5.json "o['baseline']['spread']")" = "['n4']" ]
    grep -q 'gain of n4 confirmed .*1 case (memory triad' out
    [ "$(json n5.json "o['kept']['standing'], [g['run'] for g in o['kept']['gains']['confirmed']], o['kept']['gains']['waiting']")" = "('baseline', ['n4'], [])" ]
    made n6 6
    check 1 n6 --baseline history --json n6.json
    [ "$(level n6)" = 'n1 n2 n3 n4 n5' ]
    grep -q "^Verdict .*: [0-9]* cases* of [0-9]* lost: " out # of that case the level is the new one
    night 0 n7 7 --shift "$triad=1.1"
    [ "$(json n7.json "o['counts']['better'], o['kept']['standing']")" = "(0, 'baseline')" ]
}

# --- a baseline that is a folder, and --accept CASE
