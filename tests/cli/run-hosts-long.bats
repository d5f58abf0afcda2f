#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run --hosts: both ends started by a stand-in for ssh, which runs the command here; by mpirun where there is one.

load rows
load processes
load run-hosts

# takes: host-ports
# takes: spinners
# waits: for ends that do not come

@test "a host that cannot be reached, one without the program, one that says nothing: named, and the next case runs" {
    printf 'alpha address=127.0.0.1\nbeta address=127.0.0.1\ngone address=127.0.0.1\n' > hosts
    run -4 over_hosts --only '*--size 8*'
    [ "$(cells status | sort | uniq -c | awk '{print $2 $1}' | paste -sd ' ')" != "failed3" ]
    cells reason | grep -q "'gone' by ./rsh: rsh: .*No route to host (status 255)" # what rsh printed
    python3 - <<'END'
import csv
state = {(l["from"], l["to"]): l["state"] for l in csv.DictReader(open("r/plan.csv"))}
assert state == {("alpha", "beta"): "done", ("beta", "gone"): "fail", ("gone", "alpha"): "fail"}, state
END
    rm -rf r
    printf 'alpha address=127.0.0.1\nmute address=127.0.0.1\n' > hosts
    run -4 over_hosts --only '*--size 8*' --host-wait 30s # for 'alpha' as well
    cells reason | grep -q "'mute' .* ./rsh in 30 s"
    rm -rf r
    printf 'alpha address=127.0.0.1\nbeta address=127.0.0.1\n' > hosts
    run -4 over_hosts --only '*--size 8*' --remote-dir /nowhere
    cells reason | grep -q "'/nowhere/plumb-net' .*'beta'.*--remote-dir"
    none_left
}

endless() { # a case that would take twenty minutes
    suite '{bench: net, transport: tcp, pattern: latency, size: 8, no-cpu: "true", budget: 20m, timeout: 20m, min-samples: 100000000, max-samples: 100000000}'
}

@test "another version on a host: named, and nothing is measured; over the time-out: both ends are gone, the launch is late" {
    mkdir -p other/beta
    script other/beta/plumb-net <<'END'
#!/bin/sh
echo "plumb-net 0.0.1 (fffffff, cc, -O)"
END
    run -4 over_hosts
    alike status failed
    cells reason | grep -q "'beta' .* 0.0.1 (fffffff)"
    rm -r other r
    endless
    sed -i 's/timeout: 20m/timeout: 2s/' t.yaml
    run -4 over_hosts
    alike code timeout from alpha
    [ "$(grep -c ^late r/plan.csv)" -eq 1 ]
    none_left
    [ -z "$(ls tmp)" ]
}

@test "a listener that is killed in the middle: the row says so, the next launch runs" {
    endless
    printf '  - {bench: net, transport: tcp, pattern: latency, size: 64, no-cpu: "true", budget: 50ms, min-samples: 10}\n' >> t.yaml
    over_hosts > said 2>&1 &
    run_pid=$!
    until_at_work "^$work/bin/plumb-net 127.*size 8 "
    pkill -KILL -f "$work/bin/plumb-net --listen"
    reaped 4 "$run_pid"
    python3 - <<'END'
import csv
rows = {r["size"]: r for r in csv.DictReader(open("r/net.csv"))}
assert rows["8"]["status"] == "failed" and rows["8"]["reason"], rows["8"]
assert rows["64"]["status"] in ("ok", "noisy"), rows["64"]
END
    none_left
}

