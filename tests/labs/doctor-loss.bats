#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2034,SC2154,SC2317,SC2329 # the guest's shell expands it; section sets job; sections reads seconds
# What plumb doctor says of a line that loses packets, against what the loss costs, in a guest whose kernel has netem and BBR.

# takes: guest
# waits: for launches that are measured in turn

load ../cli/common
load env
load sections

# What each section in the guest begins with.
in_guest() {
    # line: to 10.77.0.2, in a network of its own, 10 Mb/s and 40 ms there and back; a listener of plumb-net is there.
    line() {
        unshare -n sleep 600 &
        local far=$!
        until [[ $(readlink /proc/"$far"/ns/net) != "$(readlink /proc/self/ns/net)" ]]; do sleep 0.05; done
        ip link add v0 type veth peer name v1 netns "$far"
        ip link set v0 gso_max_segs 1 up
        ip addr add 10.77.0.1/24 dev v0
        nsenter -t "$far" -n bash -ec "ip link set v1 gso_max_segs 1 up; ip addr add 10.77.0.2/24 dev v1; ip link set lo up
            tc qdisc add dev v1 root netem delay 20ms limit 10000"
        tc qdisc add dev v0 root netem rate 10mbit delay 20ms limit 10000
        (umask 077 && echo 'a secret of these tests' >secret)
        export PLUMB_SECRET_FILE=$PWD/secret
        nsenter -t "$far" -n build/bin/plumb-net --listen 10.77.0.2 2>server &
        until [[ -s server ]]; do sleep 0.1; done
    }
    loses() { tc qdisc change dev v0 root netem rate 10mbit delay 20ms limit 10000 loss "$1"; }
}

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    guest_setup
    [[ -x build/bin/plumb && -x build/bin/plumb-net ]] || no_guest 'plumb and plumb-net are not built'
    sections --devices 1
}

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_guest
}

# CUBIC with the loss and without it, in turn: what the loss costs.
section_loss_itself() {
    local turn percent
    line
    for turn in 1 2 3 4 5 6; do
        for percent in $((turn % 2 ? 0 : 2)) $((turn % 2 ? 2 : 0)); do
            loses $percent%
            build/bin/plumb-net 10.77.0.2 --transport tcp --pattern bandwidth --size 64K --congestion cubic --no-cpu \
                --warmup 1s --budget 2s --csv | sed -n '1p; /,average_bandwidth,/p' >"$turn-$percent"
        done
    done
}

section_lossy_line() {
    line
    loses 2%
    build/bin/plumb doctor --json --measure=lossy-line --measure-time 1s --peer 10.77.0.2 >out || (($? == 1 || $? == 3))
}

# BBR loses a little itself, and is no faster than a line without loss: the doctor's price is that of the loss at most.
@test "loss of 2 % on a line of 40 ms: what CUBIC loses against BBR is most of what the loss costs, and no more" {
    exits 0 section loss_itself
    exits 0 section lossy_line
    python3 - "$BATS_FILE_TMPDIR/job/loss_itself" "$job/out" <<'END' || status=$?
import csv, json, os, statistics, sys
turns, told = sys.argv[1], json.load(open(sys.argv[2]))
def goodput(name):
    return float(next(csv.DictReader(open(f"{turns}/{name}")))["value"])
costs = [1 - goodput(f"{t}-2") / goodput(f"{t}-0") for t in range(1, 7)]
m, = told["measured"]
print("the loss costs", costs, "; the doctor says", m["share_low"], m["share_high"], m["reason"] if "reason" in m else "")
print([t["values"] for t in m["turns"]])
assert m["state"] == "done" and m["check"] == "lossy-line", m
assert statistics.median(costs) > 0.3, costs
# A guest whose CPUs others take for seconds measures these: the price is wide, or BBR, which paces by timers, is slower.
if m["share_low"] <= 0 and os.getloadavg()[1] > 2 * os.cpu_count():
    sys.exit(77)
assert m["share_low"] > 0, m
assert 1 - m["ratio"] <= max(costs) + 0.05, m # other work on this machine takes from a turn
END
    [ "$status" -ne 77 ] || skip "other work took the CPUs of the guest, so BBR is not faster there"
    [ "$status" -eq 0 ]
}
