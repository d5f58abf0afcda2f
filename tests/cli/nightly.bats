#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2030,SC2031 # run sets output and lines in each test
# examples/ci/nightly.sh: which run folders it keeps, and which go.

load common
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
    # a suite's name is no pattern
    KEEP=1 SUITE='q*k.yaml' run -0 "$top/examples/ci/nightly.sh"
    [ "$(runs | grep -cE '^quick-[0-9]{8}-[0-9]{6}$')" -eq 2 ]
}

# --- the mail, on composed nights

# composed: plumb run copies the folder `made`; plumb check is the real one
composed() {
    cat > fake <<END
#!/bin/sh
[ "\$1" = run ] || exec "${PLUMB_BIN:-$top/build/bin}/plumb" "\$@"
[ ! -e made ] || cp -r made "\$4"
[ ! -e says ] || cat says
exit \$(cat code)
END
    echo 0 > code
}

# night EXIT NAME [options of make_runs.py]: the mail is in $output
night() {
    local want=$1
    name=$2
    shift 2
    rm -rf made
    made_by cli/make_runs.py "$name" --seed "${name#n}" "$@"
    mv "$name" made
    run "-$want" "$top/examples/ci/nightly.sh"
    local now
    now=$(date +%s)
    until [ "$(date +%s)" -gt "$now" ]; do sleep 0.05; done # names of folders have seconds
}

@test "quiet nights are silent; a loss is a mail, with since when and what changed" {
    composed
    night 3 n1 # it begins the history
    [ -z "$output" ]
    night 0 n2
    [ -z "$output" ]
    night 0 n3 --fact host.kernel=6.5
    [ -z "$output" ]
    night 1 n4 --shift '*triad 1073741824 *=0.8'
    [ "${#lines[@]}" -le 10 ]
    output=$(tr -s ' \n' ' ' <<< "$output")
    [[ "$output" == 'REGRESSION '*'memory triad, 1 GiB '*'changed '*'kernel '*'next '*'plumb run '*'plumb check '*' --accept '* ]]
    night 1 n5 --shift '*triad 1073741824 *=0.8'
    [[ "$output" == *'since '*' 2026-01-02T03:04:00Z '*' 2 '* ]]
    night 0 n6
    [ -z "$output" ]
}

@test "a crash: of launches, of the run, and of plumb run before it measured or made a folder" {
    composed
    night 3 n1
    night 4 n2 --fail 'memory triad 1073741824 *'
    [[ "$output" == 'INCOMPLETE '*'memory triad, 1 GiB: '* ]]
    night 4 n3 --empty
    [[ "$output" == *' 50 missing'* ]]
    rm -r made
    echo 139 > code
    echo 'Segmentation fault' > says
    told 139 ' 139: Segmentation fault' "$top/examples/ci/nightly.sh"
}
