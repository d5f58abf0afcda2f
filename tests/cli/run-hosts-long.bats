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

@test "a host that cannot be reached: named, and the next case runs" {
    printf 'alpha address=127.0.0.1\nbeta address=127.0.0.1\ngone address=127.0.0.1\n' > hosts
    run -4 over_hosts --only '*--size 8*'
    [ "$(cells status | sort | uniq -c | awk '{print $2 $1}' | paste -sd ' ')" != "failed3" ]
    cells reason | grep -q "'gone' by ./rsh: rsh: .*No route to host (status 255)" # what rsh printed
    python3 - <<'END'
import csv
state = {(l["from"], l["to"]): l["state"] for l in csv.DictReader(open("r/plan.csv"))}
assert state == {("alpha", "beta"): "done", ("beta", "gone"): "fail", ("gone", "alpha"): "fail"}, state
END
    none_left
}

endless() { # a case that would take twenty minutes
    suite '{bench: net, transport: tcp, pattern: latency, size: 8, no-cpu: "true", budget: 20m, timeout: 20m, min-samples: 100000000, max-samples: 100000000}'
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

@test "what holds the connection to a host is stopped, or all of a host is killed: it is named in time, and nothing is left" {
    local holder
    endless
    for signal in STOP KILL; do
        rm -rf r
        over_hosts > said 2>&1 &
        run_pid=$!
        until_at_work "^$work/bin/plumb-net 127"
        holder=$(agent_of 0)
        begin=$SECONDS status=0
        # shellcheck disable=SC2046 # and what it started
        kill -$signal "$holder" $([ $signal = STOP ] || pgrep -P "$holder")
        wait "$run_pid" || status=$?
        echo "took $((SECONDS - begin)) s" && cat said r/log/*
        [ "$status" -eq 4 ]
        ((SECONDS - begin <= NAMED_S))
        cells reason | grep -q "$([ $signal = STOP ] && echo "./rsh.* alpha" || echo "'alpha'")"
        none_left
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

@test "a device that is not here is told once; in a run with hosts it may be there" {
    "$plumb" list | grep -q 'net .*rdma .*absent' || skip "there is an RDMA device here"
    suite '{bench: net, transport: rdma, pattern: bandwidth, size: [4K, 64K], verb: [write, read], repeat: 3}' \
        '{bench: net, transport: rdma, pattern: latency, size: 8, repeat: 3}'
    "$plumb" run t.yaml --out r --no-report
    row skipped 'no RDMA device'
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --dry-run > planned
    [ "$(grep -c ',alpha,beta,' planned)" -eq 15 ]
}
