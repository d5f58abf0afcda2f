#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2034 # of variables that the files of this name share
# plumb doctor --measure: costs of which the truth is planted, what is said where there is none, and an interrupt.

# waits: for launches that are measured in turn
# shellcheck disable=SC2016 # the shells of the namespaces expand it
load common
load tree
load ../sim/env

setup_file() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export TREE=$BATS_FILE_TMPDIR/tree
    [ -e "$top/build/obj/core.a" ] || return 0
    copy_of_tree "$top" "$TREE"
    mkdir "$TREE/path"
    cp -r "$top/tests/tools/dial" "$TREE/benches/"
    make_in "$TREE" "$top" build/bin/plumb-dial
    cp "$TREE/build/bin/plumb-dial" "$TREE/path/"
}

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    bin=${PLUMB_BIN:-$top/build/bin}
    cd "$BATS_TEST_TMPDIR" || return 1
    json=$PWD/json out=$PWD/out err=$PWD/err
}

teardown() {
    cd / || return 1
    [ -z "${listener:-}" ] || kill "$listener" "$hold" || true
    if [ -n "${group:-}" ]; then
        for _ in 1 2 3 4 5; do
            if rmdir "$group" 2>"$BATS_TEST_TMPDIR/rmdir"; then break; fi
            sleep 0.2
        done
    fi
}

# measure IDS ARGUMENTS...: the JSON in $json, stderr in $err, the exit status in $status.
measure() {
    status=0
    PATH=${with_path:+$with_path:}$PATH "$bin/plumb" doctor --json --measure="$1" "${@:2}" >"$json" 2>"$err" || status=$?
}

# check PYTHON: asserts on `measured`, a list of objects; share(m) recomputes the share that is lost out of the turns.
check() {
    python3 - "$json" <<END
import json, math, os, statistics, sys
told = json.load(open(sys.argv[1]))
measured = told["measured"]

def ratio(turn):
    a, b, c, d = turn["values"]
    outer, inner = math.sqrt(a * d), math.sqrt(b * c)
    return outer / inner if turn["first"] == "with" else inner / outer

def share(m):
    r = statistics.geometric_mean(ratio(t) for t in m["turns"])
    assert abs(r - m["ratio"]) < 1e-6 * r, (r, m["ratio"])
    return r - 1 if m["of_time"] else 1 - r

def near(a, b, off):
    assert abs(a - b) <= off, (a, b)
$1
END
}

need_dial() {
    [ -x "$TREE/path/plumb-dial" ] || skip "nothing was compiled here"
    with_path=$TREE/path
}

@test "a planted loss of a fifth is priced, of a rate and of a time" {
    need_dial
    measure dial-low,dial-late --measure-width 20%
    check '
low, late = measured
assert low["check"] == "dial-low" and late["check"] == "dial-late", measured
for m, truth in ((low, .2), (late, .25)):
    assert m["state"] == "done" and len(m["turns"]) == 7, m
    near(share(m), truth, 1e-6)
    # of two figures alone it is not known how they are rounded
    assert truth - .15 < m["share_low"] < truth < m["share_high"] < truth + .15, m
assert not low["of_time"] and late["of_time"]
assert low["command"] == "plumb dial --speed 80, against --speed 100", low["command"]'
    grep -q '^plumb doctor: .* 2 causes .* 14 times' "$err"
}

@test "a variable of the environment is a cause: one side lacks it, and it is there again after that" {
    need_dial
    DIAL_BRAKE=25 measure dial-brake,dial-low --measure-width 20%
    check '
low, brake = sorted(measured, key=lambda m: m["check"], reverse=True)
near(share(brake), .25, 1e-6)
near(share(low), .2, 1e-6)
assert brake["command"].startswith("plumb dial") and "DIAL_BRAKE" in brake["command"], brake["command"]
assert {round(v, 3) for t in brake["turns"] for v in t["values"]} == {75, 100}, brake
assert {round(v, 3) for t in low["turns"] for v in t["values"]} == {60, 75}, low'
    measure dial-brake
    check 'assert "DIAL_* NOT_THERE" in measured[0]["reason"], measured'
}

@test "pageable and pinned memory of a simulated GPU: at least the half that its description says, marked as simulated" {
    cd "$top" || return 1
    simulate one
    measure pageable-memory
    check '
assert len(measured) == 2, measured
for m in measured:
    assert m["state"] == "done" and m["origin"] == "simulated", m
    # pageable copies are timed by the clock of the host: other work on the CPUs can only add to them
    assert .48 <= share(m) < 1, m'
    measure steal
    check 'assert measured[0]["origin"] == "measured", measured'
}

