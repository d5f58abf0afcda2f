#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2034,SC2154,SC2317,SC2329 # the guest's shell expands it; result reads out; section sets job
# plumb doctor in a guest, whose kernel has what few hosts have: RDMA, netem, BBR. Faults are planted, found, and
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
