#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034 # `out` is for cells
# plumb run over ssh itself, to a real sshd on each host of a lab: between hosts, and against a host; what breaks on the way is named,
# and leaves nothing behind. Runs are started on node0, which has no part in them.

# takes: cluster
# waits: for connections that break
load env
load ../cli/rows

setup_file() { between_file; }

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    top=$PWD plumb=$PWD/build/bin/plumb
    [[ -x $plumb ]] || skip 'plumb is not built'
    [[ -x /usr/sbin/sshd ]] || skip 'sshd is not installed (scripts/bootstrap --for services)'
    lab_cluster 3
    work=$BATS_TEST_TMPDIR keys=$BATS_TEST_TMPDIR/ssh
    scripts/lab/sshd "$keys"
    ssh="ssh -F $keys/config"
    if ! on 0 ssh -F "$keys/config" node1 true 2>"$work/said"; then
        [[ $(</proc/self/uid_map) == *4294967295* ]] || skip 'sshd lets nobody in here: it wants to be root of the machine, not of a namespace'
        cat "$work/said" "$keys/sshd1.log" && return 1
    fi
    cd "$work" || return 1
    printf 'node1 slots=2\nnode2 slots=2\n' >hosts
}

teardown() { between_file; }

# lab ARGUMENT...
lab() { timeout -k 5 1000 "$top/scripts/lab-cluster" "$@"; }

# start ARGUMENT...: plumb run on node0, in the background, in a session of its own that the keyboard could interrupt; its
# id in $run, what it says in out and err.
start() {
    env --default-signal=INT setsid "$top/scripts/lab-cluster" exec 0 "$plumb" run "$@" >out 2>err 3>&- &
    run=$!
}

# ended: its exit status.
ended() {
    status=0
    wait "$run" || status=$?
    cat out err
}

# Processes of host I, all but its sshd: "PID COMMAND".
processes() {
    local pid
    for pid in $(ip netns pids "$PLUMB_LAB-node$1"); do
        [[ $pid == "$(<"$keys/sshd$1.pid")" ]] || echo "$pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")"
    done
}

# runs_on I PATTERN: does a process of it match? Kept in `found`.
runs_on() { processes "$1" | grep -E -- "$2" >found; }

# under_way I PATTERN: waits until one does.
under_way() {
    in_time 300 runs_on "$1" "$2" || {
        echo "nothing like '$2' on node$1:"
        processes 0 && processes 1 && processes 2
        cat out err
        return 1
    }
}

# break_off I: the sshd that serves the connection to host I is killed.
break_off() { processes "$1" | awk '/ sshd: root/ { print $1 }' | xargs kill -KILL; }

nobody() {
    local i
    for i in 0 1 2; do
        [[ -z $(processes "$i") && -z $(ls -A "$keys/tmp$i") ]] || return
    done
}

# Nothing runs on any host, and no file lies in its folder for such.
nothing_left() {
    in_time 300 nobody || {
        processes 0 && processes 1 && processes 2
        ls -A "$keys"/tmp?
        return 1
    }
}

# suite FILE CASE...: a line each.
suite() {
    local file=$1
    shift
    printf 'suite: t\nabout: a test\ndefaults: {repeat: 1, timeout: 100s, budget: 50ms, warmup: 5ms}\ncases:\n' >"$file"
    printf '  - {%s}\n' "$@" >>"$file"
}

# either PATTERN: does such a one run on node1 or node2? Which, in `at`.
either() {
    for at in 1 2; do
        ! runs_on "$at" "$1" || return 0
    done
    return 1
}

# Longer than any test.
forever='budget: 90s, min-samples: 100000000, max-samples: 100000000'
net='bench: net, transport: tcp, pattern: latency, no-cpu: "true"'

@test "a pair and a group by ssh: rows of both hosts, and nothing is left on them" {
    suite t.yaml "$net, size: 8" 'bench: allreduce, backend: ring, transport: tcp, size: 4K'
    start t.yaml --hosts hosts --rsh "$ssh" --out r --no-report
    exits 0 ended
    grep -q '4 ranks on 2 hosts' err
    out=r/net.csv
    [ "$(cells from) $(cells to)" = 'node1 node2' ]
    out=r/allreduce.csv
    [ "$(cells hosts | sort -u)" = 'node1;node2' ]
    [ "$(cells ranks | sort -nu | xargs)" = '2 4' ]
    [ "$(cat r/net.csv r/allreduce.csv | grep -cE ',(failed|wrong|skipped),')" -eq 0 ]
    python3 - <<'END'
import json
hosts = json.load(open("r/run.json"))["hosts"]
assert hosts["launcher"] == "ssh" and hosts["rsh"].startswith("ssh -F "), hosts
assert [h["calls_itself"] for h in hosts["list"]] == ["node1", "node2"], hosts
END
    nothing_left
}

