#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb crosscheck with witnesses, and a benchmark of ours, that print what they are told; and once with the real ones.

# waits: for programs that take their time

bats_require_minimum_version 1.5.0
load rows
load crosscheck

@test "two that agree: the ratio, its interval, and status 0" {
    fakes iperf3
    check --only iperf3-1 --pairs 8
    [ "$status" -eq 0 ]
    says 'iperf3-1 128 KiB 1 1 1 GB/s 1.000 0.99[0-9] to 1.00[0-9] agree'
    says 'converted: bits to bytes'
    nothing_left
}

@test "ours slower is status 1, faster 0, and the reason by definition is said" {
    fakes iperf3 nvbandwidth
    FAKE_VALUE=10e9 check --only iperf3-1 --pairs 6
    [ "$status" -eq 1 ]
    says '0.80[0-9] 0.79[0-9] to 0.80[0-9] ours slower'
    rm -r "$work/results"
    FAKE_VALUE=0.8 check --only nvbandwidth-to-gpu --pairs 6
    [ "$status" -eq 0 ]
    says 'ours faster'
    says 'what differs.* first copy'
}

@test "one that fails is a row with its last words, and the rest goes on" {
    fakes iperf3 nvbandwidth
    cat >"$work/path/iperf3" <<'END'
#!/bin/sh
[ "$1" = --version ] && echo 3.12 && exit
echo 'cannot do this' >&2
exit 1
END
    FAKE_OURS=8 FAKE_VALUE=8 check --only iperf3-1,nvbandwidth-to-gpu --pairs 6
    [ "$status" -eq 4 ]
    says 'iperf3-1 failed: iperf3 in pair 1: .*: cannot do this'
    says 'nvbandwidth-to-gpu 512 MiB 1 8 8 GB/s 1.000 .* agree'
    [ -s "$work/results/log/iperf3-1-001-server.err" ]
}

@test "a witness that is not here is one line, and no failure of the others" {
    fakes iperf3
    check --only 'iperf3-1,nvbandwidth-to-gpu,ib_*' --pairs 6
    [ "$status" -eq 0 ]
    says "nvbandwidth-to-gpu absent: .*"
    says "ib_send_lat absent: .*(Debian: perftest)"
    rm -r "$work/results"
    check --only nvbandwidth-to-gpu
    [ "$status" -eq 4 ]
}

@test "our own rows that are wrong or skipped are no figures" {
    fakes iperf3
    FAKE_STATUS=wrong FAKE_REASON='byte 7 differs' check --only iperf3-1
    [ "$status" -eq 4 ]
    says 'failed: ours in pair 1: .*byte 7 differs'
    rm -r "$work/results"
    FAKE_STATUS=skipped FAKE_REASON='no such port' check --only iperf3-1
    [ "$status" -eq 4 ]
    says 'iperf3-1 skipped: .*no such port'
}

@test "wrong usage is status 2 and says what there is" {
    check --only nothing
    [ "$status" -eq 2 ]
    grep -q "'nothing'.* iperf3-1 iperf3-4 iperf3-cpu ib_write_bw" "$err"
    check --pairs 0
    [ "$status" -eq 2 ]
    check --csv --json
    [ "$status" -eq 2 ]
    mkdir "$work/results"
    check --only nvbandwidth-to-gpu
    [ "$status" -eq 2 ]
    grep -q "'.*results': File exists.*--out" "$err"
}