@test "an end that is stopped is named within 10 s: the listener by the leader, the leader by the harness" {
    endless
    for end in leader listener; do
        rm -rf r
        over_hosts > said 2>&1 &
        run_pid=$!
        until_at_work "^$work/bin/plumb-net 127"
        [ $end = leader ] || victim=$(pgrep -f "^$work/bin/plumb-net --listen" | paste -sd ' ')
        # shellcheck disable=SC2086 # a listener is two processes
        kill -STOP $victim
        begin=$SECONDS status=0
        wait "$run_pid" || status=$?
        echo "took $((SECONDS - begin)) s" && cat said r/log/*
        [ "$status" -eq 4 ]
        [ $end = listener ] ||
            cells reason | grep -q "'alpha', the leader, .*'beta' "
        [ $end = leader ] || cells reason |
            grep -q 'beta (127.0.0.1 '
        ((SECONDS - begin <= NAMED_S))
        none_left
    done
}

@test "what holds the connection to a host is stopped: it is named in time; where all of a host is killed its folder goes, too" {
    local holder
    endless
    for signal in STOP KILL; do
        rm -rf r
        over_hosts > said 2>&1 &
        run_pid=$!
        until_at_work "^$work/bin/plumb-net 127"
        holder=$(cut -d ' ' -f 1 tmp/plumb.*/owner)
        begin=$SECONDS status=0
        # shellcheck disable=SC2046 # and what it started
        kill -$signal "$holder" $([ $signal = STOP ] || pgrep -P "$holder")
        wait "$run_pid" || status=$?
        echo "took $((SECONDS - begin)) s" && cat said r/log/*
        [ "$status" -eq 4 ]
        ((SECONDS - begin <= NAMED_S))
        cells reason | grep -q "$([ $signal = STOP ] && echo "./rsh.* alpha" || echo "'alpha'")"
        none_left
        ls tmp
        [ -z "$(ls tmp)" ]
    done
}

@test "cases that need no peer, and those between none, stay on this machine" {
    suite '{bench: "null"}' '{bench: net, transport: shm, pattern: latency, size: 8, no-cpu: "true", between: none}' \
        '{bench: net, transport: tcp, pattern: latency, size: 8, no-cpu: "true", between: first}'
    printf 'alpha address=127.0.0.1\nbeta address=127.0.0.1\ngamma address=127.0.0.1\n' > hosts
    over_hosts 2> said
    grep -q ' ./rsh: 1 .* 2 pairs; .* 2 ' said
    paste -d: <(cells transport) <(cells from) <(cells to) | sort > got
    diff got - <<< "$(printf 'shm::\ntcp:alpha:beta\ntcp:alpha:gamma')"
    head -1 r/null.csv | grep -qv '^from'
    printf 'suite: t\nabout: a\ncases: [{bench: "null", between: all}]\n' > t.yaml
    told 2 "'null'" over_hosts --out q
}

@test "what a killed launch left is taken away by the next, and nothing else" {
    local dead zombie
    sleep 0 & dead=$!
    wait "$dead"
    mkdir -p tmp
    left() { # left NAME PID [BOOT]
        mkdir "tmp/plumb.$1"
        printf '%s %s %s\n' "$2" "$(readlink /proc/self/ns/pid)" "${3-$(cat /proc/sys/kernel/random/boot_id)}" > "tmp/plumb.$1/owner"
    }
    left killed "$dead"
    bash -c 'sleep 0 & exec sleep 600' 3>&- & # which takes no note of its child's end
    zombie=$!
    until pgrep -P "$zombie" -r Z > /dev/null; do sleep 0.1; done
    left zombie "$(pgrep -P "$zombie")"
    left living $$
    left others "$dead" another-boot
    # Without an owner: only what is empty and old goes.
    mkdir tmp/plumb.nobody tmp/plumb.longer-name tmp/plumb.oldone tmp/plumb.filled tmp/other.oldone
    touch tmp/plumb.filled/r
    touch -d '3 minutes ago' tmp/plumb.oldone tmp/plumb.filled tmp/plumb.longer-name tmp/other.oldone
    printf 'alpha address=127.0.0.1\nbeta address=127.0.0.1\n' > hosts
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --out r --no-report || true
    kill -KILL "$zombie"
    ls tmp
    [ "$(cd tmp && echo *)" = 'other.oldone plumb.filled plumb.living plumb.longer-name plumb.nobody plumb.others' ]
}

@test "a device that is not here is told once; in a run with hosts it may be there" {
    "$plumb" list | grep -q 'net .*rdma .*absent' || skip "there is an RDMA device here"
    suite '{bench: net, transport: rdma, pattern: bandwidth, size: [4K, 64K], verb: [write, read], repeat: 3}' \
        '{bench: net, transport: rdma, pattern: latency, size: 8, repeat: 3}'
    "$plumb" run t.yaml --out r --no-report
    row skipped 'no RDMA device'
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --dry-run > planned
    [ "$(grep -c ',alpha,beta,' planned)" -eq 15 ]
}
