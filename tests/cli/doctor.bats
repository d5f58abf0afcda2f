#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb doctor: its options, its output and its exit status, on machines of tests/machines.

setup_file()
{
    make -s -C "$BATS_TEST_DIRNAME/../.." machines
}

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    plumb=${PLUMB:-build/bin/plumb} machines=build/machines
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
}

# doctor ARGUMENTS...: sets status, and leaves stdout and stderr in $out and $err.
doctor()
{
    status=0
    "$plumb" doctor "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# says FILE TEXT: FILE has the text, or we see FILE.
says()
{
    grep -qF -- "$2" "$1" || { echo "no \"$2\" in:" && cat "$1" && false; }
}

# found CHECK: how many findings it has in $out, which is of --json.
found()
{
    python3 -c 'import json, sys; print(sum(r["check"] == sys.argv[2] and r["state"] == "found"
        for r in json.load(open(sys.argv[1]))["results"]))' "$out" "$1"
}

# narrow COLUMNS COMMAND...: on a terminal of that width
narrow()
{
    local columns=$1
    shift
    script -qec "stty cols $columns; $*" /dev/null | tr -d '\r'
}

@test "this machine: an answer, nothing on stderr" {
    doctor
    [ "$status" -eq 0 ] || [ "$status" -eq 1 ] || [ "$status" -eq 3 ]
    [ ! -s "$err" ]
    grep -qE 'nothing found|[0-9]+ finding' "$out"
}

@test "nothing found on healthy machines: exit status 0" {
    for machine in kvm-virtio firecracker; do
        doctor --sysroot "$machines/$machine/root"
        [ "$status" -eq 0 ]
        says "$out" "nothing found"
        if grep -qE 'FINDINGS|DO FIRST' "$out"; then cat "$out" && false; fi
    done
}

@test "GPUs of which nothing is known: said in the second line, exit status 3" {
    for machine in nvlink-8gpu esxi-pvrdma; do
        doctor --sysroot "$machines/$machine/root"
        [ "$status" -eq 3 ]
        grep -qE '^nothing found, but [0-9]+ of [0-9]+ results are not known: the GPUs were not examined$' "$out" ||
            { cat "$out" && false; }
        says "$out" "NOT KNOWN, and it matters"
        grep -A 2 -F "  NVML cannot be asked about a recorded machine" "$out" | grep -q gpu-mode
        says "$out" "since this record lacks facts: plumb doctor"
        if grep -qE 'FINDINGS|sudo' "$out"; then cat "$out" && false; fi
    done
}

@test "what is not known is grouped by its reason" {
    doctor --sysroot "$machines/nvlink-8gpu/root"
    grep -A 1 "configuration is readable by root only" "$out" | grep -qF "read-request (11), relaxed-ordering (3)"
    grep -A 1 -x "  not recorded" "$out" | grep -q "settings"
    [ "$(grep -c 'NVML cannot be asked' "$out")" -eq 1 ]
}

@test "findings: the costliest first, each with cost and remedy, and three things to do" {
    doctor --sysroot "$machines/downtrained/root"
    [ "$status" -eq 1 ]
    says "$out" "GPU NVIDIA A10 (0000:3b:00.0): the link runs at x8, 8.0 GT/s; both ends could do x16, 16.0"
    says "$out" "cost    50 % of the bandwidth of the PCIe link (computed: at least 1 - 8/16 lanes)"
    tr -s ' \n' ' ' <"$out" | grep -q "each of GPU.* (0000:67:00.0), .* (0000:68:00.0): ACS sends"
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
    doctor "$tree"
    [ "$status" -eq 1 ]
    cp "$out" "$out.tree"
    mkdir "$run"
    "$plumb" probe --sysroot "$tree" --json >"$BATS_TEST_TMPDIR/probe.json"
    python3 -c 'import json, sys; json.dump({"machine": json.load(sys.stdin)}, sys.stdout)' \
        <"$BATS_TEST_TMPDIR/probe.json" >"$run/run.json"
    "$plumb" doctor "$tree" --json >"$BATS_TEST_TMPDIR/doctor.json" || [ $? -eq 1 ]
    for of in "$run" "$BATS_TEST_TMPDIR/probe.json" "$BATS_TEST_TMPDIR/doctor.json"; do
        doctor "$of"
        [ "$status" -eq 1 ]
        cmp "$out" "$out.tree"
    done
}

