#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb doctor over 16 hosts, each a network namespace: one with another MTU, one with a CPU quota.

# takes: cluster
# waits: for hosts that come up
load env

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

# says FILE TEXT: FILE has the text, or we see FILE.
says()
{
    grep -qF -- "$2" "$1" || { echo "no \"$2\" in:" && cat "$1" && false; }
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

@test "16 hosts, one with another MTU and one with a CPU quota: both are named, and no other" {
    lab_cluster 16
    quota_group
    # A host's /sys is a new one, without control groups: it gets those of this machine.
    local here=/sys/fs/cgroup kind=cgroup2
    [ ! -d $here/cpu ] || { here=$here/cpu && kind='cgroup -o cpu'; }
    show="mount -t tmpfs none /sys/fs/cgroup && mkdir -p $here && mount -t $kind none $here"
    cat >"$BATS_TEST_TMPDIR/rsh" <<END
#!/bin/sh
[ "\$1" != node7 ] || echo \$\$ >$group/cgroup.procs
host=\$1
shift
exec "$PWD/scripts/lab/rsh" "\$host" "$show && \$*"
END
    chmod +x "$BATS_TEST_TMPDIR/rsh"
    scripts/lab-cluster hosts --names >"$BATS_TEST_TMPDIR/hosts"
    on 3 ip link set eth0 mtu 1400
    "$plumb" doctor --hosts "$BATS_TEST_TMPDIR/hosts" --rsh "$BATS_TEST_TMPDIR/rsh" >"$out" || status=$?
    says "$out" '16 of 16 hosts answered'
    [ "$status" -eq 1 ] || { cat "$out" && false; }
    says "$out" 'network.eth0.mtu: 1400; 15 of 16 hosts: 1500'
    sed -n '/^HOSTS THAT DIFFER/,/^FINDINGS/p' "$out" | grep -E '^  node' | paste -sd' ' >"$out.odd"
    says "$out.odd" 'node3   node7'
    says "$out" 'virtualization.limits.cpu_quota: 0.5; 15 of 16 hosts: none'
    says "$out" 'node7: cpu-quota, processor'
}
