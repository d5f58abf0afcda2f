#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a run folder with made-up but realistic rows, for tests of the report and for looking at it.

The columns are read from core/row.c, so that they cannot drift from the program's.

usage: make-run.py DIR [--rows 3|300|10000] [--seed N] [--factor F] [--machine FILE] [--null] [--hostile]
                   [--gpus N [--simulated]] [--no-gpu]
"""
import argparse
import copy
import csv
import json
import math
import os
import random
import re

from told import told

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

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

NO_GPU = ("no GPU module: 'plumb-cuda.so' was not built, for want of nvcc: install the CUDA toolkit or set CUDA_HOME, "
          "then make config && make")


def gpu_address(i):
    return f"0000:{0x1b + 0x10 * i:02x}:00.0"


def nvlinks(i, k):
    """Pairs of neighbours have 4, those with one between them 2, the others meet over PCIe."""
    return {1: 4, 2: 2}.get(abs(i - k), 0)


def machine_with_gpus(n, simulated):
    machine = copy.deepcopy(MACHINE)
    machine["numa"]["nodes"] = [{"node": 0, "cpus": "0-1"}, {"node": 1, "cpus": "2-3"}]
    machine["gpus"] = {
        "nvml": True, "driver_version": "580.95", "simulated": simulated,
        "devices": [{"name": "NVIDIA H200", "address": gpu_address(i), "numa_node": i % 2,
                     "nature": "simulated" if simulated else "physical"} for i in range(n)],
        "pairs": [{"a": gpu_address(i), "b": gpu_address(k), "nvlinks": nvlinks(i, k),
                   "relation": "NODE" if (i - k) % 2 == 0 else "SYS"} for i in range(n) for k in range(i + 1, n)]}
    machine["pci"] = [{"address": gpu_address(n - 1), "kind": "gpu", "link": {
        "device": gpu_address(n - 1), "now_gt_s": 32.0, "best_gt_s": 32.0, "now_width": 8, "best_width": 16,
        "now_gbytes_per_s": 31.508, "best_gbytes_per_s": 63.015, "downtrained": True}}]
    return machine


HOSTILE = "</script><script>alert(1)</script>\"'`touch pwned`<img src=x onerror=alert(2)>&\x1b[31m"


def row_columns():
    with open(os.path.join(ROOT, "core", "row.c"), encoding="utf-8") as source:
        return re.findall(r'\{"([a-z0-9_]+)", ROW_', source.read())


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

    def gpu_row(self, repeat, params, metric, unit, level, limit, source, throttled=False, **more):
        """As row(), with what the GPU's own library says of it."""
        held = {"gpu_throttle": "power cap", "gpu_throttled_ms": 640, "gpu_throttled_looks": 9,
                "disturbed": "GPU held back in 9 of 12 looks (power cap)"} if throttled else {}
        row = self.row(self.case, repeat, params, metric, unit, level, limit,
                       origin="simulated" if self.options.simulated else "measured",
                       gpu_clock_mhz_low=1365 if throttled else 1965, gpu_clock_mhz_high=1980,
                       gpu_memory_clock_mhz=3201, gpu_temperature_c=61.0, gpu_power_watts=698.0 if throttled else 412.0,
                       gpu_looks=12, **held, **more)
        if limit and row["limit"]:
            row["limit_source"] = source
        return row

    def gpu_gemm(self, repeats):
        rows = []
        rates = {"f64": (60, 67, "TFLOP/s"), "f32": (51, 67, "TFLOP/s"), "tf32": (430, 494.5, "TFLOP/s"),
                 "f16": (805, 989.5, "TFLOP/s"), "bf16": (790, 989.5, "TFLOP/s"), "e4m3": (1420, 1979, "TFLOP/s"),
                 "e5m2": (1410, 1979, "TFLOP/s"), "int8": (1390, 1979, "TOP/s")}
        cases = [(dtype, "cublaslt", "random", 8192) for dtype in rates]
        cases += [("bf16", library, "random", size) for library in ("cublaslt", "cublaslt-best")
                  for size in (1024, 2048, 4096, 8192, 16384) if (library, size) != ("cublaslt", 8192)]
        cases += [("bf16", "cublaslt", "zeros", 8192)]
        for gpu in range(self.options.gpus):
            for dtype, library, data, size in cases:
                self.case += 1
                rate, limit, unit = rates[dtype]
                level = rate * (1 - 350 / (size + 500)) / (1 - 350 / 8692) * (1.031 if "best" in library else 1)
                level *= (1.13 if data == "zeros" else 1) * (.91 if gpu == 5 else 1)
                params = {"device": f"cuda:{gpu}", "dtype": dtype, "accumulate": "f32", "layout": "nn", "data": data,
                          "library": library, "threads": "", "search": "", "m": size, "n": size, "k": size, "cpus": "",
                          "kernel": "cuBLASLt 13.1.0", "address": gpu_address(gpu)}
                rows += [self.gpu_row(repeat, params, "throughput", unit, level * self.factor, limit,
                                      "datasheet: gpu.h200-sxm-141gb", dtype == "bf16" and data == "random")
                         for repeat in range(1, repeats + 1)]
        return rows

    def gpu_memory(self, repeats):
        rows = []
        for op in ("read", "copy", "triad", "latency"):
            for size in [2 ** e for e in range(18, 33, 2)]:
                self.case += 1
                level = "L2" if size <= 2 ** 24 else "" if size <= 2 ** 26 else "HBM"
                for launch in [""] if op == "latency" else ["tuned", "plain"]:
                    params = dict.fromkeys(("stores", "pages", "threads", "node", "memory_node", "isa", "write_allocate"),
                                           "")
                    params.update(device="cuda:0", op=op, dtype="" if op == "latency" else "f64", launch=launch,
                                  engine="" if op == "latency" else "kernel", size=size, level="auto",
                                  level_used=level, working_set=size,
                                  bytes_rule="stream", address=gpu_address(0),
                                  shape="" if op == "latency" else "2112 x 256, 4 x 16 bytes")
                    rate = (9000 if level == "L2" else 6000 if level == "" else 4300) * (.93 if launch == "plain" else 1)
                    rows += [self.gpu_row(repeat, params, "latency", "ns", 270 if level == "L2" else 640, None, "")
                             if op == "latency" else
                             self.gpu_row(repeat, params, "bandwidth", "GB/s", rate * self.factor,
                                          4800 if level == "HBM" else None, "datasheet: gpu.h200-sxm-141gb")
                             for repeat in range(1, repeats + 1)]
        return rows

    def copy_params(self, source, destination, **more):
        params = {"engine": "ce", "source": source, "destination": destination, "direction": "one-way",
                  "memory": "pinned", "op": "", "access": "", "together": "none", "size": 2 ** 28, "address": "",
                  "numa": "", "path": "", "clock": "events", "load": ""}
        params.update(more)
        return params

    def gpu_copy(self, repeats):
        rows = []
        for gpu in range(self.options.gpus):
            for node in (0, 1):
                for host, there in ((f"node{node}", f"cuda:{gpu}"), (f"cuda:{gpu}", f"node{node}")):
                    for memory in ("pinned", "pageable"):
                        for size in (4096, 2 ** 20, 2 ** 28):
                            self.case += 1
                            local = "local" if gpu % 2 == node else "remote"
                            rate = 55 * (1 if local == "local" else .77) * (.5 if gpu == self.options.gpus - 1 else 1)
                            rate *= (.3 if memory == "pageable" else 1) * size / (size + 200000)
                            params = self.copy_params(host, there, memory=memory, numa=local, size=size,
                                                      address=gpu_address(gpu))
                            rows += [self.gpu_row(repeat, params, "bandwidth", "GB/s", rate * self.factor, 63.015,
                                                  "sysfs: generation 5 x16") for repeat in range(1, repeats + 1)]
        return rows + self.gpu_peers()

    def gpu_peers(self):
        rows = []
        n = self.options.gpus
        for op, access in (("write", "on"), ("read", "on"), ("write", "off")):
            for i in range(n):
                for k in range(n):
                    far = n > 8 and (k - i) % n not in (1, n // 2, n - 1)
                    if i == k or far:
                        continue
                    self.case += 1
                    links = nvlinks(i, k)
                    rate = (22.5 * links if links else 26 if (i - k) % 2 == 0 else 19) if access == "on" else 12
                    rate *= .6 if (i, k) == (2, 3) and access == "on" else 1
                    params = self.copy_params(f"cuda:{i}", f"cuda:{k}", op=op, access=access, memory="", together="",
                                              address=gpu_address(i) + "+" + gpu_address(k),
                                              path="peer access, rank 0" if access == "on" else "through host memory")
                    rows.append(self.gpu_row(1, params, "bandwidth", "GB/s", rate * self.factor, 25 * links or None,
                                             f"nvml: {links} NVLinks"))
        return rows

    def gpu_launch(self, repeats):
        rows = []
        costs = {"launch": 2.1, "launch-complete": 6.8, "graph": 3.9, "graph-complete": 31, "stream-sync": 1.2,
                 "event": 1.4, "event-query": .4, "alloc": 90, "alloc-ordered": 2.2, "pinned-alloc": 140,
                 "driver-call": 1.9, "copy-small": 7.9}
        for op, cost in costs.items():
            self.case += 1
            params = {"device": "cuda:0", "op": op, "nodes": 20 if "graph" in op else "",
                      "size": 4096 if "alloc" in op else "", "node": "0", "address": gpu_address(0)}
            rows += [self.gpu_row(repeat, params, "latency", "us", cost, None, "")
                     for repeat in range(1, repeats + 1)]
        return rows

    def add_gpus(self, benches):
        if self.options.gpus:
            benches.setdefault("gemm", []).extend(self.gpu_gemm(2))
            benches.setdefault("memory", []).extend(self.gpu_memory(2))
            benches.setdefault("copy", []).extend(self.gpu_copy(1))
            benches["launch"] = self.gpu_launch(2)
        if self.options.no_gpu:
            for bench, params in (("gemm", {"device": "cuda:0", "dtype": "bf16", "library": "cublaslt"}),
                                  ("memory", {"device": "cuda:0", "op": "copy"}),
                                  ("copy", {"source": "node0", "destination": "cuda:0", "direction": "one-way"}),
                                  ("launch", {"device": "cuda:0", "op": "launch"})):
                self.case += 1
                benches.setdefault(bench, []).append(
                    self.row(self.case, 1, params, "throughput" if bench == "gemm" else "bandwidth", "", 1, None,
                             status="skipped", reason=NO_GPU))
        return benches

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
        if self.options.rows <= 3 and not self.options.null:
            return {"gemm": self.gemm([1024], [], 1)[:1],
                    "memory": self.memory([2 ** 27], ["triad", "latency"], ["f64"], ["regular"],
                                          [2], ["thp"], 1)}
        if self.options.null:
            return {"null": self.null(self.options.rows, 1)}
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
        benches = self.add_gpus(self.all_rows())
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
            with open(os.path.join(folder, bench + ".csv"), "w", newline="",
                      encoding="utf-8") as out:
                writer = csv.DictWriter(out, params + self.columns, restval="", lineterminator="\n")
                writer.writeheader()
                for row in rows:
                    writer.writerow({key: f"{value:.9g}" if isinstance(value, float) else value
                                     for key, value in row.items()})
        order = sorted(plan, key=lambda launch: (launch[2], self.random.random()))
        with open(os.path.join(folder, "plan.csv"), "w", encoding="utf-8") as out:
            out.write("state,rows,order,case,repeat,bench,arguments,timeout_s\n")
            for i, (bench, case, repeat) in enumerate(order, 1):
                state, n = plan[bench, case, repeat]
                out.write(f"{state},{n:04},{i},{case},{repeat},{bench},,60\n")
        self.write_meta(folder, benches)

    def write_meta(self, folder, benches):
        machine = machine_with_gpus(self.options.gpus, self.options.simulated) if self.options.gpus else MACHINE
        if self.options.machine:
            with open(self.options.machine, encoding="utf-8") as source:
                machine = json.load(source)
        if self.options.hostile:
            machine = json.loads(json.dumps(machine))
            machine["host"]["hostname"] = HOSTILE
            machine["host"]["clocksource"] = HOSTILE
        meta = {"schema": 3, "program": "plumbline", "version": "0.1.0", "commit": "1234abc",
                "run": HOSTILE if self.options.hostile else self.options.name, "suite": "node",
                "seed": self.options.seed, "command": ["plumb", "run", "node", "--seed",
                                                       str(self.options.seed)],
                "started_utc": "2026-01-02T03:00:00Z", "finished_utc": "2026-01-02T03:20:00Z",
                "state": "complete", "config_hash": "00112233aabbccdd",
                "config": "suite: node\ncases:\n  - bench: memory\n    op: [read, triad]\n",
                "machine": machine, "limits": [], "benchmarks": told(benches)}
        with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as out:
            json.dump(meta, out, indent=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--factor", type=float, default=1.0, help="speed against the other run")
    parser.add_argument("--machine", help="JSON of plumb probe")
    parser.add_argument("--null", action="store_true", help="rows of the null benchmark alone")
    parser.add_argument("--hostile", action="store_true", help="texts that try to break out")
    parser.add_argument("--gpus", type=int, default=0, help="rows of so many GPUs beside the host's")
    parser.add_argument("--simulated", action="store_true", help="the GPUs are simulated ones")
    parser.add_argument("--no-gpu", action="store_true", help="rows that were skipped for want of a GPU")
    options = parser.parse_args()
    options.name = os.path.basename(os.path.normpath(options.folder))
    Maker(options).write()


if __name__ == "__main__":
    main()
