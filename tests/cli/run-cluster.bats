#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that run-hosts.bash sets
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
        printf '#!/bin/sh\necho %s\n' "$host" > "fake/$host/uname"
        chmod +x "fake/$host/uname"
    done
    printf 'alpha slots=2 address=127.0.0.1\nbeta address=127.0.0.1\ngamma:3 address=127.0.0.1\ndelta address=127.0.0.1\n' > hosts
    suite '{bench: gather, number: 1}'
}

suite() { # suite CASE...: t.yaml
    printf 'suite: t\nabout: a test\ndefaults: {repeat: 1, budget: 20ms, warmup: 20ms}\ncases:\n' > t.yaml
    printf '  - %s\n' "$@" >> t.yaml
}

left_over() { pgrep "$@" -f "$work/bin/plumb-"; }

none_left() { # within 12 s: a watcher asks, waits and kills
    for _ in $(seq 3000); do
        left_over > /dev/null || [ -n "$(ls tmp)" ] || return 0
        sleep 0.3
    done
    left_over -a
    ls tmp
    return 1
}

until_running() { # until plumb-null is measuring
    for _ in $(seq 3000); do
        pgrep -f "$work/bin/plumb-null --number" > /dev/null && return 0
        sleep 0.2
    done
    [ ! -e said ] || cat said
    tail -n 20 r*/log/* 2> /dev/null || true
    pgrep -f "$work/bin/" | paste -sd, | xargs -r ps -o pid,etimes,stat,args -p || true
    return 1
}

@test "a group runs over all hosts, slots ranks on each, in their order; rows and plan name them" {
    suite '{bench: gather, number: [1, 2], np: 2}'
    over_hosts 2> said
    grep -q ' ./rsh: 2 cases with 7 ranks on 4 hosts; .* 0 cases' said
    grep -q '7 ranks on 4 hosts' said
    [ "$(cells hosts | sort -u)" = 'alpha;beta;gamma;delta' ]
    [ "$(cells status | grep -cE '^(ok|noisy)$')" -eq 2 ]
    # Its --np is for this machine alone.
    grep -q 'alpha rank 0: plumb-gather: 7 ranks' r/log/1-1.txt
    # Its communicators are its own: those that it would have on this machine are none of the hosts'.
    [ "$(grep -c -e --ranks r/plan.csv)" -eq 0 ]
    python3 - <<'END'
import csv, json
plan = list(csv.DictReader(open("r/plan.csv")))
assert all((l["from"], l["to"], l["hosts"], l["state"]) == ("", "", "alpha;beta;gamma;delta", "done") for l in plan), plan
hosts = json.load(open("r/run.json"))["hosts"]
assert [h["slots"] for h in hosts["list"]] == [2, 1, 3, 1], hosts
who = [(int(r["rank"]), r["host"]) for r in hosts["ranks"]["gather"]]
assert who == [(0, "alpha"), (1, "alpha"), (2, "beta"), (3, "gamma"), (4, "gamma"), (5, "gamma"), (6, "delta")], who
one = hosts["list"][0]
assert abs(one["clock_offset_s"]) < 1 + one["clock_known_to_s"] and one["calls_itself"] == "alpha", one
assert one["versions"]["gather"].startswith("plumb-gather "), one
samples = list(csv.DictReader(open("r/samples/gather.csv")))
assert len(samples) == sum(int(r["samples"]) for r in csv.DictReader(open("r/gather.csv")))
END
    none_left
}

@test "the secret is on no command line and in no file" {
    cat > rsh <<'END'
#!/bin/sh
shift
echo "$*" >> commands
tee -a secrets | sh -c "$*"
END
    over_hosts
    # Five connections of the trial, five of the launch; a check has none.
    [ "$(grep -cE '^[0-9a-f]{64}$' secrets)" -eq 10 ]
    [ "$(sort -u secrets | wc -l)" -eq 2 ]
    while read -r secret; do
        [ "$(grep -cF "$secret" commands)" -eq 0 ]
        run grep -rlF "$secret" r tmp
        [ "$status" -eq 1 ]
    done < secrets
}

@test "a host that cannot be reached: said once, the group fails at once, what needs it not runs" {
    printf 'alpha address=127.0.0.1\ngone address=127.0.0.1\nmute address=127.0.0.1\n' > hosts
    suite '{bench: gather, number: [1, 2]}' '{bench: "null"}'
    run over_hosts --host-wait 30s
    [ "$status" -eq 4 ]
    [[ "$output" == *"'gone' by ./rsh: rsh: connect to host gone: No route to host (status 255): 2 launches "* ]]
    [[ "$output" == *"'mute' "*" ./rsh in 30 s"* ]]
    [ "$(cells status | sort -u)" = failed ]
    cells reason | grep -q "'gone'"
    [ "$(wc -l < called)" -eq 3 ]
    [ "$(out=r/null.csv cells status | grep -c failed)" -eq 0 ]
}

@test "a build that differs, a program that is not there: named with the remedy before anything starts" {
    mkdir -p other/gamma
    cat > other/gamma/plumb-gather <<END
#!/bin/sh
[ "\$1" = --version ] && { echo "plumb-gather 0.0.1 (fffffff, cc, -O)"; exit; }
exec "$work/bin/plumb-gather" "\$@"
END
    chmod +x other/gamma/plumb-gather
    run over_hosts
    [ "$status" -eq 4 ]
    [[ "$output" == *"'gamma' "*" 0.0.1 (fffffff), "*": 1 launch "* ]]
    cells reason | grep -q "'gamma' .*0.0.1"
    rm other/gamma/plumb-gather
    run over_hosts --out q
    [ "$status" -eq 4 ]
    [[ "$output" == *"plumb-gather' "*"'gamma' (gamma): "*"--remote-dir"* ]]
}

@test "a clock that differs is told, and nothing is measured there" {
    cat > fake/beta/date <<'END'
#!/bin/sh
echo $(($(/bin/date +%s) + 100)).000000000
END
    printf '#!/bin/sh\n/bin/date +%%s\n' > fake/gamma/date # one that does not know %N
    chmod +x fake/beta/date fake/gamma/date
    run over_hosts
    [ "$status" -eq 4 ]
    [[ "$output" == *"clock of 'beta' "*" s ahead "* ]]
    [[ "$output" != *"clock of 'gamma'"* ]]
    cells reason | grep -qE "clock of 'beta' is (9[6-9]|10[0-2])(\.[0-9]+)? s ahead"
    [ "$(grep -c . called)" -eq 4 ]
}

@test "a rank that never comes: rank 0 names it in the trial, and nothing long is started" {
    echo late > bin/act-3
    suite '{bench: gather, number: [1, 2]}'
    export FAKE_WAIT=40
    run over_hosts
    echo "$status: $output"
    [ "$status" -eq 4 ]
    [[ "$output" == *"'gather' "*"'alpha' "*" status 5: rank 0: plumb-gather: ranks 3 of 7 "* ]]
    [ "$(cells status | sort | uniq -c | tr -s ' ')" = ' 2 failed' ]
    none_left
}

@test "rank 0's host is gone: the harness says so" {
    suite '{bench: gather, number: 1, budget: 20m, timeout: 20m, min-samples: 100000000, max-samples: 100000000, sleep: 10ms}'
    over_hosts > said 2>&1 &
    run_pid=$!
    until_running
    # What stands for the connection: the shell that runs rank 0's script.
    pkill -KILL -f "^sh -c t=.* lead 0 1 $work/bin/"
    status=0
    wait "$run_pid" || status=$?
    [ "$status" -eq 4 ]
    cells reason | grep -q "connection to 'alpha' broke"
    pkill -f "$work/bin/plumb-" || true # a script that is killed hard leaves what it ran, as a host that is gone does
}

@test "a rank that ends while rank 0 says nothing of it: the harness names the host" {
    suite '{bench: gather, number: 1, budget: 20m, timeout: 20m, min-samples: 100000000, max-samples: 100000000, sleep: 10ms}'
    over_hosts > said 2>&1 &
    run_pid=$!
    until_running
    echo quiet > bin/act-6
    pkill -KILL -f "$work/bin/plumb-gather --np=7 --leader .* --rank 6"
    status=0
    wait "$run_pid" || status=$?
    [ "$status" -eq 4 ]
    cells reason | grep -q "'delta' .* 6 .* status 137"
    none_left
}

@test "killed in the middle: nothing is left on any host, and --resume goes on with the same hosts" {
    suite '{bench: gather, number: [1, 2, 3], budget: 1s, min-samples: 100000000, max-samples: 100000000, sleep: 10ms}'
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --remote-dir "$work/bin" --host-wait 5m --out r --no-report 3>&- &
    run_pid=$!
    for _ in $(seq 3000); do
        grep -qs '^done' r/plan.csv && pgrep -f "$work/bin/plumb-null --number" > /dev/null && break
        sleep 0.2
    done
    kill -KILL "$run_pid"
    wait "$run_pid" || true
    none_left
    [ "$(grep -c '^done' r/plan.csv)" -lt 3 ]
    run "$plumb" run --resume r --no-report
    [ "$status" -eq 0 ]
    [ "$(grep -c '^done' r/plan.csv)" -eq 3 ]
    [ "$(cells hosts | sort -u)" = 'alpha;beta;gamma;delta' ]
    none_left
}

@test "over the time-out: all ranks are gone, the launch is late" {
    suite '{bench: gather, number: 1, budget: 60s, timeout: 4s, min-samples: 100000000, max-samples: 100000000, sleep: 10ms}'
    run over_hosts
    [ "$status" -eq 4 ]
    cells reason | grep -q 'over its time-out of 4 s'
    [ "$(grep -c ^late r/plan.csv)" -eq 1 ]
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
    grep -q 'the port is taken' r/log/*
    [ "$(cells status | grep -c failed)" -eq 0 ]
}

@test "a dry run shows the command lines and starts nothing" {
    run over_hosts --dry-run
    [ "$status" -eq 0 ]
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
    grep -q ' mpirun: 1 case with 3 ranks on 2 hosts' said
    grep -q '3 ranks on 2 hosts see' said
    [ "$(cells status | grep -cE '^(ok|noisy)$')" -eq 1 ]
    [ "$(cells hosts)" = "localhost;$(uname -n)" ]
    [ -z "$(find tmp -name 'plumb.*')" ]
    status=0
    FAKE_SIZE=1 by_mpirun --out q || status=$?
    [ "$status" -eq 4 ]
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

@test "plumb-allreduce over four hosts: communicators of 1, 2, 4 and all ranks in one launch" {
    allreduce_here
    suite '{bench: allreduce, backend: ring, transport: tcp, size: 64K, no-cpu: "true"}'
    over_hosts
    [ "$(cells ranks | sort -nu | paste -sd ' ')" = '1 2 4 7' ]
    [ "$(cells hosts | sort -u)" = 'alpha;beta;gamma;delta' ]
    [ "$(cells status | grep -cE 'failed|wrong|skipped')" -eq 0 ]
    [ "$(wc -l < r/plan.csv)" -eq 2 ]
    none_left
}

@test "plumb-allreduce: a rank that is killed in the middle is named by rank 0, and the next case runs" {
    allreduce_here
    suite '{bench: allreduce, backend: ring, transport: tcp, size: 4K, ranks: 7, no-cpu: "true", budget: 20m, timeout: 20m, min-samples: 100000000, max-samples: 100000000}' \
        '{bench: allreduce, backend: ring, transport: tcp, size: 8K, ranks: 7, no-cpu: "true"}'
    over_hosts > said 2>&1 &
    run_pid=$!
    for _ in $(seq 3000); do
        pgrep -f "^$work/bin/plumb-allreduce .*--size 4096 " > /dev/null &&
            killed=$(pgrep -f "^$work/bin/plumb-allreduce --np=7 --leader .* --rank 4$") && at_work 30 "$killed" && break
        killed=
        sleep 0.2
    done
    [ -n "$killed" ]
    kill -KILL "$killed"
    status=0
    wait "$run_pid" || status=$?
    [ "$status" -eq 4 ]
    python3 - <<'END'
import csv
rows = list(csv.DictReader(open("r/allreduce.csv")))
bad = [r for r in rows if r["size"] == "4096"]
assert bad and all(r["status"] == "failed" for r in bad), bad
assert any("rank 4 (" in r["reason"] and r["code"] == "peer-lost" for r in bad), bad
assert {r["status"] for r in rows if r["size"] == "8192"} <= {"ok", "noisy"}, rows
END
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
        # shellcheck disable=SC2086 # some processes
        kill -STOP $frozen
        begin=$SECONDS status=0
        wait "$run_pid" || status=$?
        echo "took $((SECONDS - begin)) s" && cat said r/log/*
        # shellcheck disable=SC2086
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
        status=0
        wait "$run_pid" || status=$?
        cat said r/log/* && cut -c 1-900 "$out"
        [ "$status" -eq 0 ]
        [ "$(cells status | grep -cE '^(ok|noisy)$')" -ge 3 ]
        [ "$(cells status | grep -cE 'failed|wrong|skipped')" -eq 0 ]
        cells reason | grep -q "rank 6 ("
        grep -q "plumb run: allreduce .*'alpha' rank 0: .*rank 6 (" said
        [ "$(grep -c '^done' r/plan.csv)" -eq 1 ]
        none_left
    done
}

@test "all pairs come as a tournament: launches of one bout share no host; many hosts are sampled" {
    for i in 1 2 3 4 5 6; do echo "n$i address=127.0.0.1"; done > hosts
    suite '{bench: net, transport: tcp, pattern: latency, size: 8, between: all}'
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --dry-run > planned 2> said
    grep -q '1 case over 15 pairs in 5 bouts' said
    python3 - <<'END'
import csv
pairs = [(l["from"], l["to"]) for l in csv.DictReader(open("planned"))]
assert len(set(pairs)) == 15
for i in range(0, 15, 3):
    assert len({h for p in pairs[i:i + 3] for h in p}) == 6, pairs[i:i + 3]
END
    for i in $(seq 40); do echo "n$i address=127.0.0.1"; done > hosts
    suite '{bench: net, transport: tcp, pattern: latency, size: 8, between: sample}'
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --dry-run > planned
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --dry-run > again
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --seed 2 --dry-run > other
    cmp planned again
    python3 - <<'END'
import csv
def pairs(name):
    return {frozenset((int(l["from"][1:]), int(l["to"][1:]))) for l in csv.DictReader(open(name))}
p = pairs("planned")
assert 130 <= len(p) <= 160, len(p)
assert all(frozenset((i, i % 40 + 1)) in p for i in range(1, 41))
assert all(6 <= sum(h in q for q in p) <= 8 for h in range(1, 41))
assert p != pairs("other")
END
}