@test "what matters and is not known: exit status 3, and the right that would tell" {
    python3 - >"$BATS_TEST_TMPDIR/m.json" <<'END'
import json
why = "the ports' configuration is readable by root only"
def device(address, kind, group):
    return {"address": address, "kind": kind, "nature": "physical", "driver": "nvidia",
            "iommu_group": group, "iommu_type": "identity",
            "acs_redirect": None, "acs_redirect_why": why}
print(json.dumps({
    "probe_schema": 3, "cpu": {"threads": 8},
    "virtualization": {"guest": False, "hypervisor": "none",
                       "limits": {"cpu_quota": "none", "allowed_cpus": "0-7"}},
    "pci": [device("0000:18:00.0", "gpu", 24), device("0000:19:00.0", "infiniband", 25)],
    "proximity": [{"gpu": "0000:18:00.0", "nic": "0000:19:00.0", "relation": "PIX"}]}))
END
    doctor "$BATS_TEST_TMPDIR/m.json"
    [ "$status" -eq 3 ]
    says "$out" "NOT KNOWN, and it matters"
    says "$out" "the ports' configuration is readable by root only"
    says "$out" "more with root: the access control (ACSCtl) of each port"
    says "$out" "on that machine, since this record lacks facts: sudo plumb doctor"
}

@test "the output fits 60, 80 and 160 columns" {
    command -v script >/dev/null || skip "needs script"
    for columns in 60 80 160; do
        narrow $columns "$plumb" doctor --sysroot "$machines/downtrained/root" >"$out"
        says "$out" "DO FIRST"
        awk -v columns=$columns 'length($0) > columns && $0 !~ /(https|\/sys):?\/[^ ]*/ {
            print; bad = 1 } END { exit bad }' "$out"
    done
}

@test "three findings or fewer are not repeated as things to do first" {
    doctor --sysroot "$machines/docker-quota/root"
    [ "$status" -eq 1 ]
    says "$out" "1 finding"
    says "$out" "a docker container on bare metal"
    [ "$(grep -c 'not there' "$out")" -eq 1 ]
    if grep -q "DO FIRST" "$out"; then cat "$out" && false; fi
}

@test "the help fits 60 columns" {
    command -v script >/dev/null || skip "needs script"
    narrow 60 "$plumb" doctor --help >"$out"
    says "$out" "plumb doctor --hosts FILE"
    awk 'length($0) > 60 { print; bad = 1 } END { exit bad }' "$out"
}

@test "--list and --explain: the checks for people" {
    doctor --list
    [ "$status" -eq 0 ]
    grep -qE '^  governor +[A-Z].*\?$' "$out"
    if grep -q "seen by" "$out"; then false; fi
    if [ -x "${plumb%/*}/plumb-net" ]; then
        sed -n '/causes that --measure/I,$p' "$out" >"$BATS_TEST_TMPDIR/causes"
        grep -qE '^  congestion +BBR in place of CUBIC' "$BATS_TEST_TMPDIR/causes"
        grep -qE '^  strict-ordering ' "$BATS_TEST_TMPDIR/causes"
        grep -qE '^  cpu-quota ' "$BATS_TEST_TMPDIR/causes"
        [ "$(grep -c '^  one-queue ' "$BATS_TEST_TMPDIR/causes")" -eq 1 ]
    fi
    doctor --explain acs
    [ "$status" -eq 0 ]
    for word in 'acs (bus)' 'more with   root' 'can slow    GPU peers, ' \
        'If this is not known, the exit status is 3.' \
        'https://github.com/NVIDIA/nccl-tests/issues/112'; do
        says "$out" "$word"
    done
    if grep -qE '[|*]' "$out"; then cat "$out" && false; fi
    [ "$(grep -c question "$out")" -eq 1 ]
    doctor --explain congestion
    says "$out" "plumb doctor --measure=congestion"
    doctor --explain governorr
    [ "$status" -eq 2 ]
    says "$err" "did you mean 'governor'?"
}