@test "the keyboard's interrupt, and a kill: nothing is left on any host, and --resume goes on" {
    local signal
    suite t.yaml "$net, size: 8, $forever" "$net, size: 64"
    for signal in INT KILL; do
        start t.yaml --hosts hosts --rsh "$ssh" --out "$signal" --no-report
        under_way 1 'plumb-net 10.*--size 8 '
        if [[ $signal == INT ]]; then
            kill -INT -- "-$run" # as a terminal does it: the ssh's get it, too
        else
            kill -KILL "$run"
        fi
        ended
        nothing_left
        [ "$(sed 1d "$signal/plan.csv" | grep -- '--size 8 ' | cut -d, -f1)" = todo ]
        [[ $signal == KILL ]] || { [ "$status" -eq 4 ] && grep -q '^plumb run: interrupted: . of 2 ' err; }
    done
    start --resume INT --no-report
    under_way 1 'plumb-net 10.*--size 8 '
    kill -INT "$run"
    ended
    nothing_left
}

@test "a connection that is cut: the case names the host, and the next one runs" {
    local size
    suite t.yaml "$net, size: [8, 16], $forever" "bench: allreduce, backend: ring, transport: tcp, size: 4K, ranks: 4, $forever" \
        "$net, size: 64"
    start t.yaml --hosts hosts --rsh "$ssh" --out r --no-report
    for _ in 1 2 3; do # in whichever order
        under_way 1 ' [^ ]*plumb-(net|allreduce) .*--max-samples 100000000'
        size=$(sed -n '1s/.*--size \([0-9]*\).*/\1/p' found)
        echo "under way: $size"
        if [[ $size == 8 ]]; then
            break_off 1 # the leader's
        elif [[ $size == 16 ]]; then
            break_off 2 # the listener's
        else
            under_way 2 'plumb-allreduce.*--rank 3 '
            break_off 2 # of two ranks
        fi
        in_time 300 eval "! runs_on 1 ' [^ ]*plumb-(net|allreduce) .*--size $size .*--max-samples 100000000'"
    done
    exits 4 ended
    out=r/net.csv
    paste -d: <(cells size) <(cells status) <(cells reason) >rows
    cat rows
    grep -q "^8:failed:.*'node1' .*: [A-Z].*[^?]$" rows
    grep -q "^16:failed:.*'node2' .*: [A-Z].*[^?]$" rows
    grep -qE '^64:(ok|noisy):' rows
    out=r/allreduce.csv
    [ "$(cells status | sort -u)" = failed ]
    cells reason | grep node2
    nothing_left
}

@test "hosts that ssh does not reach, or trust, or that refuse it: each is named with what to try, and the others run" {
    local address host
    address=$(lab hosts | sed -n 2p)
    cat >config <<END
Host forged
    HostName node1
    HostKeyAlias forged
    UserKnownHostsFile $PWD/forged
Host unknown
    HostName node1
    HostKeyAlias unknown
Host refused
    HostName node1
    HostKeyAlias [node1]:2222
    User no-such-user
Host closed
    HostName node1
    Port 9
Host nowhere
    HostName ${address%.*}.99
Host *
    Include $keys/config
END
    echo "forged $(cut -d' ' -f1,2 "$keys/host2.pub")" >forged
    echo node1 >hosts
    printf '%s address=%s\n' forged "$address" unknown "$address" refused "$address" closed "$address" nowhere "$address" >>hosts
    echo node2 >>hosts
    suite t.yaml "$net, size: 8, between: first"
    start t.yaml --hosts hosts --rsh "ssh -F $PWD/config" --out r --no-report
    exits 4 ended
    for host in forged unknown refused closed nowhere; do # what the command that is advised says itself is in the reason
        lab exec 0 ssh -F "$PWD/config" -o BatchMode=yes "$host" true 2>tried || true
        grep -F "'$host' by ssh: $(tail -n 1 tried | tr -d '\r') (status 255)" err | grep "'ssh -F $PWD/config -o BatchMode=yes $host true'.* 1 launch "
    done
    [ "$(sed 1d r/plan.csv | cut -d, -f1,10 | sort | xargs)" = 'done,node2 fail,closed fail,forged fail,nowhere fail,refused fail,unknown' ]
    nothing_left
}

