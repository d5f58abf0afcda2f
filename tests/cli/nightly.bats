#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2030,SC2031 # run sets output and lines in each test
# examples/ci/nightly.sh: which run folders it keeps, and which go.

bats_require_minimum_version 1.5.0
load made

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    work=$BATS_TEST_TMPDIR
    cd "$work" || return 1
    # A plumb that makes the folder it is asked for, and finds nothing lost.
    cat > fake << 'END'
#!/bin/sh
[ "$1" != run ] || { mkdir "$4" && echo "$4" > made; }
END
    chmod +x fake
    export PLUMB=$work/fake FOLDER=$work/nights
    mkdir -p nights/runs
}

runs() { find nights/runs -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort; }

@test "old runs of a suite go; those of a suite whose name begins alike stay, and so does the new one" {
    for day in 01 02 03; do
        mkdir "nights/runs/quick-202601$day-020000" "nights/runs/quick-net-202601$day-030000"
    done
    mkdir nights/runs/quick-20260101 nights/runs/quick-20260101-020000-of-before
    others=$(runs | grep -vE '^quick-[0-9]{8}-[0-9]{6}$')
    KEEP=2 SUITE=quick run -0 "$top/examples/ci/nightly.sh"
    [ -z "$output" ]
    [ -d "$(cat made)" ]
    [ "$(runs | grep -vE '^quick-[0-9]{8}-[0-9]{6}$')" = "$others" ]
    [ "$(runs | grep -E '^quick-[0-9]{8}-[0-9]{6}$')" = "quick-20260103-020000
$(basename "$(cat made)")" ]
    # and the other way round; a path names the suite, too
    KEEP=1 SUITE=some/where/quick-net.yaml run -0 "$top/examples/ci/nightly.sh"
    [ "$(runs | grep -c '^quick-net')" -eq 1 ]
    [ -d "$(cat made)" ]
    [ "$(runs | grep -cE '^quick-[0-9]{8}-[0-9]{6}$')" -eq 2 ]
}

@test "a suite's name is no pattern" {
    mkdir nights/runs/quick-2026010{1,2}-020000
    KEEP=1 SUITE='q*k.yaml' run -0 "$top/examples/ci/nightly.sh"
    [ "$(runs | grep -c '^quick')" -eq 2 ]
}

# --- the mail, on composed nights

composed() { # composed: plumb run copies the folder `made`; plumb check is the real one
    cat > fake <<END
#!/bin/sh
[ "\$1" = run ] || exec "${PLUMB_BIN:-$top/build/bin}/plumb" "\$@"
[ ! -e made ] || cp -r made "\$4"
[ ! -e says ] || cat says
exit \$(cat code)
END
    echo 0 > code
    "${PLUMB_BIN:-$top/build/bin}/plumb" check nowhere --baseline history 2>&1 |
        grep -q 'built without SQLite' && skip "built without SQLite"
    return 0
}

# night EXIT NAME [options of make_runs.py]: the mail is in $lines
night() {
    local want=$1
    name=$2
    shift 2
    rm -rf made
    made_by cli/make_runs.py "$name" --seed "${name#n}" "$@"
    mv "$name" made
    [ ! -e edit ] || python3 edit
    run "-$want" "$top/examples/ci/nightly.sh"
    local now
    now=$(date +%s)
    until [ "$(date +%s)" -gt "$now" ]; do sleep 0.05; done # names of folders have seconds
}

quiet_nights() {
    night 3 n1
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[1]} == 'Since: this night,'* ]]
    night 0 n2
    night 0 n3
    [ -z "$output" ]
}

edit_run() { # edit_run STATEMENT on run.json's object o
    cat > edit <<END
import json
o = json.load(open("made/run.json"))
$1
json.dump(o, open("made/run.json", "w"))
END
}

@test "quiet nights: nothing alarms; a loss is three lines, since when counts the nights" {
    composed
    quiet_nights
    night 1 n4 --shift '*triad 1073741824 *=0.8'
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == "What: node7, suite node: regressed: 1 case of "*": memory triad, 1 GiB: bandwidth by "[12]*' %; '* ]]
    [[ ${lines[1]} == 'Since: this night; '*'2026-01-02T03:03:00Z (run n3)' ]]
    [[ ${lines[2]} == 'Changed: nothing '* ]]
    night 1 n5 --shift '*triad 1073741824 *=0.8'
    [[ ${lines[1]} == 'Since: 2026-01-02T03:04:00Z (run n4), 2 runs '*' (run n3)' ]]
    night 0 n6
    [ -z "$output" ]
}

@test "a CPU quota that came: what it cost, and that it changed" {
    composed
    edit_run 'o["machine"]["virtualization"]["limits"] = {"cgroup_version": 2, "cpu_quota": "none"}'
    quiet_nights
    edit_run 'o["machine"]["virtualization"]["limits"] = {"cgroup_version": 2, "cpu_quota": 0.3}'
    night 1 n4 --shift '*=0.4'
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == *'regressed: '*'; and '*' more'* ]]
    [[ ${lines[2]} == 'Changed: CPU quota none to 0.3 CPUs' ]]
}

@test "another kernel without a loss: exit 0, and three lines, every night until it is accepted" {
    composed
    quiet_nights
    night 0 n4 --fact host.kernel=6.5
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == *'another environment'* ]]
    [[ ${lines[2]} == 'Changed: kernel 6.1.0-18-amd64 to 6.5' ]]
    night 0 n5 --fact host.kernel=6.5
    [[ ${lines[1]} == 'Since: '*' 2026-01-02T03:04:00Z (run n4); '*' (run n3)' ]]
    "${PLUMB_BIN:-$top/build/bin}/plumb" check "$(printf '%s\n' nights/runs/*/ | tail -n 1)" --accept --reason kernel \
        --history nights/history.db --mail accepted > /dev/null
    [ -e accepted ] && [ ! -s accepted ]
    night 0 n6 --fact host.kernel=6.5
    [ -z "$output" ]
}

@test "a crash: of launches, of the run, of plumb run before it measured, and before it made a folder" {
    composed
    quiet_nights
    night 4 n4 --fail 'memory triad 1073741824 *' --fact host.kernel=6.5
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == *'incomplete: '*'memory triad, 1 GiB: bandwidth: '* ]]
    [[ ${lines[2]} == 'Changed: kernel 6.1.0-18-amd64 to 6.5' ]]
    edit_run 'o["state"] = "running"'
    night 4 n5
    [[ ${lines[0]} == *"incomplete: "*"'running'"* ]]
    [[ ${lines[1]} == 'Since: '*'(run n4); '*' (run n3)' ]]
    edit_run 'o["machine"]["host"]["kernel"] = "6.7"'
    night 4 n6 --empty
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[1]} == 'Since: '*'(run n4); '*' (run n3)' ]]
    [[ ${lines[2]} == 'Changed: kernel 6.1.0-18-amd64 to 6.7' ]]
    rm -r made edit
    echo 139 > code
    echo 'Segmentation fault' > says
    run -139 "$top/examples/ci/nightly.sh"
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == 'What: '*' 139: Segmentation fault' ]]
    [ "${lines[1]}" = 'Since: unknown' ]
    # one that had begun to measure: since when, and what changed, are known
    edit_run 'o["state"] = "running"; o["machine"]["host"]["kernel"] = "6.8"'
    night 139 n7
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == *'plumb run ended with 139'* ]]
    [[ ${lines[1]} == 'Since: '*'(run n4); '*' (run n3)' ]]
    [[ ${lines[2]} == 'Changed: kernel 6.1.0-18-amd64 to 6.8' ]]
}
