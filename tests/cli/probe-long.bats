#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2030,SC2031,SC2086,SC2154 # each test has variables of its own
# plumb probe, its options and exit codes, scripts/record-machine, and NVML through the simulated one.

load ../sim/env
load rows
load probe

# lacks FILE TEXT
lacks()
{
    if grep -qF -- "$2" "$1"; then echo "\"$2\" is in $1" && false; fi
}

# h100s [LINES...]: NVML of two of these, the second cut into slices, with NVLinks to a switch.
h100s()
{
    printf '%s\n' '[machine]' 'gpus = 2' 'driver = 550.90.07' 'driver_version = 12040' 'nvswitch_gbps = 450' '[gpu]' 'name = NVIDIA H100 80GB HBM3' \
        'memory_bytes = 85520809984' 'memory_bus_bits = 5120' 'memory_clock_mhz = 2619' 'power_limit_watts = 700' 'pcie_gen = 5' 'pcie_width_max = 16' \
        '[gpu 0]' 'address = 0000:f1:00.0' 'virtualization = passthrough' '[gpu 1]' 'address = 0000:f2:00.0' 'virtualization = vgpu' 'mig = yes' \
        '[link all]' 'kind = nvlink' 'lanes = 18' 'dark_lanes = 1' 'lane_gbps = 26.562' "$@" >"$BATS_TEST_TMPDIR/h100s.conf"
    simulate_nvml "$BATS_TEST_TMPDIR/h100s.conf"
}

@test "a recorded machine reads as the machine itself" {
    scripts/record-machine "$BATS_TEST_TMPDIR/tree" 2>"$err"
    says "$err" sending
    probe --json
    # What recording changes: the host's name, where CPUID came from, NVML, CUDA, and what its tools
    # are not there for.
    changes='source hostname nvml works toolkit_version'
    command -v ip >/dev/null || changes+=' max_mtu'
    command -v tc >/dev/null || changes+=' qdiscs'
    command -v ethtool >/dev/null || changes+=' pause rings line pause_counters'
    settled $changes | sed '/the hypervisor calls itself/d' >"$out.live"
    exits 0 probe --json --sysroot "$BATS_TEST_TMPDIR/tree"
    if ls /proc/driver/nvidia >/dev/null 2>&1; then skip "NVML says more than a recording"; fi
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
    says "$out/$dmi" DIMM_A1 Micron PART-5
    lacks "$out/$dmi" SERIAL
    lacks "$out/$dmi" ASSET
    lacks "$out/$dmi" Maker
    # Only the first structure is gone: 27 bytes and its two texts.
    [ $(($(stat -c %s "/$dmi") - $(stat -c %s "$out/$dmi"))) -eq 48 ]
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

@test "NVML: what it says of GPUs, slices and links" {
    h100s
    # Without the mark of a stand-in, which would be its nature.
    sed 's/plumb_simulated/plumb_real_ones/g' "$(sim_folder)/libnvidia-ml.so.1" >"$BATS_TEST_TMPDIR/libnvidia-ml.so.1"
    export LD_LIBRARY_PATH=$BATS_TEST_TMPDIR
    exits 0 probe --json
    says "$out" '"nvml": true' '"driver_version": "550.90.07"' '"cuda_version": "12.4"' '"address": "0000:f1:00.0"' '"memory_bytes": 85520809984'
    says "$out" '"memory_gbytes_per_s": 3352.32' '"compute_capability": "9.0"' '"power_limit_watts": 700.0'
    # 17 of 18 links of 26.562 GB/s
    says "$out" '"active": 17' '"gbytes_per_s": 451.554' '"name": "NVIDIA H100 80GB HBM3 MIG 1g.9gb"'
    [ "$(grep -c '"nature": "mig"' "$out")" -eq 2 ]
    says "$out" '"nature": "passthrough"' '"nature": "vgpu"' 'mode is \"vgpu\"'
    lacks "$out" 'has no driver'
    probe
    lacks "$out" 'NVLinks are active' # no GPU has more: bridges may wire a part of them
    says "$out" '17 of 18, 452 GB/s' '2 slices' '79.65 GiB'
}

@test "NVML: a card in a poor state is found out" {
    h100s '[machine]' 'confidential = yes' '[gpu]' 'power_default_watts = 750' 'cores = 16897' 'ecc_flips = yes' 'ecc_corrected = 10' 'ecc_uncorrected = 3' \
        'remap_pending = yes' 'fabric_state = 2' 'fabric_degraded = yes' '[gpu 0]' 'compute_mode = 2' '[gpu 1]' 'compute_mode = 7' 'remap_failed = yes' '[link all]' 'kind = none'
    fault throttle:factor=1:reason=hw_thermal
    exits 0 probe
    says "$out" '700 of 750 W' '700 W, by default 750 W' 'on, 10 + 3' '3 uncorrected' 'stays in use until' 'spare rows' 'compute mode "prohibited"'
    says "$out" '(in progress)' 'hardware slowdown' 'lost bandwidth' ' x8 of x16 ' 'gen 5 x8  gen 5 x16  lanes lost' 'confidential computing'
    says "$out" '1 of 1 pairs of GPUs' '(PCIe)'
    probe --json
    says "$out" '"p2p_read": "not ' '"temperature (hardware)"'
    # Numbers that mean nothing here are not guessed at.
    says "$out" 'NVML says 7, ' ' 16897 cores ' '"ecc_after_reboot": false'
}

@test "NVML: GPUs with NVLinks between them, and peer access in one direction only" {
    h100s '[machine]' 'nvswitch_gbps = 0' '[gpu]' 'virtualization = none' '[link all]' 'lanes = 4' 'dark_lanes = 0' 'write_one_way = yes' '[gpu 1]' 'mig = no'
    fault throttle:factor=1:reason=idle
    probe --json
    [ "$(grep -A 1 '"clock_reasons"' "$out" | grep -c '"idle"')" -eq 2 ]
    says "$out" '"nvlinks": 4' '"nvlink_via": "direct"' '"nvlink_gbytes_per_s": 106.248' '"p2p_read": "ok"'
    grep -q '"p2p_write": "from a: ok; from b: [^o]' "$out"
    probe
    says "$out" '(NV4)'
}

@test "CUDA: without its module, or with a driver that does not start, why" {
    simulate one
    PLUMB_CUDA_MODULE=/nonexistent probe
    says "$out" 'CUDA does not work: ' '0000:10:00.0  Simulated GPU'
    fault no_nvml
    probe
    says "$out" '(NVML error 9:'
    # What CUDA shows is there still.
    says "$out" '0000:10:00.0  cuda:0  Simulated GPU  simulated'
    fault no_nvml no_device
    exits 0 probe --json
    says "$out" '"works": false' '"devices": []'
}

@test "NVML: an old library answers less, and what lacks is null" {
    h100s '[machine]' 'nvml_lacks = MemoryBusWidth VirtualizationMode CurrentClocksEventReasons NvLinkRemoteDeviceType NvLinkSpeed GpuFabricInfoV' \
        '[gpu]' 'fabric_state = 3'
    exits 0 probe --json
    says "$out" '"memory_gbytes_per_s": null' '"clock_reasons": []' '"virtualization": null' '"gbytes_per_s": 451.554' 'virtualization mode'
    says "$out" '"kind": "unknown"' # what is at the other end of a link
    says "$out" '"clique": 9'
}
