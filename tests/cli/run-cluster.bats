#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2086,SC2154 # of variables that run-hosts.bash sets
# plumb run --hosts over a group: four hosts that a stand-in for ssh makes of this machine, ranks that a stand-in benchmark makes of
# plumb-null (tests/tools/fake-group.py); by mpirun where there is one; and plumb-allreduce itself.

load rows
load processes
load run-hosts

# takes: host-ports
# takes: spinners
# waits: for ranks that do not come
setup() {
    hosts_here || return 1
    mkdir fake
    export out="$work/r/gather.csv" FAKE_NULL="$work/bin/plumb-null" PATH="$work/bin:$PATH"
    ln -s "$bin/plumb-null" bin/plumb-null
    cp "$top/tests/tools/fake-group.py" bin/plumb-gather
    chmod +x bin/plumb-gather
    for host in alpha beta gamma delta; do
        mkdir "fake/$host"
        printf '#!/bin/sh\necho %s\n' "$host" | script "fake/$host/uname"
    done
    printf 'alpha slots=2 address=127.0.0.1\nbeta address=127.0.0.1\ngamma:3 address=127.0.0.1\ndelta address=127.0.0.1\n' > hosts
    suite '{bench: gather, number: 1}'
}

left_over() { pgrep "$@" -f "$work/bin/plumb-"; }

none_left() { # an agent asks, waits and kills
    for _ in $(seq 3000); do
        left_over > /dev/null || [ -n "$(ls tmp)" ] || return 0
        sleep 0.3
    done
    left_over -a
    ls tmp
    return 1
}

until_running() { # until plumb-null is measuring
    ! in_time 600 pgrep -f "$work/bin/plumb-null --number" > /dev/null || return 0
    [ ! -e said ] || cat said
    tail -n 20 r*/log/* 2> /dev/null || true
    pgrep -f "$work/bin/" | paste -sd, | xargs -r ps -o pid,etimes,stat,args -p || true
    return 1
}

@test "a group runs over all hosts, slots ranks on each, in their order; rows and plan name them" {
    suite '{bench: gather, number: [1, 2], np: 2}'
    over_hosts 2> said
    grep -q ' ./rsh: 2 .* 7 ranks on 4 hosts; .* 0 ' said
    [ "$(cells hosts | sort -u)" = 'alpha;beta;gamma;delta' ]
    [ "$(cells status | grep -cE '^(ok|noisy)$')" -eq 2 ]
    # Its --np is for this machine alone.
    grep -q 'alpha rank 0: plumb-gather: 7 ranks' r/log/1-1.txt
    # Its communicators are its own: those that it would have on this machine are none of the hosts'.
    [ "$(grep -c -e --ranks r/plan.csv)" -eq 0 ]
    python3 - <<'END'
import csv, json, os
plan = list(csv.DictReader(open("r/plan.csv")))
assert all((l["from"], l["to"], l["hosts"], l["state"]) == ("", "", "alpha;beta;gamma;delta", "done") for l in plan), plan
hosts = json.load(open("r/run.json"))["hosts"]
assert [h["slots"] for h in hosts["list"]] == [2, 1, 3, 1], hosts
who = [(int(r["rank"]), r["host"]) for r in hosts["ranks"]["gather"]]
assert who == [(0, "alpha"), (1, "alpha"), (2, "beta"), (3, "gamma"), (4, "gamma"), (5, "gamma"), (6, "delta")], who
one = hosts["list"][0]
assert abs(one["clock_offset_s"]) < 1 + one["clock_known_to_s"] and one["calls_itself"] == os.uname().nodename, one
assert one["versions"]["gather"].startswith("plumb-gather "), one
samples = list(csv.DictReader(open("r/samples/gather.csv")))
assert len(samples) == sum(int(r["samples"]) for r in csv.DictReader(open("r/gather.csv")))
END
    none_left
}

@test "the secrets are on no command line and in no file" {
    secrets_of 10 2 over_hosts # five connections of the trial, five of the launch; a check has none
}

@test "a host that cannot be reached: said once, the group fails at once, what needs it not runs" {
    printf 'alpha address=127.0.0.1\ngone address=127.0.0.1\nmute address=127.0.0.1\n' > hosts
    suite '{bench: gather, number: [1, 2]}' '{bench: "null"}'
    told 4 "'gone' by ./rsh: rsh: *No route to host (status 255): 2 launches " over_hosts --host-wait 30s # what rsh printed
    [[ "$output" == *"'mute' "*" ./rsh "*"30 s"* ]]
    [ "$(cells status | sort -u)" = failed ]
    cells reason | grep -q "'gone'"
    [ "$(wc -l < called)" -eq 3 ]
    [ "$(out=r/null.csv cells status | grep -c failed)" -eq 0 ]
}

@test "a build that differs, a program that is not there: named with the remedy before anything starts" {
    mkdir -p other/gamma
    ln -s "$bin/plumb" other/gamma/plumb
    script other/gamma/plumb-gather <<END
#!/bin/sh
[ "\$1" = --version ] && { echo "plumb-gather 0.0.1 (fffffff, cc, -O)"; exit; }
exec "$work/bin/plumb-gather" "\$@"
END
    told 4 "'gamma' * 0.0.1 (fffffff), *: 1 launch " over_hosts
    cells reason | grep -q "'gamma' .*0.0.1"
    rm other/gamma/plumb-gather
    told 4 "plumb-gather' *'gamma' ($(uname -n)): *--remote-dir" over_hosts --out q
    rm other/gamma/plumb
    told 4 "bin/plumb' *'gamma': *--remote-dir" over_hosts --out p
}

@test "a clock that differs is told, and nothing is measured there" {
    mkdir -p other/beta
    ln -s "$work/bin/plumb-gather" other/beta/plumb-gather
    script other/beta/plumb <<END
#!/bin/sh
"$bin/plumb" "\$@" | sed -u "s/\"clock_s\":[0-9.]*/\"clock_s\":\$((\$(date +%s) + 100))/"
END
    run -4 over_hosts
    cells reason | grep -qE "clock of 'beta' .* (9[6-9]|10[0-2])(\.[0-9]+)? s"
    [ "$(grep -c . called)" -eq 4 ]
}

