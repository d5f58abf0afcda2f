#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run --hosts: both ends started by a stand-in for ssh, which runs the command here; by mpirun where there is one.

load rows
load processes
load run-hosts

# takes: host-ports
# takes: spinners
# waits: for ends that do not come

@test "what is told of hosts is of the cases that --only keeps" {
    printf '  - {bench: net, transport: shm, pattern: latency, size: [8, 4K], between: none}\n' >> t.yaml
    over_hosts --dry-run 2> said > plan
    grep -q ' ./rsh: 2 .* 1 pair; .* 2 ' said
    over_hosts --dry-run --only 'tcp*size 8 ' 2> said > plan
    grep -q ' ./rsh: 1 .* 1 pair; .* 0 ' said
    over_hosts --dry-run --only 'shm*size 4K' 2> said > plan
    [ "$(wc -l < plan)" -eq 2 ]
}

@test "a case runs between two hosts: rows, samples and both hosts are kept" {
    over_hosts 2> said
    grep -q ' ./rsh: 2 .* 1 pair; .* 0 ' said
    alike from alpha to beta
    cells status | grep -qE '^(ok|noisy)$'
    [ "$(cells status | grep -cE 'failed|wrong|skipped')" -eq 0 ]
    python3 - <<'END'
import csv, json, statistics
rows = list(csv.DictReader(open("r/net.csv")))
samples = {}
for s in csv.DictReader(open("r/samples/net.csv")):
    samples.setdefault(s["case"], []).append(float(s["value"]))
for row in rows:
    own = samples[row["case"]]
    assert len(own) == int(row["samples"]), (len(own), row["samples"])
    assert abs(statistics.median(own) - float(row["value"])) < 1e-6 * float(row["value"])
plan = list(csv.DictReader(open("r/plan.csv")))
assert all((l["from"], l["to"], l["state"]) == ("alpha", "beta", "done") for l in plan), plan
hosts = json.load(open("r/run.json"))["hosts"]
assert hosts["launcher"] == "ssh" and hosts["rsh"] == "./rsh"
assert all(h["version"].startswith("plumb-net ") for h in hosts["list"]), hosts
END
    none_left
    [ -z "$(ls tmp)" ]
}

@test "a number that is no address is refused as a host, unless its address is given; so is 0.0.0.0/8" {
    local name
    for name in 0131 10.1 user@017 0.0.0.89; do
        printf 'alpha address=127.0.0.1\n%s\n' "$name" > hosts
        told 2 "hosts:2: '${name#*@}'" "$plumb" run t.yaml --hosts hosts --rsh ./rsh --dry-run
    done
    printf 'alpha address=127.0.0.1\n0131 address=127.0.0.1\n' > hosts
    run -0 "$plumb" run t.yaml --hosts hosts --rsh ./rsh --dry-run
}

@test "two names of one machine: a warning says so" {
    local address
    address=$(ip -4 -o address show scope global | awk '{ sub("/.*", "", $4); print $4; exit }')
    [ -n "$address" ] || skip "this machine has no address but loopback"
    printf 'alpha address=%s\nbeta address=%s\n' "$address" "$address" > hosts
    told 0 "warning: 'alpha' and 'beta' *$address" "$plumb" run t.yaml --hosts hosts --rsh ./rsh --only 'tcp*size 8 ' --out two
}

@test "the secret is on no command line and in no file" {
    secrets_of 2 1 over_hosts --only '*--size 8*'
}

@test "a hosts file that is wrong is refused before anything is measured" {
    printf 'alpha\nbeta slts=2\n' > hosts
    told 2 "hosts:2: *'slts=2', *'slots'" over_hosts
    printf 'alpha address=127.0.0.1\n' > hosts
    told 2 "'hosts'" over_hosts
    printf 'alpha.invalid\nbeta.invalid\n' > hosts
    told 2 "'alpha.invalid': " over_hosts
    rm hosts
    told 2 "'hosts'" over_hosts
    run -2 "$plumb" run t.yaml --launcher srun
    run -2 "$plumb" run t.yaml --rsh ./rsh
    [ ! -e r ]
}