# A group of processes with a fifth of the CPUs, which gets them before all others.
group_of_a_fifth() {
    local share=$(($(nproc) * 20000)) own
    if [ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
        group=/sys/fs/cgroup/cpu/plumb-test-$$
        mkdir "$group" 2>"$err" && echo 100000 >"$group/cpu.cfs_period_us" && echo "$share" >"$group/cpu.cfs_quota_us" &&
            echo 100000 >"$group/cpu.shares"
    else
        own=$(sed -n 's/^0:://p' /proc/self/cgroup)
        group=/sys/fs/cgroup${own%/}/plumb-test-$$
        mkdir "$group" 2>"$err" && echo "$share 100000" 2>"$err" >"$group/cpu.max" && echo 10000 >"$group/cpu.weight"
    fi
}

@test "a quota of a fifth of the CPUs costs four fifths of their time, within 2 %" {
    group_of_a_fifth || skip "no group of processes with a quota can be made here: $(cat "$err")"
    # a shell of its own goes into the group, and the group is empty after it
    BIN=$bin bash -c 'echo $$ >"$1/cgroup.procs" && exec "$BIN/plumb" doctor --json --measure=cpu-quota' - "$group" >"$json" 2>"$err" || [ $? -ne 4 ]
    check '
m = measured[0]
assert m["state"] == "done", m
near(share(m), .8, .02)
assert m["share_low"] - .02 <= .8 <= m["share_high"] + .02, m
found, = [r for r in told["results"] if r["check"] == "cpu-quota"]
cost = found["cost"]
assert found["state"] == "found" and cost["basis"] == "measured", found
assert (cost["low"], cost["high"], cost["of"]) == (m["share_low"], m["share_high"], "CPU time"), cost'
}

# The two ends of a pair of interfaces, of which this end sends 200 Mb/s; then a command.
on_a_shaped_link() {
    unshare -n bash -ec '
        ip link add v0 type veth peer name v1
        ip link set v1 netns "$HOLD"
        ip addr add 10.77.0.1/24 dev v0
        ip link set lo up
        ip link set v0 mtu 9000 up
        tc qdisc add dev v0 root tbf rate 200mbit burst 64k latency 40ms
        nsenter -t "$HOLD" -n sh -c "ip addr add 10.77.0.2/24 dev v1; ip link set lo up; ip link set v1 mtu 9000 up"
        touch linked
        for _ in {1..1200}; do [ ! -s listening ] || break; sleep 0.1; done
        exec "$@"' - "$@"
}

# measure_over_a_link CAUSE: the JSON of doctor in a network of its own, to a listener behind a shaped link.
measure_over_a_link() {
    unshare -n true 2>"$err" || skip "no network namespace can be made here: $(cat "$err")"
    # longer than any measurement on a busy machine; teardown ends it
    unshare -n sleep 3000 3>&- &
    hold=$!
    until [ "$(readlink /proc/$hold/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
    (umask 077 && echo 0123456789abcdef0123456789 >secret)
    export HOLD=$hold PLUMB_SECRET_FILE=$PWD/secret
    {
        for _ in {1..1200}; do [ ! -e linked ] || break; sleep 0.1; done
        exec nsenter -t "$hold" -n "$bin/plumb-net" --listen 10.77.0.2 2>listening 3>&-
    } &
    listener=$!
    status=0
    on_a_shaped_link "$bin/plumb" doctor --json --measure="$1" --peer 10.77.0.2 >"$json" 2>"$err" || status=$?
    if grep -qE 'tbf|Operation not|Unknown device type' "$err"; then skip "no shaped pair of interfaces can be made here: $(tail -n 1 "$err")"; fi
}

@test "the cause mtu: segments of MTU 1500 cost their frames; without a peer there are none to measure" {
    measure mtu
    check '
assert measured[0]["state"] == "skipped", measured
assert "--peer" in measured[0]["reason"], measured'
    measure_over_a_link mtu
    # Where other programs take the CPUs, its interval may be too wide to say so.
    status=0
    check "
# of a full segment: IPv4 20, TCP 20, time stamps 12; the shaper counts the 14 of Ethernet; --segment has IPv6 in mind
def goodput(mtu):
    return (mtu - 20 - 20 - 12) / (mtu + 14)
truth = 1 - goodput(1480) / goodput(8980)
m = measured[0]
assert m['state'] == 'done', m
if m['share_high'] - m['share_low'] > .02 and os.getloadavg()[0] > 2 * os.cpu_count():
    assert m['share_low'] - .02 <= truth <= m['share_high'] + .02, m
    sys.exit(77)
near(share(m), truth, .02)
assert 0 < m['share_low'] <= m['share_high'] < truth + .02, m" || status=$?
    [ "$status" -ne 77 ] || skip "other programs took the CPUs: the price is known to more than 2 % only, and holds the frames'"
    [ "$status" -eq 0 ]
}
