#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2034,SC2154 # of variables that the files of this name share
# plumb doctor: its options, its output and its exit status, on machines of tests/machines.

load rows
load doctor

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
    exits 3 doctor "$a"
    says "$out" "10 days"
    # An hour and 2e6 packets later: none more, and 4000 more.
    lossy "$b" 10.0416666667 50000 1.002e9
    exits 0 doctor "$a" "$b"
    lossy "$b" 10.0416666667 54000 1.002e9
    exits 1 doctor "$a" "$b"
    says "$out" "4000 of 2000000 packets"
    grep -q 'rx_missed_errors: 4000 .*54000' "$out"
    # Of another boot, nothing is known of the time between.
    sed -i 's/"boot": "[0-9a-f]*"/"boot": "other"/' "$b"
    exits 0 doctor "$a" "$b"
}

@test "two runs: the numbers that differ, and the findings that can explain them" {
    python3 tests/cli/make_runs.py "$BATS_TEST_TMPDIR/a" --fact memory.transparent_huge_pages.enabled=madvise
    python3 tests/cli/make_runs.py "$BATS_TEST_TMPDIR/b" --seed 2 --shift 'memory *=0.7' \
        --fact memory.transparent_huge_pages.enabled=never --fact host.clocksource=tsc
    exits 1 doctor "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
    says "$out" "huge-pages, memory"
    sed -n '/^NUMBERS/,/^FACTS/p' "$out" >"$out.numbers"
    grep -qE 'Memory: .*[1-9][0-9]* worse, 0 better' "$out.numbers"
    grep -qE ' huge-pages \(B' "$out.numbers"
    grep -q "memory.transparent_huge_pages.enabled: madvise .*never" "$out"
    # what only the side with the higher figures has explains no loss
    doctor "$BATS_TEST_TMPDIR/b" "$BATS_TEST_TMPDIR/a"
    grep -qE 'better +huge-pages \(A' "$out"
    python3 tests/cli/make_runs.py "$BATS_TEST_TMPDIR/c" --seed 2 --shift 'memory *=0.7' \
        --fact memory.transparent_huge_pages.enabled=madvise
    python3 tests/cli/make_runs.py "$BATS_TEST_TMPDIR/d" --fact memory.transparent_huge_pages.enabled=never
    doctor "$BATS_TEST_TMPDIR/d" "$BATS_TEST_TMPDIR/c"
    ! grep -qE 'worse +huge-pages' "$out" || return 1
    grep -qE ' +huge-pages \(A' "$out"
    "$plumb" compare "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b" >"$out" || [ $? -eq 1 ]
    says "$out" "transparent huge pages"
}

@test "--hosts: asks all at once, names those that differ from the others and their findings" {
    top=$PWD
    hosts_of_trees node0=kvm-virtio node1=kvm-virtio node2=kvm-virtio node3=kvm-virtio node4=kvm-virtio
    exits 0 over_hosts
    says "$out" "5 of 5 hosts"
    if grep -q "DIFFER" "$out"; then cat "$out" && false; fi

    nic=$(find trees/node2/sys/devices -path '*/net/*' -name mtu ! -path '*/lo/*' | head -n 1)
    echo 1400 >"$nic"
    quota=$(find trees/node4/sys/fs/cgroup -name cpu.max | sort | tail -n 1)
    echo '100000 100000' >"$quota"
    exits 1 over_hosts
    grep -qE 'network\.[a-z0-9]+\.mtu: 1400; 4 of 5 .*1500' "$out"
    grep -q 'virtualization.limits.cpu_quota: 1.0; 4 of 5 .*none' "$out"
    says "$out" "1.  node4: processor: " "1 - 1/4 CPUs" "cpu-quota (processor)"
    over_hosts --json
    python3 - "$out" <<'END'
import json, sys
hosts = json.load(open(sys.argv[1]))["hosts"]
odd = {h["host"]: [f["path"] for f in h["differs"]] for h in hosts if h["differs"]}
assert list(odd) == ["node2", "node4"], odd
assert odd["node4"] == ["virtualization.limits.cpu_quota"]
assert [h["exam"]["counts"]["found"] for h in hosts if h["host"] != "node2"] == [0, 0, 0, 1]
END
    echo gone >>hosts # the others are compared all the same
    exits 1 over_hosts
    says "$out" "5 of 6 hosts" "'gone'"
    grep -qE 'network\.[a-z0-9]+\.mtu: 1400; 4 of 5 .*1500' "$out"
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
    exits 1 doctor --json
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
    grep -q '1 of 4 ' "$out"
    SLURM_LOCALID=0 "$plumb" doctor --json >"$out" || [ $? -eq 1 ] || [ $? -eq 3 ]
    if grep -q '"rank": {' "$out"; then false; fi
}
