#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb check: which runs are baselines, and how a change is accepted, on made-up run folders.

bats_require_minimum_version 1.5.0
load made
load check
load check-accept

triad='memory triad 1073741824 *'
read='memory read 1073741824 *'

@test "another environment is told, and nothing else: the night is a baseline like any other" {
    for i in 1 2 3 4; do
        made n$i $i
        tell n$i 'o["machine"]["virtualization"]["limits"] = {"cgroup_version": 2, "cpu_quota": "none"}'
    done
    tell n3 'o["machine"]["virtualization"]["limits"]["cpu_quota"] = 0.3'
    night 3 n1 1
    night 0 n2 2
    night 0 n3 3
    fact changed | grep -q 'CPU quota none .*0.3 '
    [ "$(json n3.json "o['kept']['good'], [(d['what'], d['environment']) for d in o['differences']]")" = \
        "(True, [('CPU quota', True)])" ]
    night 0 n4 4
    [ "$(level n4)" = 'n1 n2 n3' ]
}

@test "--accept CASE begins a new reference in single cases: the others keep their baselines" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    made lost 4 --shift "$triad=0.9"
    check 1 lost --update-baseline
    check 0 lost --accept '*op=triad*size=1073741824*' --reason 'driver 580 costs 10 % in triad' --json j.json --markdown m.md
    fact history | grep -q '(memory triad.*driver 580'
    grep -q 'memory triad' m.md
    [ "$(json j.json "o['exit'], o['accepted'], o['kept']['good'], len(o['kept']['accepted']['cases']), o['kept']['accepted']['reason']")" = \
        "(0, True, True, 1, 'driver 580 costs 10 % in triad')" ]
    # Of that case the run is the first baseline; another case is held against all.
    night 0 n5 5 --shift "$triad=0.9"
    [ "$(level n5)" = 'n1 n2 n3 lost' ]
    fact baseline | grep -q 'lost, memory .*driver 580 costs' # the reason that was given
    [ "$(json n5.json "o['baseline']['accepted'][0]['reason']")" = 'driver 580 costs 10 % in triad' ]
    made n6 6 --shift "$triad=0.81"
    check 1 n6 --baseline history
    made n7 7 --shift "$read=0.9"
    check 1 n7 --baseline history
    # Back at what it was it is a gain, which it would not be against the baselines before.
    made n8 8
    gives 0 "[c['label'][:12] for c in o['cases'] if c['state'] == 'better']" "['memory triad']" n8 --baseline history
}

@test "a reason is kept with who gave it and when, and plumb history shows it" {
    for i in 1 2; do night $((i == 1 ? 3 : 0)) n$i $i; done
    made lost 3 --shift '*triad*=0.9'
    check 0 lost --accept --reason 'driver 580'
    "$plumb" history results/history.db --all > shown
    grep -q "lost.* ($(id -un), 20.*Z): driver 580$" shown
    "$plumb" history results/history.db --json > shown.json
    [ "$(json shown.json "[(a['run'], a['reason'], a['cases']) for a in o['accepted']]")" = "[('lost', 'driver 580', None)]" ]
    # Without one it is accepted all the same, and told.
    made more 4 --shift '*triad*=0.8'
    check 0 more --accept
    grep -q -- '--reason' out
    "$plumb" history results/history.db --all | grep -q ' more, '
}

@test "--reason, --only and --accept that make no sense are refused, and nothing is written" {
    made n1 1
    for words in '--baseline n2 --reason x' '--update-baseline --reason x' '--accept nothing' '--update-baseline --only triad'; do
        # shellcheck disable=SC2086 # words
        check 2 n1 $words
        [ ! -e results/history.db ]
    done
    check 2 n1 --accept triadx
    grep -q " is called '" err
    check 2 n1 --accept --reason ' '
    grep -q -- '--reason' err
}

@test "--accept CASE of a run that lost elsewhere, too: exit 1, and it is a baseline in that case alone" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    made lost 4 --shift "$triad=0.9" --shift "$read=0.9"
    check 1 lost --accept '*op=triad*size=1073741824*' --reason meant --json j.json --junit j.xml --markdown m.md
    # Every output has the finding that is left, and what was accepted as accepted.
    fact REGRESSION | grep -q '^memory read, 1 GiB .* 1 accepted'
    grep -q '^regressed  *memory read' out
    grep -q '^accepted  *memory triad' out
    grep -q '^## .*regressed' m.md
    grep -q '<property name="verdict" value="regressed"/>' j.xml
    grep -q '<testsuites .* failures="1" errors="0"' j.xml
    [ "$(json j.json "o['kept']['good'], o['verdict']")" = "(False, 'regressed')" ]
    made n5 5 --shift "$triad=0.9" --shift "$read=0.9"
    gives 1 "[c['label'][:11] for c in o['cases'] if c['state'] == 'regressed']" "['memory read']" n5 --baseline history
    made n6 6 --shift "$triad=0.9"
    check 0 n6 --baseline history
}

@test "a case that was taken out of the suite is accepted by itself" {
    night 3 n1 1
    made n2 2 --drop "$triad"
    check 4 n2 --update-baseline
    check 0 n2 --accept '*op=triad*size=1073741824*' --reason 'triad is measured elsewhere'
    night 0 n3 3 --drop "$triad"
    [ "$(level n3)" = 'n1 n2' ]
}

@test "a gain enters at once, and an old alarm changes no later verdict" {
    for i in 1 2 3; do night $((i == 1 ? 3 : 0)) n$i $i; done
    night 0 n4 4 --shift "$triad=1.1"
    [ "$(json n4.json "o['kept']['good'], o['counts']['better']")" = '(True, 1)' ]
    night 1 n5 5 --shift "$read=0.9"
    night 0 n6 6
    [ "$(level n6)" = 'n1 n2 n3 n4' ]
    night 0 n7 7
    [ "$(level n7)" = 'n1 n2 n3 n4 n6' ]
}
