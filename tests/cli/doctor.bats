#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034,SC2154 # of variables that the files of this name share
# plumb doctor: its options, its output and its exit status, on machines of tests/machines.

load rows
load doctor

@test "this machine: an answer, nothing on stderr" {
    doctor
    [ "$status" -eq 0 ] || [ "$status" -eq 1 ] || [ "$status" -eq 3 ]
    [ ! -s "$err" ]
    [ -s "$out" ]
}

@test "nothing found on healthy machines: exit status 0" {
    for machine in kvm-virtio firecracker; do
        exits 0 doctor --sysroot "$machines/$machine/root"
        if grep -qE 'FINDINGS|DO FIRST' "$out"; then cat "$out" && false; fi
    done
}

@test "findings: the costliest first, each with cost and remedy, and three things to do" {
    exits 1 doctor --sysroot "$machines/downtrained/root"
    grep -q '(0000:3b:00.0): .*x8, 8.0 GT/s' "$out"
    says "$out" "cost    50 % "
    tr -s ' \n' ' ' <"$out" | grep -q "GPU.* (0000:67:00.0), .* (0000:68:00.0): ACS "
    grep -qE '^  4\.  processor: the governor' "$out"
    sed -n '/^DO FIRST/,$p' "$out" | grep -q '^  1\.  sudo setpci'
    [ "$(sed -n '/^DO FIRST/,$p' "$out" | grep -cE '^  [0-9]\.')" -eq 3 ]
    "$plumb" doctor --sysroot "$machines/downtrained/root" --json >"$out" || [ $? -eq 1 ]
    python3 - "$out" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
found = [r for r in d["results"] if r["state"] == "found"]
assert d["counts"]["found"] == len(found) > 8
def loss(r):
    c = r["cost"]
    if not c:
        return -1
    m = (c["low"] + c["high"]) / 2
    return m / (1 + m) if c["change"] == "longer" else m
disk = found.pop()  # no benchmark measures it
assert (disk["check"], disk["subject"]) == ("pcie-slot", "0000:01:00.0"), disk
assert [loss(r) for r in found] == sorted(map(loss, found), reverse=True)
assert all(c["source"].startswith("https://") for c in (r["cost"] for r in found)
           if c and c["basis"] == "cited")
assert d["machine"]["host"]["hostname"] == "box7"
END
}

@test "a run folder, a file of probe --json and one of doctor --json are examined alike" {
    tree=$machines/docker-quota/root run=$BATS_TEST_TMPDIR/run
    exits 1 doctor "$tree"
    cp "$out" "$out.tree"
    mkdir "$run"
    "$plumb" probe --sysroot "$tree" --json >"$BATS_TEST_TMPDIR/probe.json"
    python3 -c 'import json, sys; json.dump({"machine": json.load(sys.stdin)}, sys.stdout)' \
        <"$BATS_TEST_TMPDIR/probe.json" >"$run/run.json"
    "$plumb" doctor "$tree" --json >"$BATS_TEST_TMPDIR/doctor.json" || [ $? -eq 1 ]
    for of in "$run" "$BATS_TEST_TMPDIR/probe.json" "$BATS_TEST_TMPDIR/doctor.json"; do
        exits 1 doctor "$of"
        cmp "$out" "$out.tree"
    done
}

