#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2086 # the hosts' shells expand it
# scripts/lab-cluster: what it makes, and that nothing stays behind; that its links carry what it says is in net-cluster.bats.

# takes: cluster
# waits: for hosts that come up
load env

setup_file() { between_file; }

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_names
}

teardown_file() { between_file; }

lab() { timeout -k 5 1000 scripts/lab-cluster "$@"; }

# Something of the lab NAME that is still there.
left() {
    ip netns | grep "^$1-" || mount | grep "cluster/$1/" || ls -d "${XDG_RUNTIME_DIR:-/tmp}/plumb-lab-$UID/cluster/$1"*
}

listens() { on 0 ss -Hltn "sport = :$1" | grep -q .; }

# Is node0 there for node1? A port where nobody listens says so at once.
reachable() {
    run timeout 2 scripts/lab-cluster exec 1 bash -c ': <>/dev/tcp/node0/9'
    [[ $status -ne 124 && $output == *refused* ]]
}

@test "what a link can carry, to the bit" {
    [ "$(lab expect 1gbit)" = "956406869 bit/s  119.551 MB/s" ]
    [ "$(expected 730mbit)" = 698177015 ]
    [ "$(expected 2.5gbit)" = 2391017173 ]
    [ "$(expected 100mbit --mtu 9000)" = 99267806 ]
}

@test "wrong usage ends with 2 and says what is wanted; without root, too" {
    local words
    for words in '' 'upp' 'expect 10mb' '--prefix a/b expect 1gbit'; do
        run -2 lab $words
        [ -n "$output" ]
    done
    run -0 lab --help
    [[ $output == usage:* ]]
    ((EUID == 0)) || skip 'this test is not run as root: it gives root away'
    told 2 'unshare -rmn' setpriv --reuid 65534 --clear-groups bash <scripts/lab-cluster -s up 2
}

@test "short messages: --small keeps pieces and the bucket small, norate takes all away" {
    lab_cluster 2 --rate 100mbit
    lab rate 100mbit --small
    [[ $(on 0 ip -d link show eth0) == *"gso_max_size 16384"* ]]
    [[ $(on 0 tc qdisc show dev eth0) == *"tbf"*"rate 100Mbit burst 48Kb"* ]]
    run -2 lab rate 2gbit --small
    lab rate 25mbit --as 100mbit # a quarter of all
    [[ $(on 0 ip -d link show eth0) == *"gso_max_size 16384"* ]]
    [[ $(on 0 tc qdisc show dev eth0) == *"tbf"*"rate 25Mbit burst 32Kb"* ]]
    run -2 lab rate 5mbit --as 100mbit
    lab norate
    [[ $(on 0 ip -d link show eth0) == *"gso_max_size 65536"* ]]
    [[ $(on 0 tc qdisc show dev eth0) != *tbf* ]]
    run -1 lab expect
}

@test "rails: a link more on each host, with a subnet, a rate and a congestion control of its own" {
    lab_root
    run -2 lab up 2 --rails 9
    lab_cluster 2 --rails 2 --rate 200mbit
    lab rate 100mbit --rail 1 --host 1
    told 2 "rail '2'" lab rate 100mbit --rail 2
    run lab status
    [[ ${lines[0]} == *'rate 200000000 bit/s'* ]]
    [[ ${lines[2]} == *eth1*.1.1*'rate 200Mbit'* ]]
    [[ ${lines[4]} == *eth1*.1.2*'rate 100Mbit'* ]]
    lab congestion cubic
    [ "$(expected)" = "$(expected 200mbit)" ]
    # What comes from eth1's address leaves by eth1, also to the other rail.
    [[ $(on 0 ip route get "$(lab hosts | tail -n 1)" from "$(on 0 ip -4 -o addr show eth1 | awk '{ sub("/.*", "", $4); print $4 }')") == *'dev eth1'*cubic* ]]
    [[ $(on 0 ip route get "$(lab hosts | tail -n 1)") == *'dev eth0'* ]]
    lab norate
    [ "$(on 1 tc qdisc show dev eth1 | grep -c tbf)" -eq 0 ]
}

@test "congestion control: as asked, and an unknown one is refused" {
    lab_cluster 2
    lab congestion reno
    run on 0 timeout 600 python3 -c 'import socket
s = socket.create_connection(("node1", 9))'
    [[ $output == *refused* ]]
    on 0 iperf3 -s -1 >/dev/null 3>&- &
    in_time 300 listens 5201
    [ "$(on 1 python3 -c 'import socket, time
s = socket.create_connection(("node0", 5201))
print(s.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0].decode())')" = reno ]
    told 1 "'nosuch'" lab congestion nosuch
}

