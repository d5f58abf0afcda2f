#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: short
# The smallest of the labs: hosts that scripts/lab-cluster makes of network namespaces, and one benchmark between two of them.

# takes: cluster
load env
load ../cli/rows

setup() { between_file; }

teardown() {
    [ -z "${server-}" ] || kill "$server" || true
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_clean
}

lab() { timeout -k 5 1500 scripts/lab-cluster "$@"; }

@test "hosts have a name, a network, a /sys and shared memory of their own" {
    lab_cluster 3
    [ "$(on 1 hostname)" = node1 ]
    [ "$(on 1 ls /sys/class/net | paste -sd' ')" = 'eth0 lo' ]
    [ "$(on 2 getent hosts node0 | awk '{ print $1 }')" = "$(lab hosts | head -n 1)" ]
    on 0 touch "/dev/shm/$PLUMB_LAB"
    on 0 test -e "/dev/shm/$PLUMB_LAB"
    run -1 on 1 test -e "/dev/shm/$PLUMB_LAB"
    [ ! -e "/dev/shm/$PLUMB_LAB" ] # not of this machine either
    [ "$(on 0 readlink /proc/self/ns/ipc)" != "$(on 1 readlink /proc/self/ns/ipc)" ]
    [ "$(lab hosts --names | paste -sd' ')" = 'node0 node1 node2' ]
    told 2 "'3'" on 3 true
}

@test "a benchmark between two hosts: its bytes went over their link, no faster than that is" {
    local bin=${PLUMB_BIN:-build/bin} secret=$BATS_TEST_TMPDIR/secret
    lab_cluster 2 --rate 100mbit
    (umask 077 && echo 'a secret of more than 16 characters' >"$secret")
    on 0 "$bin/plumb-net" --listen 0.0.0.0 --secret-file "$secret" 2>"$BATS_TEST_TMPDIR/served" 3>&- &
    server=$!
    until grep -q 'listening on' "$BATS_TEST_TMPDIR/served"; do
        kill -0 "$server"
        sleep 0.05
    done
    out=$BATS_TEST_TMPDIR/out
    on 1 "$bin/plumb-net" node0 --secret-file "$secret" --transport tcp --pattern bandwidth,latency --size 64K --no-cpu --csv --budget 500ms >"$out"
    [ "$(cells status | grep -vc -e ok -e noisy)" -eq 0 ]
    cells evidence | grep -q 'own: eth0 sent .*peer: eth0 received'
    paste -d' ' <(cells metric) <(cells value) | awk -v most="$(expected 100mbit)" '
        $1 == "average_bandwidth" { n++; bad += !(1e9 * $2 < 1.05 * most) }
        END { exit !n || bad }'
}
