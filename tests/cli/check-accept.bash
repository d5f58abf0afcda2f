# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: check-accept.bats, check-accept-long.bats.

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

# made NAME SEED [options of make_runs.py]; the seed is also the minute of its start
made() {
    local name=$1 seed=$2
    shift 2
    made_by cli/make_runs.py "$name" --seed "$seed" "$@"
}

# tell RUN STATEMENT on the object o that its run.json holds
tell() {
    python3 -c 'import json, sys
path = sys.argv[1] + "/run.json"
o = json.load(open(path))
exec(sys.argv[2])
json.dump(o, open(path, "w"))' "$@"
}

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