@test "a check that says how it is measured is a cause of --measure" {
    [ -x "${plumb%/*}/plumb-net" ] && [ -x "${plumb%/*}/plumb-gemm" ] || skip "needs the benchmarks"
    doctor --measure=nothing
    [ "$status" -eq 2 ]
    for id in congestion cpu-quota idle-states other-load settings steal; do
        grep -qE " $id( |\$)" "$err" || { cat "$err" && false; }
        "$plumb" doctor --explain $id | grep -qF -- "--measure=$id"
    done
}

@test "usage and damaged files" {
    doctor --sysroot "$BATS_TEST_TMPDIR"
    [ "$status" -eq 2 ]
    says "$err" 'holds neither "sys" nor "proc"'
    doctor "$BATS_TEST_TMPDIR/none"
    [ "$status" -eq 2 ]
    printf '{"machine": ' >"$BATS_TEST_TMPDIR/torn.json"
    doctor "$BATS_TEST_TMPDIR/torn.json"
    [ "$status" -eq 5 ]
    echo '{}' >"$BATS_TEST_TMPDIR/empty.json"
    doctor "$BATS_TEST_TMPDIR/empty.json"
    [ "$status" -eq 5 ]
    doctor --nonsense
    [ "$status" -eq 2 ]
    if "$plumb" doctor >/dev/full 2>"$err"; then false; else [ $? -eq 4 ]; fi
    says "$err" "cannot write the whole output"
}