@test "a rank that never comes: rank 0 names it in the trial, and nothing long is started" {
    echo late > bin/act-3
    suite '{bench: gather, number: [1, 2]}'
    export FAKE_WAIT=40
    told 4 "'gather' *'alpha' * status 5: rank 0: plumb-gather: ranks 3 of 7 " over_hosts
    [ "$(cells status | sort | uniq -c | tr -s ' ')" = ' 2 failed' ]
    none_left
}

@test "rank 0's host is gone: the harness says so" {
    suite '{bench: gather, number: 1, budget: 20m, timeout: 20m, min-samples: 100000000, max-samples: 100000000, sleep: 10ms}'
    over_hosts > said 2>&1 &
    run_pid=$!
    until_running
    kill -KILL "$(agent_of 0)" # what stands for the connection
    reaped 4 "$run_pid"
    cells reason | grep -q "'alpha'"
    none_left
}

@test "a rank that ends while rank 0 says nothing of it: the harness names the host" {
    suite '{bench: gather, number: 1, budget: 20m, timeout: 20m, min-samples: 100000000, max-samples: 100000000, sleep: 10ms}'
    over_hosts > said 2>&1 &
    run_pid=$!
    until_running
    echo quiet > bin/act-6
    pkill -KILL -f "$work/bin/plumb-gather --np=7 --leader .* --rank 6"
    reaped 4 "$run_pid"
    cells reason | grep -q "'delta' .* 6 .* status 137"
    none_left
}

@test "killed in the middle: nothing is left on any host, and --resume goes on with the same hosts" {
    suite '{bench: gather, number: [1, 2, 3], budget: 1s, min-samples: 100000000, max-samples: 100000000, sleep: 10ms}'
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --remote-dir "$work/bin" --host-wait 5m --out r --no-report 3>&- &
    run_pid=$!
    in_time 600 eval "grep -qs '^done' r/plan.csv && pgrep -f '$work/bin/plumb-null --number'" > /dev/null
    kill -KILL "$run_pid"
    wait "$run_pid" || true
    none_left
    [ "$(grep -c '^done' r/plan.csv)" -lt 3 ]
    run -0 "$plumb" run --resume r --no-report
    [ "$(grep -c '^done' r/plan.csv)" -eq 3 ]
    [ "$(cells hosts | sort -u)" = 'alpha;beta;gamma;delta' ]
    none_left
    run -2 "$plumb" run --resume r --rsh ./other
}

