#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a run folder with made-up but realistic rows, for tests of the report and for looking at it.

usage: make-run.py DIR [--rows 3|300|10000] [--seed N] [--factor F] [--hostile]
"""
import argparse
import json
import math
import os
import random

from run_folder import row_columns, write_meta, write_plan, write_rows

MACHINE = {
    "host": {"hostname": "loaner-7", "vendor": "Example", "product": "R1", "kernel": "6.1.0-18-amd64",
             "architecture": "x86_64", "distro": "Debian GNU/Linux 12 (bookworm)"},
    "virtualization": {"hypervisor": "kvm", "guest": True, "container": "none",
                       "because": ["/proc/cpuinfo: the CPU flag \"hypervisor\" is set",
                                   "CPUID leaf 0x40000000: the hypervisor calls itself \"KVMKVMKVM\""],
                       "container_because": ["/proc/2 is kthreadd"]},
    "cpu": {"vendor": "AuthenticAMD", "model": "AMD EPYC 9654", "family": 25, "model_number": 17,
            "features": {"avx2": True, "avx512f": True, "amx_bf16": False},
            "clock": {"governors": [], "drivers": [], "max_mhz": None,
                      "drivers_why": "the clock is steered by the firmware or the hypervisor"},
            "sockets": 1, "cores": 2, "threads": 4},
    "caches": [
        {"level": 1, "type": "data", "size_bytes": 32768, "shared_by_threads": 2, "count": 2},
        {"level": 2, "type": "unified", "size_bytes": 1048576, "shared_by_threads": 2, "count": 2},
        {"level": 3, "type": "unified", "size_bytes": 33554432, "shared_by_threads": 4, "count": 1}],
    "numa": {"nodes": [{"node": 0, "cpus": "0-3"}]},
    "memory": {"total_bytes": 25276502016, "transparent_huge_pages": {"enabled": "never"},
               "channels": None, "channels_why": "needs root"},
    "network": [{"name": "eth0", "virtual": False, "driver": "virtio_net",
                 "speed_gbits_per_s": None}],
    "gpus": {"devices": []},
}

HOSTILE = "</script><script>alert(1)</script>\"'`touch pwned`<img src=x onerror=alert(2)>&\x1b[31m"


def quantile(samples, p):
    at = (len(samples) - 1) * p
    low = math.floor(at)
    return samples[low] + (samples[min(low + 1, len(samples) - 1)] - samples[low]) * (at - low)


class Maker:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.columns = row_columns()
        self.launches = []
        self.case = 0

    def summary(self, level, spread, two_levels):
        samples = []
        for _ in range(60):
            value = level * math.exp(self.random.gauss(0, spread))
            if two_levels and self.random.random() < 0.3:
                value *= 0.8
            samples.append(value)
        samples.sort()
        row = {f"p{name}": quantile(samples, p) for name, p in
               (("05", .05), ("25", .25), ("50", .5), ("75", .75), ("95", .95), ("99", .99),
                ("999", .999))}
        row.update(min=samples[0], max=samples[-1], mean=sum(samples) / 60,
                   value=quantile(samples, .5), ci_low=quantile(samples, .37),
                   ci_high=quantile(samples, .63), samples=60, discarded=12, inner_repeat=8,
                   effective_samples=41.5, confidence=.95,
                   stddev=math.sqrt(sum((s - sum(samples) / 60) ** 2 for s in samples) / 59))
        if two_levels:
            row.update(level_low=level * .8, level_low_share=.3, level_high=level,
                       level_high_share=.7)
        return row

    def row(self, case, repeat, params, metric, unit, level, limit, **more):
        noisy = self.random.random() < .04
        row = dict.fromkeys(self.columns, "")
        row.update(params)
        row.update(metric=metric, unit=unit, stop="converged", origin="measured", status="ok",
                   run=self.options.name, case=case, repeat=repeat, host="loaner-7",
                   time_utc="2026-01-02T03:04:05Z", elapsed_s=1.2, steal_percent=0,
                   ctx_involuntary=2, cpu_mhz_low=3400, cpu_mhz_high=3420, faults_minor=3)
        row.update(self.summary(level * self.random.gauss(1, .004), .03 if noisy else .004,
                                self.random.random() < .01))
        if limit:
            row.update(limit=limit, limit_source="measured: " + ("register loop" if "OP" in unit
                                                                  else "reads alone"),
                       percent_of_limit=100 * row["value"] / limit)
        if noisy:
            row.update(status="noisy", stop="time", steal_percent=3.1, cpu_mhz_low=2600,
                       disturbed="steal 3.1 %, clock 2600 to 3400 MHz")
        row.update(more)
        if row["status"] in ("skipped", "failed", "wrong"):
            for column in self.columns:
                if column not in ("metric", "unit", "origin", "status", "reason", "run", "case",
                                  "repeat", "host", "time_utc"):
                    row[column] = ""
        return row

    def memory(self, sizes, ops, dtypes, stores, threads, pages, repeats):
        rows = []
        for op in ops:
            latency = op == "latency"
            for dtype in [""] if latency else dtypes:
                for store in [""] if latency or op == "read" else stores:
                    for thread in [1] if latency else threads:
                        for page in pages:
                            for size in sizes:
                                self.case += 1
                                for repeat in range(1, repeats + 1):
                                    rows.append(self.memory_row(op, dtype, store, thread, page, size,
                                                                repeat))
        return rows

    def memory_row(self, op, dtype, store, thread, page, size, repeat):
        each = size / thread
        level = ("L1" if each <= 32768 else "L2" if each <= 1048576 else
                 "L3" if size <= 33554432 else "DRAM")
        params = {"op": op, "dtype": dtype, "stores": store, "pages": page, "threads": thread,
                  "node": "any", "memory_node": "local", "size": size, "level": "auto",
                  "level_used": level, "isa": "auto", "isa_used": "avx512", "working_set": size - size % 192, "bytes_rule": "stream",
                  "write_allocate": "yes" if store == "regular" else "no"}
        ns = {"L1": 1.2, "L2": 4.1, "L3": 14, "DRAM": 96}[level]
        peak = {"L1": 210, "L2": 95, "L3": 48, "DRAM": 16}[level] * thread
        if level == "DRAM":
            peak = min(peak, 24)
        share = {"read": .97, "write": .55, "copy": .7, "scale": .69, "add": .74,
                 "triad": .75}.get(op, 1)
        if store == "nt":
            share *= 1.25 if level == "DRAM" else .2
        more = {}
        if page == "hugetlb":
            more = {"status": "skipped", "reason": "the pool of huge pages is empty: set "
                                                   "vm.nr_hugepages"}
        if op == "latency":
            wiggle = 1 + .12 * math.sin(math.log2(size))
            return self.row(self.case, repeat, params, "latency", "ns", ns * wiggle / self.factor,
                            None, **more)
        return self.row(self.case, repeat, params, "bandwidth", "GB/s", peak * share * self.factor,
                        peak, **more)

    @property
    def factor(self):
        return self.options.factor

    def gemm(self, sizes, shapes, repeats):
        rows = []
        peaks = {"f32": ("TFLOP/s", .46), "f64": ("TFLOP/s", .23), "bf16": ("TFLOP/s", .9),
                 "int8": ("TOP/s", 1.8)}
        pairs = [("f32", "onednn"), ("f32", "openblas"), ("bf16", "onednn"), ("int8", "onednn"),
                 ("f64", "openblas")]
        for dtype, library in pairs:
            unit, peak = peaks[dtype]
            for m, n, k in [(s, s, s) for s in sizes] + shapes:
                self.case += 1
                share = .93 * (1 - 40 / (m + 60)) * (.52 if (dtype, library) == ("f32", "openblas")
                                                     else 1)
                reason = ("OpenBLAS took its kernels for HASWELL: this CPU has AVX-512"
                          if library == "openblas" else "")
                for repeat in range(1, repeats + 1):
                    rows.append(self.row(
                        self.case, repeat,
                        {"dtype": dtype, "library": library, "threads": 2, "m": m, "n": n, "k": k,
                         "accumulate": "s32" if dtype == "int8" else "f32", "cpus": "0-1",
                         "kernel": "avx512_core" if library == "onednn" else "Haswell"},
                        "throughput", unit, peak * share * self.factor, peak, reason=reason))
        return rows

    def copy(self, sizes, memories, repeats):
        rows = []
        for memory in memories:
            for direction in ("one-way", "both"):
                for size in sizes:
                    self.case += 1
                    bandwidth = 11 * size / (size + 60000) * (.6 if memory == "pageable" else 1)
                    for repeat in range(1, repeats + 1):
                        params = {"source": "node0", "destination": "node1",
                                  "direction": direction, "memory": memory, "engine": "memcpy",
                                  "size": size}
                        rows.append(self.row(self.case, repeat, params, "bandwidth", "GB/s",
                                             bandwidth * self.factor, None))
                        rows.append(self.row(self.case, repeat, params, "latency", "us",
                                             .4 + size / 11e3 / self.factor, None))
        return rows

    def null(self, numbers, repeats):
        rows = []
        for number in range(1, numbers + 1):
            self.case += 1
            for repeat in range(1, repeats + 1):
                rows.append(self.row(self.case, repeat,
                                     {"number": number, "level": "1us", "noise": "normal",
                                      "spread": ".01", "fault": "none"},
                                     "time", "us", 1 + number * .01, None, origin="simulated"))
        return rows

    def all_rows(self):
        powers = [2 ** e for e in range(14, 28)]
        if self.options.rows <= 3:
            return {"gemm": self.gemm([1024], [], 1)[:1],
                    "memory": self.memory([2 ** 27], ["triad", "latency"], ["f64"], ["regular"],
                                          [2], ["thp"], 1)}
        if self.options.rows <= 300:
            return {
                "gemm": self.gemm([512, 1024, 2048], [(512, 2304, 768), (512, 768, 3072)], 3),
                "memory": self.memory(powers[::2], ["read", "copy", "triad", "latency"], ["f64"],
                                      ["regular", "nt"], [2], ["thp"], 3),
                "copy": self.copy([8, 1024, 65536, 2 ** 20, 2 ** 26], ["huge", "pageable"], 2),
                "null": self.null(10, 2)}
        return {
            "gemm": self.gemm([256, 512, 768, 1024, 1536, 2048, 3072, 4096],
                              [(512, 768 * i, 768) for i in range(1, 9)], 5),
            "memory": self.memory(powers, ["read", "write", "copy", "scale", "add", "triad",
                                           "latency"],
                                  ["f32", "f64"], ["regular", "nt"], [1, 2],
                                  ["base", "thp", "hugetlb"], 5),
            "copy": self.copy([2 ** e for e in range(3, 29)], ["huge", "pageable", "hugetlb"], 3)}

    def write(self):
        folder = self.options.folder
        os.makedirs(folder, exist_ok=True)
        benches = self.all_rows()
        plan = {}
        for bench, rows in benches.items():
            for row in rows:
                if self.options.hostile and row["repeat"] == 1:
                    row["reason"] = HOSTILE
                    if "op" in row:
                        row["pages"] = HOSTILE
                launch = (bench, row["case"], row["repeat"])
                state, n = plan.get(launch, ("done", 0))
                if row["status"] == "skipped":
                    state = "skip"
                plan[launch] = (state, n + 1)
            params = []
            for row in rows:
                params += [name for name in row if name not in self.columns and name not in params]
            write_rows(folder, bench, params + self.columns, rows)
        order = sorted(plan, key=lambda launch: (launch[2], self.random.random()))
        write_plan(folder, [(*plan[launch], launch[1], launch[2], launch[0], "") for launch in order])
        self.write_meta(folder, benches)

    def write_meta(self, folder, benches):
        machine = json.loads(json.dumps(MACHINE))
        if self.options.hostile:
            machine["host"]["hostname"] = HOSTILE
            machine["host"]["clocksource"] = HOSTILE
        write_meta(folder, machine, benches, run=HOSTILE if self.options.hostile else self.options.name, seed=self.options.seed,
                   command=["plumb", "run", "node", "--seed", str(self.options.seed)],
                   config="suite: node\ncases:\n  - bench: memory\n    op: [read, triad]\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--factor", type=float, default=1.0, help="speed against the other run")
    parser.add_argument("--hostile", action="store_true", help="texts that try to break out")
    options = parser.parse_args()
    options.name = os.path.basename(os.path.normpath(options.folder))
    Maker(options).write()


if __name__ == "__main__":
    main()