@test "two machines: the findings and facts that differ" {
    doctor "$machines/nvlink-8gpu/root" "$machines/nvlink-8gpu/root"
    [ "$status" -eq 0 ]
    says "$out" "no finding differs"
    doctor "$machines/kvm-virtio/root" "$machines/docker-quota/root"
    [ "$status" -eq 1 ]
    says "$out" "cpu-quota, processor"
    says "$out" "A  fine"
    says "$out" "B  the control group allows the time of 2.5 of 12 CPUs"
    says "$out" "host.clocksource: kvm-clock against tsc"
    says "$out" "that only one side recorded: --json lists them"
    [ "$(grep -c 'not there' "$out")" -eq 0 ]
    doctor "$machines/kvm-virtio/root" "$machines/docker-quota/root" --json
    [ "$status" -eq 1 ]
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

# record FILE DAYS CHANGES REPLAYS: of one machine, so many days after its boot.
record()
{
    python3 - "$out" "$@" <<'END'
import json, sys
record = json.load(open(sys.argv[1]))
machine, (days, changes, replays) = record["machine"], map(float, sys.argv[3:])
machine["load"]["uptime_seconds"] = days * 86400
machine["network"][0]["counters"]["carrier_changes"] = changes
machine["gpus"]["nvml"] = True
machine["gpus"]["devices"][0].update(persistence_mode=True, pcie={"replays": replays})
json.dump(record, open(sys.argv[2], "w"))
END
}

@test "two records of one boot: how the counters grew of which one does not tell when" {
    local a=$BATS_TEST_TMPDIR/a.json b=$BATS_TEST_TMPDIR/b.json
    doctor --sysroot "$machines/nvlink-8gpu/root" --json
    cp "$out" "$BATS_TEST_TMPDIR/first"
    record "$a" 400 100 3900
    record "$b" 400.0625 112 3900
    doctor "$a" "$b"
    [ "$status" -eq 1 ]
    says "$out" "its line went up or down 12 times within 5400 s"
    says "$out" "COUNTERS in 1.5 hours"
    says "$out" "link-flaps, eno1: carrier_changes: 12 more, of 112"
    says "$out" "gpu-replays, 0000:18:00.0: replays: 0 more, of 3900"
    doctor "$a" "$b" --json
    python3 -c 'import json, sys
counters = json.load(open(sys.argv[1]))["counters"]
assert {(c["check"], c["a"], c["b"]) for c in counters} == {
    ("link-flaps", 100, 112), ("gpu-replays", 3900, 3900)}, counters' "$out"
    # The other way round, of another boot, and of a boot that was not recorded.
    doctor "$b" "$a" --json
    says "$out" '"counters": null'
    for boot in '"boot": "other"' '"no_boot": ""'; do
        sed "s/\"boot\": \"[0-9a-f]*\"/$boot/" "$b" >"$b.other"
        doctor "$a" "$b.other" --json
        says "$out" '"counters": null'
        doctor "$a" "$b.other"
        [ "$(grep -c COUNTERS "$out")" -eq 0 ]
    done
}

# lossy FILE DAYS MISSED PACKETS: of one machine, so many packets that came while its ring was full.
lossy()
{
    python3 - "$BATS_TEST_TMPDIR/first" "$@" <<'END'
import json, sys
record = json.load(open(sys.argv[1]))
machine, (days, missed, packets) = record["machine"], map(float, sys.argv[3:])
machine["load"]["uptime_seconds"] = days * 86400
machine["load"].pop("watched_seconds", None)
for nic in machine["network"]:
    nic.pop("grown", None)
machine["network"][0]["counters"].update(rx_missed_errors=int(missed), rx_packets=int(packets))
json.dump(record, open(sys.argv[2], "w"))
END
}

@test "two records of one boot: what was lost between them is found, what was lost before is not" {
    local a=$BATS_TEST_TMPDIR/a.json b=$BATS_TEST_TMPDIR/b.json
    doctor --sysroot "$machines/nvlink-8gpu/root" --json
    cp "$out" "$BATS_TEST_TMPDIR/first"
    lossy "$a" 10 50000 1e9
    doctor "$a"
    [ "$status" -eq 3 ]
    says "$out" "packets came while its ring was full, in 10 days: when they came is unknown"
    # An hour and 2e6 packets later: none more, and 4000 more.
    lossy "$b" 10.0416666667 50000 1.002e9
    doctor "$a" "$b"
    [ "$status" -eq 0 ]
    lossy "$b" 10.0416666667 54000 1.002e9
    doctor "$a" "$b"
    [ "$status" -eq 1 ]
    says "$out" "4000 of 2000000 packets came while its ring was full, within 3600 s"
    says "$out" "rx_missed_errors: 4000 more, of 54000"
    # Of another boot, nothing is known of the time between.
    sed -i 's/"boot": "[0-9a-f]*"/"boot": "other"/' "$b"
    doctor "$a" "$b"
    [ "$status" -eq 0 ]
}

@test "counters are read twice: --watch, and 0 for once" {
    doctor --json --watch 0
    [ "$(grep -c '"watched_seconds": [0-9]' "$out")" -eq 0 ]
    doctor --json --watch 300ms
    python3 -c 'import json, sys
assert 0.25 < json.load(open(sys.argv[1]))["machine"]["load"]["watched_seconds"]' "$out"
}

@test "two runs: the numbers that differ, and the findings that can explain them" {
    python3 tests/cli/make_runs.py "$BATS_TEST_TMPDIR/a" --fact memory.transparent_huge_pages.enabled=madvise
    python3 tests/cli/make_runs.py "$BATS_TEST_TMPDIR/b" --seed 2 --shift 'memory *=0.7' \
        --fact memory.transparent_huge_pages.enabled=never --fact host.clocksource=tsc
    doctor "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
    [ "$status" -eq 1 ]
    says "$out" "huge-pages, memory"
    sed -n '/^NUMBERS/,/^FACTS/p' "$out" >"$out.numbers"
    grep -qE 'Memory: of [0-9]+ cases [1-9][0-9]* worse, 0 better in B' "$out.numbers"
    grep -qE 'may explain worse +huge-pages \(B only\)' "$out.numbers"
    says "$out" "memory.transparent_huge_pages.enabled: madvise against never"
    # what only the side with the higher figures has explains no loss
    doctor "$BATS_TEST_TMPDIR/b" "$BATS_TEST_TMPDIR/a"
    grep -qE 'may explain better +huge-pages \(A only\)' "$out"
    python3 tests/cli/make_runs.py "$BATS_TEST_TMPDIR/c" --seed 2 --shift 'memory *=0.7' \
        --fact memory.transparent_huge_pages.enabled=madvise
    python3 tests/cli/make_runs.py "$BATS_TEST_TMPDIR/d" --fact memory.transparent_huge_pages.enabled=never
    doctor "$BATS_TEST_TMPDIR/d" "$BATS_TEST_TMPDIR/c"
    grep -qE 'may explain worse +no finding that differs' "$out"
    grep -qE 'works against it +huge-pages \(A only\)' "$out"
    "$plumb" compare "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b" >"$out" || [ $? -eq 1 ]
    says "$out" "possible cause in Memory: found in B alone: memory: transparent huge pages are off"
}

# hosts_of_trees HOST=MACHINE...: hosts by a stand-in for ssh; plumb on each of them sees a copy of the machine's tree.
hosts_of_trees()
{
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir bin trees
    for pair; do
        cp -r "$top/$machines/${pair#*=}/root" "trees/${pair%%=*}"
        echo "${pair%%=*}" >>hosts
    done
    cat >rsh <<END
#!/bin/sh
host=\$1
shift
[ "\$host" != gone ] || { echo "no route to host" >&2; exit 255; }
HOST=\$host exec sh -c "\$*"
END
    cat >bin/plumb <<END
#!/bin/sh
[ "\$1" = --version ] && exec "$top/$plumb" --version
exec "$top/$plumb" "\$@" --sysroot "$BATS_TEST_TMPDIR/trees/\$HOST"
END
    chmod +x rsh bin/plumb
}

# over_hosts ARGUMENTS...
over_hosts()
{
    status=0
    "$top/$plumb" doctor --hosts hosts --rsh ./rsh --remote-dir "$BATS_TEST_TMPDIR/bin" "$@" >"$out" 2>"$err" ||
        status=$?
}

@test "--hosts: asks all at once, names those that differ from the others and their findings" {
    top=$PWD
    hosts_of_trees node0=kvm-virtio node1=kvm-virtio node2=kvm-virtio node3=kvm-virtio node4=kvm-virtio
    over_hosts
    [ "$status" -eq 0 ]
    says "$out" "5 of 5 hosts answered, asked by ./rsh"
    says "$out" "nothing found"
    grep -qE '^nothing found, but [0-9]+ of [0-9]+ results are not known$' "$out"
    if grep -q "DIFFER" "$out"; then cat "$out" && false; fi

    nic=$(find trees/node2/sys/devices -path '*/net/*' -name mtu ! -path '*/lo/*' | head -n 1)
    echo 1400 >"$nic"
    quota=$(find trees/node4/sys/fs/cgroup -name cpu.max | sort | tail -n 1)
    echo '100000 100000' >"$quota"
    over_hosts
    [ "$status" -eq 1 ]
    grep -qE 'network\.[a-z0-9]+\.mtu: 1400; 4 of 5 hosts: 1500' "$out"
    says "$out" "virtualization.limits.cpu_quota: 1.0; 4 of 5 hosts: none"
    says "$out" "1.  node4: cpu-quota, processor"
    says "$out" "5 of 5 hosts: the variables of your job are not seen"
    grep -A 2 "variables of your job" "$out" | grep -q "settings, threads"
    grep -qE '^1 finding, and [0-9]+ of [0-9]+ results are not known$' "$out"
    says "$out" "75 % of the CPU throughput of all threads (computed: 1 - 1/4 CPUs)"
    over_hosts --json
    python3 - "$out" <<'END'
import json, sys
hosts = json.load(open(sys.argv[1]))["hosts"]
odd = {h["host"]: [f["path"] for f in h["differs"]] for h in hosts if h["differs"]}
assert list(odd) == ["node2", "node4"], odd
assert odd["node4"] == ["virtualization.limits.cpu_quota"]
assert [h["exam"]["counts"]["found"] for h in hosts if h["host"] != "node2"] == [0, 0, 0, 1]
END
}

@test "--hosts: this machine is asked without ssh, and the head says so" {
    echo localhost >"$BATS_TEST_TMPDIR/here"
    doctor --hosts "$BATS_TEST_TMPDIR/here" --rsh false
    [ "$status" -ne 2 ] && [ "$status" -ne 4 ]
    [ "$(head -n 1 "$out")" = "1 of 1 host answered; this machine is asked directly" ] || { cat "$out" && false; }
}

@test "--hosts: one that cannot be reached is named, and the exit status is 4" {
    top=$PWD
    hosts_of_trees node0=kvm-virtio node1=kvm-virtio
    echo gone >>hosts
    over_hosts
    [ "$status" -eq 4 ]
    says "$out" "2 of 3 hosts answered"
    says "$out" "that takes three hosts"
    says "$out" "cannot reach 'gone' by ./rsh: no route to host"
    echo >hosts
    over_hosts
    [ "$status" -eq 2 ]
    over_hosts --sysroot trees/node0
    [ "$status" -eq 2 ]
}

@test "what NVML tells of a GPU: MIG, memory errors, lost lanes, and clocks that are held down" {
    load ../sim/env
    local good=$BATS_TEST_TMPDIR/good.conf bad=$BATS_TEST_TMPDIR/bad.conf id
    printf '[machine]\ngpus = 1\n[gpu]\nname = Simulated GPU\npcie_width = 16\npcie_width_max = 16\n' >"$good"
    simulate_nvml "$good"
    doctor --json
    for id in gpu-mig gpu-memory gpu-lanes gpu-throttle gpu-held; do [ "$(found "$id")" -eq 0 ]; done
    sed 's/^pcie_width = .*/pcie_width = 4/' "$good" >"$bad"
    printf 'mig = yes\necc_uncorrected = 3\nheld_reliability_s = 1e9\n' >>"$bad"
    simulate_nvml "$bad"
    fault throttle:gpu=0:reason=power_brake:factor=0.5
    doctor --json
    [ "$status" -eq 1 ]
    for id in gpu-mig gpu-memory gpu-lanes gpu-throttle; do [ "$(found "$id")" -ge 1 ]; done
    # Since a boot of today it is found; since an older one it may be long ago.
    python3 - "$out" <<'END'
import json, sys
told = json.load(open(sys.argv[1]))
held, = [r for r in told["results"] if r["check"] == "gpu-held"]
today = 600 <= told["machine"]["load"]["uptime_seconds"] <= 86400
assert held["state"] == ("found" if today else "unknown"), held
END
}

@test "under a launcher: the local rank, and the CPUs of all ranks of the host" {
    local cpus
    cpus=$(taskset -pc $$ | sed 's/.*: //; s/,.*//; s/-.*//')
    # shellcheck disable=SC2016 # expanded by that bash
    bash -c 'for r in 0 1 2; do
        OMPI_COMM_WORLD_LOCAL_RANK=$r OMPI_COMM_WORLD_LOCAL_SIZE=3 CUDA_VISIBLE_DEVICES=$r \
            taskset -c "$2" "$0" doctor --json >"$1.$r" &
    done; wait' "$plumb" "$out" "$cpus"
    python3 - "$out" "$cpus" <<'END'
import json, sys
for r in range(3):
    rank = json.load(open(f"{sys.argv[1]}.{r}"))["machine"]["rank"]
    assert rank == {"local": r, "by": "OMPI_COMM_WORLD_LOCAL_RANK", "visible_devices": str(r),
                    "local_size": 3, "peers": [sys.argv[2]] * 3}, rank
END
    OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=4 "$plumb" doctor --json >"$out" || [ $? -eq 1 ] || [ $? -eq 3 ]
    says "$out" "1 of 4 processes of this host were seen"
    SLURM_LOCALID=0 "$plumb" doctor --json >"$out" || [ $? -eq 1 ] || [ $? -eq 3 ]
    if grep -q '"rank": {' "$out"; then false; fi
}
