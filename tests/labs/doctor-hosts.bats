#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # the stand-in for ssh expands it
# plumb doctor over 16 hosts, each a network namespace: one with another MTU, one with a CPU quota, one with BBR, and one
# that does not answer.

# takes: cluster
# waits: for hosts that come up
load env
load ../cli/rows

setup_file()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_clean
}

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_names
    plumb=${PLUMB_BIN:-$PWD/build/bin}/plumb out=$BATS_TEST_TMPDIR/out
    group=
}

teardown()
{
    [ -z "$group" ] || rmdir "$group" 2>/dev/null || true
}

teardown_file()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_clean
}

# quota_group: makes a control group with half a CPU, version 1 or 2.
quota_group()
{
    local name=plumb-doctor-$$
    if [ -w /sys/fs/cgroup/cpu/cpu.cfs_period_us ] || [ -d /sys/fs/cgroup/cpu ]; then
        group=/sys/fs/cgroup/cpu/$name
        mkdir "$group" 2>/dev/null && echo 50000 >"$group/cpu.cfs_quota_us"
    else
        group=/sys/fs/cgroup/$name
        mkdir "$group" 2>/dev/null && echo '50000 100000' >"$group/cpu.max"
    fi 2>/dev/null || { group= && skip 'no control group with a CPU quota can be made here'; }
}

# asks COMMAND: plumb doctor of all hosts, in $out. COMMAND is run here before the one of host $1, as the user's ssh would be.
asks()
{
    # A host's /sys is a new one, without control groups: it gets those of this machine.
    local here=/sys/fs/cgroup kind=cgroup2
    [ ! -d $here/cpu ] || { here=$here/cpu && kind='cgroup -o cpu'; }
    show="mount -t tmpfs none /sys/fs/cgroup && mkdir -p $here && mount -t $kind none $here"
    cat >"$BATS_TEST_TMPDIR/rsh" <<END
#!/bin/sh
$1
host=\$1
shift
exec "$PWD/scripts/lab/rsh" "\$host" "$show && \$*"
END
    chmod +x "$BATS_TEST_TMPDIR/rsh"
    scripts/lab-cluster hosts --names >"$BATS_TEST_TMPDIR/hosts"
    "$plumb" doctor --hosts "$BATS_TEST_TMPDIR/hosts" --rsh "$BATS_TEST_TMPDIR/rsh" >"$out" || status=$?
}

# set_congestion HOST NAME
set_congestion()
{
    on "$1" sh -c "echo $2 >/proc/sys/net/ipv4/tcp_congestion_control" 2>/dev/null
}

# odd_ones: the hosts that differ, in their order
odd_ones()
{
    sed -n '/^HOSTS THAT DIFFER/,/^FINDINGS/p' "$out" | grep -E '^  node' | tr -d ' ' | paste -sd' '
}

@test "16 hosts, one with another MTU, one with a CPU quota and one with BBR: they are named, and no other" {
    local i bbr
    lab_cluster 16
    quota_group
    on 3 ip link set eth0 mtu 1400
    for ((i = 0; i < 16; i++)); do
        set_congestion $i cubic || set_congestion $i reno
    done
    ! set_congestion 12 bbr || bbr=yes # a kernel without it has three odd ones less one
    asks "[ \"\$1\" != node7 ] || echo \$\$ >$group/cgroup.procs"
    [ "$status" -eq 1 ] || { cat "$out" && false; }
    says "$out" '16 of 16 hosts answered'
    says "$out" 'network.eth0.mtu: 1400; 15 of 16 hosts: 1500'
    says "$out" 'virtualization.limits.cpu_quota: 0.5; 15 of 16 hosts: none'
    says "$out" 'node7: cpu-quota, processor'
    if [ "${bbr-}" ]; then
        says "$out" 'tcp.congestion_control: bbr; 15 of 16 hosts: '
        says "$out" 'node12: congestion, tcp'
    fi
    [ "$(odd_ones)" = "node3 node7${bbr+ node12}" ] || { cat "$out" && false; }
}

@test "16 hosts, of which one gives no answer and one another MTU: both are named, and 15 are compared" {
    lab_cluster 16
    on 3 ip link set eth0 mtu 1400
    asks '[ "$1" != node11 ] || { echo "ssh: connect to host node11 port 22: No route to host" >&2; exit 255; }'
    # 1: something else is found of the hosts: other work on this machine
    [ "$status" -eq 4 ] || [ "$status" -eq 1 ] || { cat "$out" && false; }
    says "$out" '15 of 16 hosts answered'
    says "$out" "cannot reach 'node11' by "
    says "$out" 'network.eth0.mtu: 1400; 14 of 15 hosts: 1500'
    [ "$(odd_ones)" = node3 ] || { cat "$out" && false; }
}