@test "--list and --explain: the checks for people" {
    exits 0 doctor --list
    grep -qE '^  governor +[A-Z].*\?$' "$out"
    if [ -x "${plumb%/*}/plumb-net" ]; then
        sed -n '/causes that --measure/I,$p' "$out" >"$BATS_TEST_TMPDIR/causes"
        grep -qE '^  congestion +BBR' "$BATS_TEST_TMPDIR/causes"
        grep -qE '^  strict-ordering ' "$BATS_TEST_TMPDIR/causes"
        grep -qE '^  cpu-quota ' "$BATS_TEST_TMPDIR/causes"
        [ "$(grep -c '^  one-queue ' "$BATS_TEST_TMPDIR/causes")" -eq 1 ]
    fi
    exits 0 doctor --explain acs
    for word in 'acs (bus)' 'more with   root' 'can slow    GPU peers, ' 'https://github.com/NVIDIA/nccl-tests/issues/112'; do
        says "$out" "$word"
    done
    if grep -qE '[|*]' "$out"; then cat "$out" && false; fi
    [ "$(grep -c question "$out")" -eq 1 ]
    doctor --explain congestion
    says "$out" "plumb doctor --measure=congestion"
    warned 2 "'governor'" doctor --explain governorr
}

@test "usage and damaged files" {
    warned 2 '"sys"' doctor --sysroot "$BATS_TEST_TMPDIR"
    exits 2 doctor "$BATS_TEST_TMPDIR/none"
    printf '{"machine": ' >"$BATS_TEST_TMPDIR/torn.json"
    exits 5 doctor "$BATS_TEST_TMPDIR/torn.json"
    echo '{}' >"$BATS_TEST_TMPDIR/empty.json"
    exits 5 doctor "$BATS_TEST_TMPDIR/empty.json"
    exits 2 doctor --nonsense
}

@test "two machines: the findings and facts that differ" {
    exits 0 doctor "$machines/nvlink-8gpu/root" "$machines/nvlink-8gpu/root"
    exits 1 doctor "$machines/kvm-virtio/root" "$machines/docker-quota/root"
    says "$out" "cpu-quota, processor"
    grep -q 'A  *fine' "$out"
    says "$out" "2.5 of 12 CPUs"
    grep -q 'host.clocksource: kvm-clock .*tsc' "$out"
    says "$out" "--json"
    exits 1 doctor "$machines/kvm-virtio/root" "$machines/docker-quota/root" --json
    python3 - "$out" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert [f["check"] for f in d["findings"]] == ["cpu-quota"], d["findings"]
facts = {f["path"]: (f["a"], f["b"]) for f in d["facts"]}
assert facts["virtualization.limits.cpu_quota"] == ("none", 2.5)
assert facts["pci.0000:01:00.0.kind"] == ("ethernet", "nvme")
assert not any(p.endswith("_why") or ".counters" in p or p.startswith("load") for p in facts)
assert d["numbers"] is None
END
}

@test "--hosts: one that cannot be reached is named, and the exit status is 4" {
    top=$PWD
    hosts_of_trees node0=kvm-virtio node1=kvm-virtio
    echo gone >>hosts
    exits 4 over_hosts
    says "$out" "2 of 3 hosts"
    says "$out" "'gone' by ./rsh: no route to host" # what rsh printed
    echo >hosts
    exits 2 over_hosts
    exits 2 over_hosts --sysroot trees/node0
}

@test "the remedy is one of where the limit is set: docker, podman, a pod, the process itself" {
    [ -d "$machines/docker-quota/root" ] || skip "make machines did not run"
    remedy() { # remedy TREE CHECK
        "$plumb" doctor --sysroot "$1" --json | jq -r '.results[] | select(.check == "'"$2"'" and .state == "found") | .remedy'
    }
    machines=$PWD/$machines
    cd "$BATS_TEST_TMPDIR"
    cp -r "$machines/docker-quota/root" pod
    rm pod/.dockerenv
    cp -r pod podman
    mkdir -p pod/run/secrets/kubernetes.io podman/run
    : >podman/run/.containerenv
    [[ "$(remedy "$machines/docker-quota/root" cpu-quota)" == "docker update --cpus"* ]]
    [[ "$(remedy podman cpu-quota)" == "podman update --cpus"* ]]
    [[ "$(remedy pod cpu-quota)" == *limits.cpu* ]]
    [ "$(remedy pod cpu-quota | grep -c 'systemctl\|sudo')" -eq 0 ]
}
