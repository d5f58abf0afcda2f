#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb doctor on real systems: a fault is planted, found, and priced by its closed form; without it, nothing is found of it.

# waits: for a load average to rise
load env
load doctor

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    plumb=$PWD/build/bin/plumb
    [[ -x $plumb ]] || skip 'plumb is not built'
    out=$BATS_TEST_TMPDIR/out
    group=
}

teardown()
{
    [[ -z $group ]] || rmdir "$group" 2>/dev/null || true
}

# examine [COMMAND...]: this machine, by that command
examine()
{
    "$@" "$plumb" doctor --json >"$out" 2>"$out.err" || (($? == 1 || $? == 3)) || { cat "$out.err" && return 1; }
}

# alone COMMANDS: a network of its own with a pair of interfaces, v0 and v1, changed by these commands; then the doctor looks.
alone()
{
    unshare -n -m sh -ec "
        mount -t sysfs none /sys
        ip link add v0 type veth peer name v1
        ip link set v0 up && ip link set v1 up
        $1
        '$plumb' doctor --json >'$out' || [ \$? -eq 1 ] || [ \$? -eq 3 ]"
}

@test "an MTU of 1400 on a pair in software: overlays have such, and it is not asked" {
    lab_root
    alone 'ip link set v0 mtu 1400'
    [[ $(result mtu v0 state) != found && $(result mtu v1 state) != found ]]
}

@test "the rate of a token bucket: found by interface, and not without it" {
    lab_root
    alone 'tc qdisc add dev v1 root tbf rate 1gbit burst 128k latency 10ms' || skip 'this kernel has no tbf'
    is shaping v0 fine
    is shaping v1 found
    [[ $(result shaping v1 qdiscs) == *'"kind": "tbf"'*'"rate_gbits_per_s": 1'* ]]
}

# in_group COMMAND...: in a control group with a tenth of a CPU, of version 1 or 2.
in_group()
{
    local mount=/sys/fs/cgroup/cpu
    if [[ -e $mount/cpu.cfs_quota_us ]] && group=$mount/plumb-doctor-$$ && mkdir "$group" 2>/dev/null; then
        echo 10000 2>/dev/null >"$group/cpu.cfs_quota_us" || return 77
        echo 100000 >"$group/cpu.cfs_period_us"
    elif group=/sys/fs/cgroup/plumb-doctor-$$ && mkdir "$group" 2>/dev/null; then
        echo '10000 100000' 2>/dev/null >"$group/cpu.max" || return 77
    else
        group=
        return 77
    fi
    sh -c 'echo $$ >"$0/cgroup.procs" && shift 0 && exec "$@"' "$group" "$@"
}

@test "a quota of a tenth of a CPU: found, priced by its share, and so are its pauses" {
    ((EUID == 0)) || skip 'control groups take root'
    # The pauses come while it watches: of those since boot it knows no day, where that is days ago.
    in_group sh -c "while :; do :; done & busy=\$!
        '$plumb' doctor --watch 3s --json >'$out'; status=\$?; kill \$busy; exit \$status" || {
        (($? != 77)) || skip 'this system lets nobody make control groups'
    }
    is cpu-quota processor found
    priced cpu-quota processor "1 - 0.1 / $(nproc)"
    is throttled processor found
}

@test "one CPU of several: found, and priced by its share" {
    local all
    all=$(getconf _NPROCESSORS_ONLN)
    ((all > 1)) || skip 'there is one CPU'
    examine taskset -c 0
    is cpu-set processor found
    priced cpu-set processor "1 - 1 / $all"
    examine
    [[ $(nproc) -ne $all ]] || is cpu-set processor fine
}

@test "limits of the process: few files are found, locked memory is told" {
    examine prlimit --nofile=256:256
    is open-files process found
    examine prlimit --nofile=1024:1024
    is open-files process fine
    prlimit --memlock=65536:65536 "$plumb" probe --json >"$out"
    [[ $(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["process"]["locked_memory_bytes"])' "$out") == 65536 ]]
}

@test "a busy neighbour: found within two minutes" {
    local cpus deadline=$((SECONDS + 120)) neighbour
    cpus=$(nproc)
    timeout 130 sh -c "for i in \$(seq $cpus); do while :; do :; done & done; wait" 3>&- &
    neighbour=$!
    while ((SECONDS < deadline)); do
        examine
        [[ $(result other-load processor state) != found ]] || break
        sleep 2
    done
    kill "$neighbour"
    wait "$neighbour" || true
    is other-load processor found
}
