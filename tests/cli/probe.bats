#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2030,SC2031 # each test has variables of its own
# plumb probe, its options and exit codes, scripts/record-machine, and NVML through a fake library.

load ../sim/env

setup_file()
{
    make -s -C "$BATS_TEST_DIRNAME/../.." machines
}

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    plumb=${PLUMB:-build/bin/plumb}
    out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
}

# probe ARGUMENTS...: sets status, and leaves stdout and stderr in $out and $err.
probe()
{
    status=0
    "$plumb" probe "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# says FILE TEXT: FILE has the text, or we see FILE.
says()
{
    grep -qF -- "$2" "$1" || { echo "no \"$2\" in:" && tail -n 120 "$1" && false; }
}

# lacks FILE TEXT
lacks()
{
    if grep -qF -- "$2" "$1"; then echo "\"$2\" is in $1" && false; fi
}

# fake_nvml: a libnvidia-ml.so.1 that the program will find first.
fake_nvml()
{
    command -v "${CC:-cc}" >/dev/null || skip "needs a C compiler"
    "${CC:-cc}" -shared -fPIC -o "$BATS_TEST_TMPDIR/libnvidia-ml.so.1" tests/cli/fake_nvml.c
    export LD_LIBRARY_PATH=$BATS_TEST_TMPDIR
}

@test "probe: a table of this machine on stdout, nothing on stderr" {
    probe
    [ "$status" -eq 0 ]
    [ ! -s "$err" ]
    for section in MACHINE PROCESSOR MEMORY 'PCI DEVICES' NETWORK RDMA GPUS FINDINGS; do
        says "$out" "$section"
    done
}

# settled [KEY...]: the facts in $out but for those that change from call to call (docs/probe.md),
# and but for these keys, a line each.
settled()
{
    python3 - "$@" "$out" <<'END'
import json, sys
*gone, path = sys.argv[1:]
gone += ["load", "counters", "hw_counters", "grown", "clock_reasons", "memory_bytes", "free"]
def without(value):
    if isinstance(value, dict):
        return {k: without(v) for k, v in value.items() if k not in gone and k[:-4] not in gone}
    return [without(v) for v in value] if isinstance(value, list) else value
text = json.dumps(without(json.load(open(path))), indent=1)
print("\n".join(line for line in text.split("\n") if "the NUMA nodes show" not in line))
END
}

@test "--json: one object, whole, the same twice" {
    probe --json
    [ "$status" -eq 0 ]
    [ ! -s "$err" ]
    says "$out" '"source": "this machine"'
    [ "$(head -c 1 "$out")" = '{' ]
    [ "$(tail -n 1 "$out")" = '}' ]
    settled >"$out.1"
    probe --json
    settled >"$out.2"
    cmp "$out.1" "$out.2"
}

@test "--sysroot reads the tree, and only the tree" {
    probe --sysroot build/machines/arm64-server/root
    [ "$status" -eq 0 ]
    cmp "$out" tests/machines/arm64-server/expected.txt
    probe --sysroot=build/machines/nvlink-8gpu/root --json
    cmp "$out" tests/machines/nvlink-8gpu/expected.json
}

@test "a recorded machine reads as the machine itself" {
    scripts/record-machine "$BATS_TEST_TMPDIR/tree" 2>"$err"
    says "$err" 'look them through before sending'
    probe --json
    # What recording changes: the host's name, where CPUID came from, NVML, CUDA, and what its tools
    # are not there for.
    changes='source hostname nvml works toolkit_version'
    command -v ip >/dev/null || changes+=' max_mtu'
    command -v tc >/dev/null || changes+=' qdiscs'
    command -v ethtool >/dev/null || changes+=' pause rings line pause_counters'
    # shellcheck disable=SC2086 # words
    settled $changes | sed '/the hypervisor calls itself/d' >"$out.live"
    probe --json --sysroot "$BATS_TEST_TMPDIR/tree"
    [ "$status" -eq 0 ]
    if ls /proc/driver/nvidia >/dev/null 2>&1; then skip "NVML says more than a recording"; fi
    # shellcheck disable=SC2086
    diff "$out.live" <(settled $changes | sed '/the hypervisor calls itself/d')
}

@test "a recorded machine holds no addresses, names or serial numbers" {
    scripts/record-machine "$BATS_TEST_TMPDIR/tree" 2>/dev/null
    cd "$BATS_TEST_TMPDIR/tree"
    [ "$(cat proc/sys/kernel/hostname)" = machine ]
    [ -z "$(find . -name address -o -name '*serial*' -o -name '*uuid*' -o -name '*guid*')" ]
    for address in /sys/class/net/*/address; do
        address=$(cat "$address")
        case $address in 00:00:00:00:00:00 | '') continue ;; esac
        if grep -rqiF "$address" .; then echo "$address is recorded" && false; fi
    done
}

# The functions of record-machine, without running it.
record_functions()
{
    # shellcheck source=/dev/null
    . <(sed '/^main "\$@"$/d' scripts/record-machine)
    set +u
    out=$BATS_TEST_TMPDIR/tree
}

@test "record-machine: of SMBIOS only the memory modules, without their serial numbers" {
    record_functions
    dmi=${BATS_TEST_TMPDIR#/}/dmi
    {
        printf '\001\033\000\000' && head -c 23 /dev/zero && printf 'Maker\000SYSTEM-SERIAL\000\000'
        # module: locator 1, maker 2, serial 3, asset tag 4, part 5
        printf '\021\050\000\000' && head -c 12 /dev/zero && printf '\001\000'
        head -c 5 /dev/zero && printf '\002\003\004\005' && head -c 13 /dev/zero
        printf 'DIMM_A1\000Micron\000MODULE-SERIAL\000ASSET-TAG\000PART-5\000\000'
        printf '\177\004\000\000\000\000'
    } >"/$dmi"
    binary "$dmi" scrub_dmi
    says "$out/$dmi" DIMM_A1
    says "$out/$dmi" Micron
    says "$out/$dmi" PART-5
    lacks "$out/$dmi" SERIAL
    lacks "$out/$dmi" ASSET
    lacks "$out/$dmi" Maker
    # Only the first structure is gone: 27 bytes and its two texts.
    [ $(($(stat -c %s "/$dmi") - $(stat -c %s "$out/$dmi"))) -eq 48 ]
}

@test "record-machine: both readings of counters begin with the time" {
    record_functions
    nic_counters() { echo "counters $1" >>"$out/log"; }
    port_counters() { echo "counters $1" >>"$out/log"; }
    keep() { echo "$*" >>"$out/log"; }
    ask_counts() { echo "counts $1" >>"$out/log"; }
    sleep() { :; }
    out=$BATS_TEST_TMPDIR/tree
    mkdir -p "$out/plumb"
    record_network || :
    record_rdma || :
    run grep -cE "^count|proc/uptime|statistics" "$out/log"
    [ "$output" -eq 0 ]
    : >"$out/log"
    record_twice || :
    [ "$(head -1 "$out/log")" = proc/uptime ]
    [ "$(wc -l <"$out/log")" -gt 1 ]
    cmp "$out/log" "$out/plumb/later/log"
}

@test "record-machine: of a port's configuration only the header and ACS" {
    record_functions
    config=${BATS_TEST_TMPDIR#/}/config
    {
        head -c 64 /dev/zero | tr '\000' H && head -c 192 /dev/zero | tr '\000' S
        printf '\003\000\001\020SERIAL-NUMBE'   # device serial number, next at 0x100
        printf '%240s' '' | tr ' ' S
    } >"/$config"
    # Next capability at 0x110: bits 4 to 15 of the second half.
    printf '\003\000\001\021' | dd of="/$config" bs=1 seek=256 conv=notrunc 2>/dev/null
    printf '\015\000\001\040\037\000\035\000' | dd of="/$config" bs=1 seek=272 conv=notrunc 2>/dev/null
    binary "$config" scrub_config
    [ "$(stat -c %s "$out/$config")" -eq 264 ]
    lacks "$out/$config" S
    says "$out/$config" HHHH
    [ "$(od -An -tx1 -j256 "$out/$config" | tr -d ' \n')" = 0d0001001f001d00 ]
}

@test "record-machine: usage and a folder that is there" {
    run scripts/record-machine
    [ "$status" -eq 2 ]
    run scripts/record-machine "$BATS_TEST_TMPDIR"
    [ "$status" -eq 2 ]
    [[ $output == *"does not exist"* ]]
}

@test "--help goes to stdout and names every option" {
    probe --help
    [ "$status" -eq 0 ]
    [ ! -s "$err" ]
    for option in --json --sysroot --help 'exit'; do says "$out" "$option"; done
}

@test "usage errors: exit 2, nothing on stdout, what to do" {
    for arguments in --nonsense --sysroot '--sysroot /nonexistent' '--sysroot /dev/null' extra '--sysroot='; do
        # shellcheck disable=SC2086 # several words
        probe $arguments
        [ "$status" -eq 2 ]
        [ ! -s "$out" ]
        [ -s "$err" ]
    done
    probe --sysroot "$BATS_TEST_TMPDIR"
    [ "$status" -eq 2 ]
    says "$err" '"sys"'
}

@test "incomplete: exit 4 where not even the processor can be read, and what there is is shown" {
    mkdir -p "$BATS_TEST_TMPDIR/tree/proc"
    probe --sysroot "$BATS_TEST_TMPDIR/tree"
    [ "$status" -eq 4 ]
    says "$out" FINDINGS
    says "$err" 'the processor could not be read'
    # Nothing was read: that nothing was found is no good news.
    grep -Eq '^  none +nothing to hold back a measurement in what was read; [1-9][0-9]* facts are unknown$' "$out"
}

@test "incomplete: exit 4 where the output cannot be written" {
    [ -w /dev/full ] || skip "no /dev/full"
    for option in '' --json; do
        status=0
        # shellcheck disable=SC2086 # may be none
        "$plumb" probe $option >/dev/full 2>"$err" || status=$?
        [ "$status" -eq 4 ]
        says "$err" 'cannot write'
    done
}

@test "NVML: what it says of GPUs, slices and links" {
    fake_nvml
    probe --json
    [ "$status" -eq 0 ]
    says "$out" '"nvml": true'
    says "$out" '"driver_version": "550.90.07"'
    says "$out" '"cuda_version": "12.4"'
    says "$out" '"address": "0000:f1:00.0"'
    says "$out" '"memory_bytes": 85520809984'
    says "$out" '"memory_gbytes_per_s": 3352.32'
    says "$out" '"compute_capability": "9.0"'
    says "$out" '"power_limit_watts": 700.0'
    # 17 of 18 links of 26.562 GB/s
    says "$out" '"active": 17'
    says "$out" '"gbytes_per_s": 451.554'
    says "$out" '"name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb"'
    [ "$(grep -c '"nature": "mig"' "$out")" -eq 2 ]
    says "$out" '"nature": "passthrough"'
    says "$out" '"nature": "vgpu"'
    says "$out" 'NVML'\''s virtualization mode is \"vgpu\"'
    lacks "$out" 'has no driver'
    # A question without an answer is null, not 0.
    says "$out" '"max_generation": null'
    probe
    lacks "$out" 'NVLinks are active' # no GPU has more: bridges may wire a part of them
    says "$out" '17 of 18, 452 GB/s'
    says "$out" '2 slices'
    says "$out" '79.65 GiB'
}

@test "NVML: the card's state and settings, and how its links go to each peer" {
    fake_nvml
    probe --json
    [ "$status" -eq 0 ]
    says "$out" '"sms": 132'
    says "$out" '"sms": 16' # of a slice
    says "$out" '"power_default_watts": 700.0'
    says "$out" '"power_min_watts": 200.0'
    says "$out" '"persistence_mode": true'
    says "$out" '"compute_mode": "default"'
    says "$out" '"bar1_bytes": 137438953472'
    says "$out" '"bar1_covers_memory": true'
    says "$out" '"corrected_ever": 0'
    says "$out" '"state": "completed"'
    says "$out" '"confidential_computing": false'
    # NVML counts versions: its 6 is NVLink 4.0.
    says "$out" '"version": 4.0'
    # 8 lanes to the switch at c0 (one of nine is down), 9 to one that cannot be seen.
    says "$out" '"kind": "nvswitch"'
    says "$out" '"address": "0000:c0:00.0"'
    says "$out" '"gbytes_per_s": 212.496'
    says "$out" '"address_why": "NVML does not tell where the other end is"'
    says "$out" '"gbytes_per_s": 239.058'
    says "$out" '"p2p_read": "ok"'
    lacks "$out" 'simulated'
    probe
    says "$out" '9.0  132  79.65 GiB'
    says "$out" 'gen 5 x?  gen ? x16'
    says "$out" '256 MiB'
    says "$out" 'NVLink fabric  complete for 2 of 2 GPUs'
    says "$out" 'other devices reach 0.25 of its 79.65 GiB of memory at a time (BAR1)'
    [ "$(sed -n '/^GPUS/,/^FINDINGS/p' "$out" | grep -vE '^  (CUDA|nearest) ' | wc -L)" -le 100 ]
}

@test "NVML: a card in a poor state is found out" {
    fake_nvml
    FAKE_NVML=bad probe
    [ "$status" -eq 0 ]
    says "$out" '700 of 750 W'
    says "$out" 'the power limit is 700 W, by default 750 W'
    says "$out" 'on, 10 + 3 errors'
    says "$out" '3 uncorrected memory errors'
    says "$out" 'faulty memory stays in use until the next reset'
    says "$out" 'no spare rows are left'
    says "$out" 'compute mode "prohibited"'
    says "$out" 'the NVLink fabric is not ready (in progress)'
    says "$out" 'its clocks are held down now: temperature (hardware)'
    says "$out" 'the NVLink fabric has lost bandwidth'
    says "$out" 'the PCIe link runs at x8 of x16 lanes'
    says "$out" 'gen 5 x8  gen 5 x16  lanes lost'
    says "$out" 'confidential computing is on'
    says "$out" '1 of 1 pairs of GPUs have no peer access'
    says "$out" '(PCIe)'
    FAKE_NVML=bad probe --json
    says "$out" '"p2p_read": "not over this path through the processors"'
    # Numbers that mean nothing here are not guessed at.
    says "$out" 'NVML says 7, which is not known here'
    says "$out" 'how many of its 16897 cores make a multiprocessor is not known'
    says "$out" '"ecc_after_reboot": false'
}

@test "NVML: GPUs with NVLinks between them, and peer access in one direction only" {
    fake_nvml
    FAKE_NVML=bridged probe --json
    [ "$(grep -A 1 '"clock_reasons"' "$out" | grep -c '"idle"')" -eq 2 ]
    says "$out" '"nvlinks": 4'
    says "$out" '"nvlink_via": "direct"'
    says "$out" '"nvlink_gbytes_per_s": 106.248'
    says "$out" '"p2p_read": "ok"'
    says "$out" '"p2p_write": "from a: ok; from b: not supported"'
    FAKE_NVML=bridged probe
    says "$out" '(NV4)'
}

@test "simulated GPUs: lanes to each peer and peer access as configured, and said to be stand-ins" {
    simulate eight
    probe --json
    [ "$status" -eq 0 ]
    says "$out" '"simulated": true'
    [ "$(grep -c '"nature": "simulated"' "$out")" -eq 8 ]
    says "$out" '"cuda": "cuda:7"'
    # GPU 0: 4 lanes to 1, 2 to 2.
    sed -n '/"address": "0000:1b:00.0"/,/"cuda": /p' "$out" >"$out.gpu"
    says "$out.gpu" '"active": 6'
    sed -n '/"peers"/,/\]/p' "$out.gpu" | tr -d ' \n' >"$out.peers"
    says "$out.peers" '"kind":"gpu","address":"0000:1c:00.0","links":4,"gbytes_per_s":50.0'
    says "$out.peers" '"kind":"gpu","address":"0000:3b:00.0","links":2,"gbytes_per_s":25.0'
    says "$out.gpu" '"sms": 20'
    says "$out.gpu" '"numa_node": 0'
    [ "$(grep -c '"a": ' "$out")" -eq 28 ]
    probe
    says "$out" 'a stand-in, for tests: simulated'
    grep -qE '^  0000:1b:00.0  0  \.  +NV4  +NV2  +PCIe' "$out"
    says "$out" '(PCIe)'
    says "$out" '1 of 28 pairs of GPUs have no peer access (0000:3c:00.0 and 0000:9a:00.0'
    [ "$(sed -n '/^GPUS/,/^FINDINGS/p' "$out" | grep -v '^  nearest ' | wc -L)" -le 100 ]
}

@test "CUDA: without its module, or with a driver that does not start, why" {
    simulate one
    PLUMB_CUDA_MODULE=/nonexistent probe
    says "$out" 'CUDA does not work: the GPU module does not load'
    says "$out" '0000:10:00.0  Simulated GPU'
    fault no_nvml
    probe
    says "$out" 'NVML error 9: the driver is not loaded'
    # What CUDA shows is there still.
    says "$out" '0000:10:00.0  cuda:0  Simulated GPU  simulated'
    fault no_nvml no_device
    probe --json
    [ "$status" -eq 0 ]
    says "$out" '"works": false'
    says "$out" '"devices": []'
}

@test "CUDA: the toolkit that nvcc on the path belongs to; without one, why" {
    mkdir -p "$BATS_TEST_TMPDIR/kit/bin" "$BATS_TEST_TMPDIR/kit/include"
    printf '#!/bin/sh\n' >"$BATS_TEST_TMPDIR/kit/bin/nvcc"
    chmod +x "$BATS_TEST_TMPDIR/kit/bin/nvcc"
    printf '#define CUDA_API\n#define CUDA_VERSION 12060\n' >"$BATS_TEST_TMPDIR/kit/include/cuda.h"
    unset CUDA_HOME CUDA_PATH
    PATH=$BATS_TEST_TMPDIR/kit/bin:$PATH probe --json
    says "$out" '"toolkit_version": "12.6"'
    echo '{"cuda": {"name": "CUDA SDK", "version": "12.6.3"}}' >"$BATS_TEST_TMPDIR/kit/version.json"
    CUDA_HOME=$BATS_TEST_TMPDIR/kit probe --json
    says "$out" '"toolkit_version": "12.6.3"'
    CUDA_HOME=$BATS_TEST_TMPDIR probe --json
    says "$out" 'has neither version.json nor include/cuda.h'
    PATH=/nonexistent probe --json
    says "$out" '"toolkit_version_why": "no nvcc on the path, and no CUDA_HOME"'
}

@test "NVML: an old library answers less, and what lacks is null" {
    fake_nvml
    FAKE_NVML=old probe --json
    [ "$status" -eq 0 ]
    says "$out" '"memory_gbytes_per_s": null'
    says "$out" '"virtualization": null'
    says "$out" '"gbytes_per_s": 425.0'
    says "$out" 'NVML gives no virtualization mode'
    says "$out" '"kind": "unknown"' # what is at the other end of a link
    says "$out" '"clique": 9'
    says "$out" 'NVML gives no health of the fabric'
}

@test "NVML: a library that does not start is said" {
    fake_nvml
    FAKE_NVML=stopped probe --json
    [ "$status" -eq 0 ]
    says "$out" '"nvml": false'
    says "$out" 'the driver is not loaded'
}

@test "NVML: not asked about a recorded machine" {
    fake_nvml
    probe --json --sysroot build/machines/nvlink-8gpu/root
    cmp "$out" tests/machines/nvlink-8gpu/expected.json
}
