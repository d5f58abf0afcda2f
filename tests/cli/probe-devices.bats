#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# plumb probe on a machine of many devices.

setup_file()
{
    make -s -C "$BATS_TEST_DIRNAME/../.." machines
}

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    plumb=${PLUMB:-${PLUMB_BIN:-build/bin}/plumb}
}

# machines FOLDER: in it 5000 and 20000, the tree of kvm-virtio with so many more PCI devices, 256 of them below each bridge.
machines()
{
    python3 - build/machines/kvm-virtio/root "$1" <<'END'
import os, shutil, sys
base, folder = sys.argv[1:]
ids = {"vendor": "0x1af4", "device": "0x1041"}

def machine(n):
    root = f"{folder}/{n}"
    shutil.copytree(base, root, symlinks=True)
    for kind, code in ("bridge", "0x060400"), ("device", "0x020000"):
        os.mkdir(f"{root}/{kind}")
        for name, text in {**ids, "class": code}.items():
            with open(f"{root}/{kind}/{name}", "w") as out:
                out.write(text + "\n")

    def add(kind, path):
        os.mkdir(f"{root}/sys/devices/{path}")
        for name in *ids, "class":
            os.link(f"{root}/{kind}/{name}", f"{root}/sys/devices/{path}/{name}")
        os.symlink(f"../../../devices/{path}", f"{root}/sys/bus/pci/devices/{os.path.basename(path)}")

    os.mkdir(f"{root}/sys/devices/pci0000:40")
    for i in range(n):
        bus = i >> 8
        bridge = f"pci0000:40/0000:40:{bus & 31:02x}.{bus >> 5}"
        if i % 256 == 0:
            add("bridge", bridge)
        add("device", f"{bridge}/0000:{0x41 + bus:02x}:{i >> 3 & 31:02x}.{i & 7}")

for n in 5000, 20000:
    machine(n)
END
}

@test "the time is linear in the PCI devices: four times as many take less than six times the CPU time" {
    machines "$BATS_TEST_TMPDIR"
    # In turn, the best of three. The kernel's part, which opens the files, would hide a search in the program: user time is
    # held by itself, too.
    python3 - "$plumb" "$BATS_TEST_TMPDIR" <<'END'
import os, subprocess, sys
best = {}
for n in 3 * (5000, 20000):
    p = subprocess.Popen([sys.argv[1], "probe", "--json", "--sysroot", f"{sys.argv[2]}/{n}"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(p.pid, 0)
    assert status == 0, status
    now = used.ru_utime + used.ru_stime, used.ru_utime
    best[n] = tuple(map(min, best.get(n, now), now))
print(best)
assert best[20000][0] < 6 * best[5000][0] and best[20000][1] < 5.4 * best[5000][1], best
END
}