@test "over the time-out: all ranks are gone, the launch is late" {
    suite '{bench: gather, number: 1, budget: 60s, timeout: 4s, min-samples: 100000000, max-samples: 100000000, sleep: 10ms}'
    run -4 over_hosts
    [ "$(cells code | sort -u) $(grep -c ^late r/plan.csv)" = 'timeout 1' ]
    none_left
}

hold_ports() { # hold_ports FROM TO: process $holder
    python3 - "$1" "$2" 3>&- <<'END' &
import socket, sys, time
held = []
for port in range(int(sys.argv[1]), int(sys.argv[2])):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1) # as who listens: what a run before left is no holder
    try:
        s.bind(("127.0.0.1", port)); s.listen(); held.append(s)
    except OSError:
        pass # somebody else holds it: as good
open("held", "w").close()
time.sleep(600)
END
    holder=$!
    while [ ! -e held ]; do sleep 0.2; done
}

@test "a port in use: another is taken" {
    hold_ports 22607 22615
    over_hosts --port 22600
    kill "$holder"
    grep -q 'taken' r/log/*
    [ "$(cells status | grep -c failed)" -eq 0 ]
}

@test "a dry run shows the command lines and starts nothing" {
    run -0 over_hosts --dry-run
    [ ! -e called ]
    [[ "$output" == *"./rsh alpha $work/bin/plumb-gather --np=7 --rank=0 --listen 127.0.0.1 --port="*" --secret-file=- --number 1"* ]]
    [[ "$output" == *"./rsh gamma $work/bin/plumb-gather --np=7 --leader 127.0.0.1 --port="*" --secret-file=- --rank=3..5"* ]]
}

by_mpirun() { # by_mpirun OPTIONS: what it says to the file `said`
    "$plumb" run t.yaml --hosts hosts --launcher mpirun --no-report --launcher-args '--oversubscribe' "$@" 2> said
}

@test "mpirun: all ranks are one job, slots by host; a job of which not all see each other is refused" {
    command -v mpirun > /dev/null || skip "no mpirun here"
    printf 'localhost slots=2\n%s\n' "$(uname -n)" > hosts
    by_mpirun --out r || { cat said r/log/*; cut -c1-600 r/*.csv; return 1; }
    grep -q ' mpirun: 1 .* 3 ranks on 2 hosts' said
    [ "$(cells status | grep -cE '^(ok|noisy)$')" -eq 1 ]
    [ "$(cells hosts)" = "localhost;$(uname -n)" ]
    [ -z "$(find tmp -name 'plumb.*')" ]
    suite '{bench: net, transport: tcp, pattern: latency, size: 8, no-cpu: "true"}' # a pair: both ends are ranks of one job
    ln -s "$bin/plumb-net" bin/plumb-net
    by_mpirun --out pair
    grep -q ' mpirun: 1 ' said
    out=pair/net.csv alike from localhost to "$(uname -n)"
    [ "$(out=pair/net.csv cells status | grep -cE '^(ok|noisy)$')" -ge 1 ]
    [ "$(python3 -c 'import json; print(json.load(open("pair/run.json"))["hosts"]["launcher"])')" = mpirun ]
    suite '{bench: gather, number: 1}'
    FAKE_SIZE=1 ends 4 by_mpirun --out q
    grep -q "'gather' .*: 1 of 3 ranks .*: 1 launch" said || {
        cat said q/log/*
        return 1
    }
}

@test "mpirun and srun: the command lines" {
    mkdir path
    printf '#!/bin/sh\necho "HYDRA build details:"\n' > path/mpirun
    printf '#!/bin/sh\n' > path/srun
    chmod +x path/mpirun path/srun
    export PATH="$work/path:$PATH"
    "$plumb" run t.yaml --hosts hosts --launcher mpirun --dry-run > planned
    grep -q 'mpirun -n 7 -hosts alpha:2,beta:1,gamma:3,delta:1 /' planned
    "$plumb" run t.yaml --hosts hosts --launcher srun --dry-run > planned
    grep -q 'srun -N4 -n7 --distribution=arbitrary --nodelist alpha,alpha,beta,gamma,gamma,gamma,delta --cpu-bind=none /' planned
    printf '#!/bin/sh\necho "mpirun (Open MPI) 4.1.4"\n' > path/mpirun
    "$plumb" run t.yaml --hosts hosts --launcher mpirun --dry-run > planned
    grep -q 'mpirun -np 7 --host alpha:2,beta:1,gamma:3,delta:1 --map-by slot --bind-to none /' planned
}

allreduce_here() { # the real one, or skip
    [ -x "$bin/plumb-allreduce" ] || skip "this build has no plumb-allreduce"
    ln -s "$bin/plumb-allreduce" bin/plumb-allreduce
    rm -r fake
    out=r/allreduce.csv
}

@test "plumb-allreduce over four hosts: communicators of 2, 4 and all ranks in one launch" {
    allreduce_here
    suite '{bench: allreduce, backend: ring, transport: tcp, size: 64K, no-cpu: "true"}'
    over_hosts
    [ "$(cells ranks | sort -nu | paste -sd ' ')" = '2 4 7' ]
    [ "$(cells hosts | sort -u)" = 'alpha;beta;gamma;delta' ]
    [ "$(cells status | grep -cE 'failed|wrong|skipped')" -eq 0 ]
    [ "$(wc -l < r/plan.csv)" -eq 2 ]
    none_left
}

# One case of 4 KiB, which takes so long unless somebody is lost.
endless() { # endless RANKS BUDGET
    suite "{bench: allreduce, backend: ring, transport: tcp, size: 4K, ranks: $1, budget: $2, timeout: 20m, no-cpu: \"true\", min-samples: 100000000, max-samples: 100000000}"
}

leads() { echo "^$work/bin/plumb-allreduce --np=7 --rank=0 --listen .*--size 4096 "; }

@test "plumb-allreduce: rank 0 is stopped: all others give it up, and the harness names it within 10 s" {
    allreduce_here
    endless 7 20m
    over_hosts > said 2>&1 &
    run_pid=$!
    until_at_work "$(leads)"
    # shellcheck disable=SC2154 # until_at_work sets it
    kill -STOP "$victim"
    begin=$SECONDS status=0
    wait "$run_pid" || status=$?
    echo "took $((SECONDS - begin)) s" && cat said r/log/*
    [ "$status" -eq 4 ]
    cells reason | grep -q "rank 0, on 'alpha', .* on '[a-z]*' rank [1-6]: .*rank 0 ("
    ((SECONDS - begin <= NAMED_S))
    none_left
}

@test "plumb-allreduce: a host that freezes whole is named within 10 s, rank 0's or another's" {
    allreduce_here
    # As ssh: what stands for the connection ends when it is told to, whatever its host does.
    cat > rsh <<'END'
#!/bin/bash
host=$1
shift
setsid sh -c "$*" <&0 &
echo $! >> "on-$host"
trap 'exit 255' TERM
wait $!
END
    endless 7 20m
    for host in alpha gamma; do
        rm -rf r
        over_hosts > said 2>&1 &
        run_pid=$!
        until_at_work "$(leads)"
        frozen=$(pgrep -s "$(paste -sd , "on-$host")")
        kill -STOP $frozen
        begin=$SECONDS status=0
        wait "$run_pid" || status=$?
        echo "took $((SECONDS - begin)) s" && cat said r/log/*
        kill -KILL $frozen
        [ "$status" -eq 4 ]
        ((SECONDS - begin <= NAMED_S))
        [ $host = gamma ] || cells reason | grep -q "rank 0, on 'alpha'"
        [ $host = alpha ] || cells reason | grep -q "rank [345] ("
        rm -rf tmp/*
        none_left
    done
}

@test "plumb-allreduce: a rank that no case needs is lost: all is measured, and the answer names it" {
    allreduce_here
    for signal in STOP KILL; do
        endless 2 "$([ $signal = STOP ] && echo 20s || echo 10s)"
        rm -rf r
        over_hosts > said 2>&1 &
        run_pid=$!
        until_at_work "$(leads)"
        pkill "-$signal" -f "^$work/bin/plumb-allreduce --np=7 --leader .* --rank 6$"
        reaped 0 "$run_pid" || { cat said r/log/* && cut -c 1-900 "$out" && return 1; }
        [ "$(cells status | grep -cE '^(ok|noisy)$')" -ge 3 ]
        [ "$(cells status | grep -cE 'failed|wrong|skipped')" -eq 0 ]
        cells reason | grep -q "rank 6 ("
        grep -q "plumb run: allreduce .*'alpha' rank 0: .*rank 6 (" said
        [ "$(grep -c '^done' r/plan.csv)" -eq 1 ]
        none_left
    done
}
