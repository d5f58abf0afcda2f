# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: check.bats, check-long.bats.

setup_file() { # how many cases of a made run are judged
    made="$(mktemp -d)"
    for i in 1 2; do made_by cli/make_runs.py "$made/$i" --seed $i; done
    "${PLUMB_BIN:-$BATS_TEST_DIRNAME/../../build/bin}/plumb" check "$made/2" --baseline "$made/1" --json - > "$made/j.json" || true
    judged=$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["cases"]))' "$made/j.json")
    rm -rf "$made"
    [ "$judged" -ge 40 ]
    export judged
}

in_work() { # from an empty folder, which is gone after the test
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    work="$(mktemp -d)"
    export TMPDIR="$work/tmp"
    mkdir "$TMPDIR"
    cd "$work" || return 1
    unset GITHUB_STEP_SUMMARY
}

setup() { # with the run a, which most tests hold others against
    in_work
    made a --seed 1
}

teardown() {
    cd / || return 1
    rm -rf "$work"
}

made() { # made DIR [options of make_runs.py]; the seed is also the minute of its start
    made_by cli/make_runs.py "$@"
}

# fact LABEL: what the answer of this label says, on one line
fact() {
    awk -v label="$1" 'on && !/^   / { on = 0 }
        index($0, label "  ") == 1 { on = 1; sub("^" label, "") }
        on { sub(/^ +/, ""); printf "%s%s", sep, $0; sep = " " }
        END { print "" }' out
}

# check EXIT ARGUMENTS...: runs it with --all, expects that exit, leaves stdout in out and stderr in err
check() {
    local want=$1 got=0
    shift
    "$plumb" check "$@" --all > out 2> err || got=$?
    [ "$got" -eq "$want" ] || {
        echo "exit $got instead of $want: $*" >&2
        cat out err >&2
        return 1
    }
}

json() { # json FILE EXPRESSION on the object o
    python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"
}

# gives EXIT EXPRESSION VALUE ARGUMENTS...: as check, and this expression on its JSON, o, has that value.
gives() {
    check "$1" "${@:4}" --json gives.json
    [ "$(json gives.json "$2")" = "$3" ] || { json gives.json "$2" && return 1; }
}
