# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: run.bats, run-resume.bats, run-long.bats.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    bin="${PLUMB_BIN:-$top/build/bin}"
    plumb="$bin/plumb"
    work="$(mktemp -d)"
    cd "$work" || return 1
}

teardown() {
    cd / || return 1
    if mountpoint -q "$work/small" 2>/dev/null; then umount "$work/small"; fi
    rm -rf "$work"
}

suite() { # suite: the cases on stdin
    { printf 'suite: t\nabout: a test\ndefaults: {repeat: 2, budget: 20ms}\ncases:\n'; cat; } > t.yaml
}

small_suite() {
    suite <<'END'
  - bench: "null"
    number: 1..4+1
    noise: [none, normal]
END
}

launch_of() { # launch_of PID: the benchmark that this plumb has at work, not one that it asks what it is
    pgrep -P "$1" -f 'plumb-null .*--csv'
}

kill_launch() { kill -9 "$(launch_of "$1")"; }

wait_for() { # wait_for PID COMMAND...: until it is true, as long as that process lives
    local pid=$1
    shift
    for _ in $(seq 6000); do
        if "$@" > /dev/null 2>&1; then return; fi
        kill -0 "$pid" || return
        sleep 0.1
    done
    return 1
}

column() { # column FILE NAME: the cells of one column
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1])): print(row[sys.argv[2]])' "$1" "$2"
}