@test "rsh: as ssh is called, by name and by address, with stdin, status and a shell's words" {
    lab_cluster 2
    [ "$(echo through | lab rsh -x -q -T -l root -p 22 -o BatchMode=yes node1 cat)" = through ]
    [ "$(lab rsh "root@$(lab hosts | tail -n 1)" 'x=$(hostname); echo "$x"; pwd')" = "node1
$HOME" ]
    run -7 lab rsh node1 'exit 7'
    [ -z "$(STRANGE=1 lab rsh -n node0 'echo $STRANGE')" ]
    [ "$(scripts/lab/rsh node0 hostname)" = node0 ]
    run -2 lab rsh node7 true
    told 1 "'elsewhere'" lab rsh elsewhere true
}

@test "a pulled cable, a cut, and both mended" {
    lab_cluster 2
    lab congestion reno
    in_time 300 reachable
    lab link 0 down
    [[ $(lab status) == *"node0 "*"link down"* ]]
    [ "$(on 0 cat /sys/class/net/eth0/carrier)" = 0 ]
    run ! reachable
    lab link 0 up
    in_time 300 reachable
    lab cut 0
    [[ $(lab status) == *"node0 "*"link cut"* ]]
    [ "$(on 0 cat /sys/class/net/eth0/carrier)" = 1 ]
    run ! reachable
    lab link 0 up
    in_time 300 reachable
    [[ $(on 1 ip route) == *"congctl reno"* || $(on 1 cat /proc/sys/net/ipv4/tcp_congestion_control) == reno ]]
}

@test "a core: hosts on two switches that share a rate, a cut host comes back to its own, and one switch again" {
    lab_cluster 4 --rate 100mbit
    lab core 50mbit
    [[ $(lab status) == *"node2 "*switch* ]]
    [ "$(ip netns exec "$PLUMB_LAB-br" tc qdisc show | grep -c 'dev core[01] .*rate 50Mbit')" -eq 2 ]
    in_time 300 reachable # by node1, on the same switch
    on 3 bash -c 'exec 3<>/dev/tcp/node0/9' 2>&1 | grep -q refused
    lab cut 3
    [[ $(lab status) == *"node3 "*"link cut"* ]]
    lab link 3 up
    ip netns exec "$PLUMB_LAB-br" ip -o link show p3 | grep -q 'master br1'
    lab core 25mbit --from 1
    run ! lab core 25mbit --from 0
    ip netns exec "$PLUMB_LAB-br" ip -o link show p1 | grep -q 'master br1'
    lab nocore
    ! ip netns exec "$PLUMB_LAB-br" ip link show core0 2>/dev/null || { echo 'still there' && false; }
    on 3 bash -c 'exec 3<>/dev/tcp/node0/9' 2>&1 | grep -q refused
}

@test "what kills exec kills the command" {
    local command
    lab_cluster 2
    scripts/lab-cluster exec 1 sleep 1234 3>&- &
    command=$!
    in_time 300 grep -q sleep "/proc/$command/comm"
    kill -9 "$command"
    in_time 300 bash -c "! kill -0 $command 2>/dev/null"
    [[ $(lab status) == *"node1 "*" 0 processes"* ]]
}

@test "down leaves nothing: no namespace, mount, folder or process, stopped ones neither" {
    local first second
    lab_cluster 2
    scripts/lab-cluster exec 0 sleep 1234 3>&- &
    first=$!
    scripts/lab-cluster exec 1 sh -c 'trap "" TERM; sleep 1234; sleep 1234' 3>&- &
    second=$!
    in_time 300 bash -c "[[ \$(cat /proc/$first/comm) == sleep && \$(cat /proc/$second/comm) == sh ]]"
    kill -STOP "$first"
    lab down
    run left "$PLUMB_LAB"
    [ "$status" -ne 0 ]
    in_time 300 bash -c "! kill -0 $first 2>/dev/null && ! kill -0 $second 2>/dev/null"
    lab down # and again: nothing to do
    told 1 "'$PLUMB_LAB'" lab status
}

@test "an up that is killed half-way leaves what the next up, or a down, takes away" {
    local pid
    lab_root
    for delay in 0.05 0.15 0.3; do
        scripts/lab-cluster up 40 3>&- &
        pid=$!
        sleep "$delay"
        kill -9 "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    lab_cluster 2
    [ "$(ip netns | grep -c "^$PLUMB_LAB-")" -eq 3 ]
    in_time 300 reachable
    lab down
    run left "$PLUMB_LAB"
    [ "$status" -ne 0 ]
    scripts/lab-cluster up 40 3>&- &
    pid=$!
    sleep 0.3
    kill -TERM "$pid" # one that can, tidies up itself
    wait "$pid" || true
    lab down
    run left "$PLUMB_LAB"
    [ "$status" -ne 0 ]
}

@test "two labs at a time: each its subnet, and an address finds its lab" {
    local other
    lab_cluster 2
    lab up 2 --prefix "$LAB_OTHER" --mtu 9000 --rate 1gbit
    other=$(lab hosts --prefix "$LAB_OTHER" | tail -n 1)
    [ "${other%.*}" != "$(lab hosts | head -n 1 | sed 's/\.[0-9]*$//')" ]
    [[ $(lab rsh "$other" ip -4 -o addr show eth0) == *"$other/24"* ]]
    [ "$(expected --prefix "$LAB_OTHER")" = 992678056 ]
    [ "$(on 0 cat /sys/class/net/eth0/mtu)" = 1500 ]
    lab down --prefix "$LAB_OTHER"
    in_time 300 reachable
}
