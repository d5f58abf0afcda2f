#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2034,SC2154,SC2317,SC2329 # the guest's shell expands it; result reads out; section sets job
# plumb doctor in a guest, whose kernel has what few hosts have: RDMA, bonds, netem, BBR. Faults are planted, found, and
# priced by closed forms; without them nothing is found of them.

# takes: guest

load ../cli/common
load env
load sections
load doctor

# What each section in the guest begins with.
in_guest() {
    plumb=build/bin/plumb
    # examine NAME [COMMAND...]: what plumb doctor says of the guest as it is now, started by that command.
    examine() {
        local status=0
        "${@:2}" "$plumb" doctor --json >"$1" || status=$?
        ((status == 1 || status == 3)) || echo "examination $1 ended with $status"
    }
    # pair A B: a pair of interfaces, up.
    pair() { ip link add "$1" type veth peer name "$2" && ip link set "$2" up && ip link set "$1" up; }
    # legs BOND N: an end of each of N pairs is a member; the others are BOND-far0 and on.
    legs() {
        local i
        for ((i = 0; i < $2; i++)); do
            ip link add "$1-$i" type veth peer name "$1-far$i"
            ip link set "$1-$i" master "$1"
            ip link set "$1-far$i" up
        done
        ip link set "$1" up
    }
    # state INTERFACE STATE...: waits until the kernel gives it one of these states.
    state() {
        local try now
        for ((try = 0; try < 200; try++)); do
            now=$(<"/sys/class/net/$1/operstate")
            [[ " ${*:2} " != *" $now "* ]] || return 0
            sleep 0.1
        done
        echo "$1 is $now, not $2"
    }
}

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    guest_setup
    [[ -x build/bin/plumb ]] || no_guest 'plumb is not built'
    sections --devices 1 --mtu 4500
}

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_guest
}

# saw SECTION: it ended well, and each of its examinations did.
saw() {
    exits 0 section "$1"
    [[ $output != *' ended with '* && $output != *' is '* ]]
}

section_roce_mtu() {
    examine large
    ip link set dummy0 mtu 1500
    examine small
    ip link set dummy0 mtu 4500
}

@test "soft RoCE on an MTU of 1500: found, named, and priced by its frames; on 4500 it is fine" {
    saw roce_mtu
    out=$job/large
    is rdma-mtu rxe0:1 fine
    out=$job/small
    is rdma-mtu rxe0:1 found
    [ "$(result rdma-mtu rxe0:1 roce_mtu_bytes)" = 1024 ]
    [[ $(result rdma-mtu rxe0:1 text) == *1024* ]]
    [[ $(result rdma-mtu rxe0:1 remedy) == *'ip link set dummy0 mtu'* ]]
    # A packet has 82 bytes of Ethernet (38 with its gap), IP 20, UDP 8, BTH 12 and ICRC 4; RETH has 16, once a message.
    priced rdma-mtu rxe0:1 '1 - (256 * (4096 + 82) + 16) / (1024 * (1024 + 82) + 16)'
}

section_memlock() {
    nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"; }
    ulimit -l 64
    examine root
    examine little nobody
    ulimit -l unlimited
    examine much nobody
}

@test "64 KiB of locked memory beside an RDMA device: found; not without a limit, nor for root" {
    saw memlock
    out=$job/little
    is locked-memory process found
    [ "$(result locked-memory process process.locked_memory_bytes)" = 65536 ]
    out=$job/much
    is locked-memory process fine
    out=$job/root
    is locked-memory process fine
}

section_bonds() {
    local mode
    for mode in active-backup balance-rr; do
        unshare -n -m bash -c "
            $(declare -f examine legs state); plumb=$plumb
            mount -t sysfs none /sys
            ip link add bond0 type bond mode $mode miimon 50
            legs bond0 2
            state bond0-1 up
            examine $mode-whole
            ip link set bond0-far1 down
            state bond0-1 down lowerlayerdown
            examine $mode-leg"
    done
}

@test "a bond: that sends in turns, and one with a leg down is found, and priced where all legs send" {
    saw bonds
    out=$job/active-backup-whole
    is bond bond0 fine
    out=$job/active-backup-leg
    is bond bond0 found
    [[ $(result bond bond0 text) == '1 of its 2 '* ]]
    [ "$(result bond bond0 cost)" = None ] # one sends alone, with or without the other
    out=$job/balance-rr-whole
    is bond bond0 found
    [[ $(result bond bond0 text) == *'balance-rr'* ]]
    out=$job/balance-rr-leg
    is bond bond0 found
    priced bond bond0 '1 / 2'
}

section_far_route() {
    unshare -n -m bash -c "
        $(declare -f examine legs state); plumb=$plumb
        mount -t sysfs none /sys
        ip link add slow0 type bond mode active-backup miimon 50
        ip link add fast0 type bond mode balance-xor xmit_hash_policy layer3+4 miimon 50
        legs slow0 1
        legs fast0 4
        state fast0-3 up
        ip addr add 10.1.0.1/24 dev slow0
        ip addr add 10.2.0.1/24 dev fast0
        ip route add default via 10.1.0.2
        examine slow
        ip route replace default via 10.2.0.2
        examine fast"
}

# Ends of pairs say 10 Gb/s, whatever they carry; a bond that shares says the sum of its members.
@test "the default route by an interface of 10 Gb/s beside one of 40: found and priced; by the other it is fine" {
    saw far_route
    out=$job/slow
    is default-interface network found
    [[ $(result default-interface network text) == *slow0*10*40* ]]
    priced default-interface network '1 - 10 / 40'
    out=$job/fast
    is default-interface network fine
}

section_netem() {
    unshare -n -m bash -c "
        $(declare -f examine pair); plumb=$plumb
        mount -t sysfs none /sys
        pair v0 v1
        tc qdisc add dev v0 root netem delay 5ms loss 1%
        examine lossy
        tc qdisc del dev v0 root
        echo bbr >/proc/sys/net/ipv4/tcp_congestion_control
        examine bbr"
}

@test "netem's delay and loss: found with their figures and no price; BBR in place of CUBIC: found" {
    saw netem
    out=$job/lossy
    is shaping v0 found
    is shaping v1 fine
    is congestion tcp fine
    [[ $(result shaping v0 qdiscs) == *'"kind": "netem"'*'"delay_us": 5000'*'"loss_percent": 1'* ]]
    [[ $(result shaping v0 text) == *'5 ms'*'1 %'* ]]
    [ "$(result shaping v0 cost)" = None ] # no formula says what loss takes from TCP
    out=$job/bbr
    is shaping v0 fine
    is congestion tcp found
}