@test "--against a host, by ssh: in turn, both runs whole, and one page" {
    suite t.yaml 'bench: "null", number: [1, 2]'
    sed -i 's/repeat: 1/repeat: 3/' t.yaml
    # shellcheck disable=SC2016 # the host expands it
    start t.yaml --against "$ssh node2 PATH=${plumb%/*}:"'$PATH plumb' --out r
    ended
    [ "$status" -eq 0 ] || [ "$status" -eq 1 ] || [ "$status" -eq 3 ] # a verdict
    [ -s r/report.html ]
    grep -q "'$ssh node2 PATH=" <(tr -s ' \n' ' ' <out)
    for side in a b; do
        [ "$(sed 1d r/$side/plan.csv | cut -d, -f1 | sort | uniq -c | xargs)" = '6 done' ]
        out=r/$side/null.csv
        [ "$(cells host | sort -u)" = "node$([[ $side == a ]] && echo 0 || echo 2)" ]
    done
    [ "$(python3 -c 'import json; print(json.load(open("r/b/run.json"))["machine"]["host"]["hostname"])')" = node2 ]
    nothing_left
}

@test "--against by ssh: a kill, and a connection that is cut, which is named, leave nothing; --resume measures the rest" {
    local of="$ssh node1 $work/bin/plumb" against="$ssh node2 $work/bin/plumb" kept side command
    suite t.yaml 'bench: "null", number: [1, 2, 3]'
    # What is measured at both hosts, and lasts as long as there is the file `slow`.
    mkdir bin
    cp "$plumb" bin/
    script bin/plumb-null <<END
#!/bin/sh
case " \$* " in *" --number 2 "*" --csv "* | *" --csv "*" --number 2 "*) [ ! -e "$work/slow" ] || exec sleep 1000 ;; esac
exec "$top/build/bin/plumb-null" "\$@"
END
    touch slow
    start t.yaml --of "$of" --against "$against" --out r --no-report
    in_time 300 either 'sleep 1000'
    kept=$(cat r/?/plan.csv | grep -c '^done' || true)
    kill -KILL "$run"
    ended
    nothing_left
    [ "$(cat r/?/plan.csv | grep -c '^done' || true)" -eq "$kept" ]
    start --resume r --no-report
    in_time 300 either 'sleep 1000'
    break_off "$at" # of the one that works: the other is asked no sooner than it is its turn
    exits 4 ended
    case $at in
    1) side=a command=$of ;;
    2) side=b command=$against ;;
    esac
    grep "target $side .*node$at.* (status 255).*: $command agent$" err
    grep "plumb run: .* $kept of 6 .* run --resume r$" err
    nothing_left
    rm slow
    start --resume r --no-report
    ended
    grep "plumb run: $((6 - kept)) launches" err
    [ "$(sed -s 1d r/?/plan.csv | cut -d, -f1 | sort | uniq -c | xargs)" = '6 done' ]
    nothing_left
}

@test "--against by ssh: a host that ssh does not trust is named, and nothing is made" {
    suite t.yaml 'bench: "null", number: 1'
    start t.yaml --against "$ssh -o UserKnownHostsFile=/dev/null node2 $plumb" --out r
    exits 4 ended
    grep "^plumb run: target b .* (status 255).*: $ssh -o " err
    [ ! -e r ]
}

@test "doctor --hosts over ssh: both answer, and one that is cut off is named" {
    lab exec 0 "$plumb" doctor --hosts hosts --rsh "$ssh" >out 2>err || [ $? -eq 1 ] || [ $? -eq 3 ]
    grep -q '^2 of 2 hosts' out || { cat out err && false; }
    lab cut 2
    status=0
    lab exec 0 "$plumb" doctor --hosts hosts --rsh "$ssh" --host-wait 5s >out 2>err || status=$?
    grep -q '^1 of 2 hosts' out || { cat out err && false; }
    grep -q "'node2'" out
    [ "$status" -eq 4 ] || [ "$status" -eq 1 ]
}
