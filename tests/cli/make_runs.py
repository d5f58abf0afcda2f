#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a run folder whose cases' levels, spreads and changes are known, for tests of verdicts.

Values are log-normal: a case's level
is the same in every run, a launch's is drawn around it.

usage: make_runs.py DIR [--cases 3|50|300] [--launches N] [--spread S] [--seed N] [--level-spread S] [--run-spread S] [--machine bare|guest]
                    [--shift PATTERN=FACTOR]... [--fail PATTERN]... [--skip PATTERN]... [--drop PATTERN]...
                    [--value PATTERN=TEXT]... [--isa PATTERN=NAME]... [--fact host.kernel=TEXT]...
                    [--steal PATTERN=PERCENT[@N]]... [--origin TEXT] [--schema N] [--margin M] [--empty]
With --steal others take so much of the CPU in the first N launches of a case, or in all, which halves their values.
PATTERNs are as in a shell, on "bench words of the case", such as "memory triad 1073741824 bandwidth"; a FACTOR below 1 is a
loss, of what is better when low, too.
"""
import argparse
import fnmatch
import json
import math
import os
import random
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT + "/tests/tools")
from run_folder import row_columns, write_meta, write_plan, write_rows  # noqa: E402 pylint: disable=wrong-import-position

BARE = {
    "host": {"hostname": "node7", "kernel": "6.1.0-18-amd64", "architecture": "x86_64",
             "distro": "Debian GNU/Linux 12 (bookworm)"},
    "virtualization": {"hypervisor": "none", "guest": False, "container": "none", "because": [],
                       "container_because": []},
    "cpu": {"vendor": "AuthenticAMD", "model": "AMD EPYC 9654", "sockets": 2, "cores": 64, "threads": 128,
            "clock": {"governors": ["performance"], "drivers": ["amd-pstate"], "max_mhz": 3700}},
    "caches": [], "memory": {"total_bytes": 1 << 39, "transparent_huge_pages": {"enabled": "always"}},
    "numa": {"nodes": [{"node": 0, "cpus": "0-63"}, {"node": 1, "cpus": "64-127"}]},
    "network": [{"name": "eth0", "virtual": False, "driver": "mlx5_core", "speed_gbits_per_s": 200}],
    "gpus": {"nvml": True, "driver_version": "580.95",
             "devices": [{"name": "NVIDIA H200", "address": "0000:1b:00.0", "numa_node": 0, "nature": "physical"}]},
}


def guest():
    machine = json.loads(json.dumps(BARE))
    machine["host"]["hostname"] = "guest3"
    machine["virtualization"].update(hypervisor="kvm", guest=True)
    machine["cpu"]["clock"].update(governors=[], drivers=[], max_mhz=None)
    machine["numa"]["nodes"] = [{"node": 0, "cpus": "0-127"}]
    machine["network"][0].update(driver="virtio_net", virtual=True, speed_gbits_per_s=None)
    machine["gpus"]["driver_version"] = "575.57"
    return machine


def memory(n):
    sizes = [2 ** e for e in range(30, 12, -1)]
    for i in range(n):
        op = ("triad", "read", "copy", "write", "add", "scale")[i % 6]
        size = sizes[i // 6 % 18]
        threads = 2 + i // 108
        yield "memory", {"op": op, "dtype": "f64", "stores": "regular", "pages": "thp", "threads": threads, "node": "any",
                         "memory_node": "local", "size": size, "level": "auto", "level_used": "DRAM", "isa": "auto",
                         "isa_used": "avx512", "working_set": size,
                         "bytes_rule": "stream", "write_allocate": "yes"}, "bandwidth", "GB/s", 20 + i, f"{op} {size}", {}


def gemm(n):
    for i in range(n):
        m, dtype = 256 * (i // 4 + 1), ("f32", "bf16", "int8", "f64")[i % 4]
        yield "gemm", {"dtype": dtype, "library": "onednn", "threads": "auto", "threads_used": 64, "m": m, "n": m, "k": m, "accumulate": "f32",
                       "cpus": "0-63", "kernel": "avx512"}, "throughput", "TFLOP/s", 2 + .1 * i, f"{dtype} {m}", {}


def copy(n):
    """To the GPU over PCIe, and every third one between two GPUs over NVLink."""
    for i in range(n):
        size = 2 ** (28 - i // 3 % 20)
        pair = i % 3 == 2
        source, destination = ("node0", "cuda:0") if i % 3 == 0 else ("cuda:0", "node0")
        if pair:
            source, destination = "cuda:0", f"cuda:{1 + i // 60}"
        yield "copy", {"engine": "ce", "source": source, "destination": destination, "direction": "one-way",
                       "memory": "" if pair else "pinned", "op": "write" if pair else "", "access": "on" if pair else "",
                       "together": "none", "size": size, "address": "0000:1b:00.0", "numa": "", "path": "",
                       "clock": "events", "load": "" if pair else f"alone{i // 60 or ''}"}, "bandwidth", "GB/s", 55 - .1 * i, \
            f"{source} {destination} {size}", {"limit": 450 if pair else 63, "limit_link": "nvlink" if pair else "pcie",
                                               "limit_source": "nvml: 18 NVLinks" if pair else "sysfs: generation 5 x16"}


def net(n):
    for i in range(n):
        transport, pattern = ("tcp", "rdma")[i % 2], "latency" if i % 4 > 1 else "bandwidth"
        size = 2 ** (20 - i // 4 % 18)
        yield "net", {"transport": transport, "pattern": pattern, "streams": 1 + i // 72, "direction": "one-way",
                      "size": size, "peer_host": "node8", "cpus": "0>1", "detail": "eth0"}, pattern, \
            "us" if pattern == "latency" else "Gb/s", 5 + .1 * i if pattern == "latency" else 180 - i, \
            f"{transport} {size}", {}


def allreduce(n):
    for i in range(n):
        size, ranks = 2 ** (28 - i // 3 % 20), (2, 4, 8)[i % 3]
        yield "allreduce", {"backend": "own", "transport": ("tcp", "rdma")[i // 60 % 2], "ranks": ranks, "scope": "between",
                            "op": "allreduce", "dtype": "f32", "size": size, "nodes": 2, "vector_bytes": size}, "time", \
            "us", 20 - .05 * i, f"{ranks} {size}", {}


PARTS = {3: ((memory, 1), (copy, 1), (allreduce, 1)),
         50: ((gemm, 8), (memory, 14), (copy, 12), (net, 8), (allreduce, 8)),
         300: ((gemm, 40), (memory, 120), (copy, 60), (net, 40), (allreduce, 40))}


def arguments(bench, params):
    """As a suite asks for the case: its parameters, but what it leaves to the benchmark (isa) and what follows."""
    asked = {"memory": ("op", "threads", "size"), "gemm": ("dtype", "library", "m"),
             "copy": ("source", "destination", "memory", "size", "load"), "net": ("transport", "pattern", "streams", "size"),
             "allreduce": ("transport", "ranks", "size")}[bench]
    return " ".join(f"--{name.replace('_', '-')} {params[name]}" for name in asked if params.get(name, "") != "")


class Maker:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.columns = row_columns()

    def matching(self, given, name):
        return [value for pattern, _, value in (text.rpartition("=") if "=" in text else (text, "", "yes") for text in given)
                if fnmatch.fnmatch(name, pattern)]

    def row(self, case, repeat, params, metric, unit, level, name, more):
        o = self.options
        row = dict.fromkeys(self.columns, "")
        row.update(params)
        value = level * math.exp(self.random.gauss(0, o.spread))
        row.update(metric=metric, unit=unit, value=value, ci_low=value * .998, ci_high=value * 1.002, confidence=.95,
                   samples=100, discarded=3, inner_repeat=8, stop="converged", origin=o.origin, status="ok",
                   run=o.name, case=case, repeat=repeat, host="node7", time_utc="2026-01-02T03:04:05Z", **more)
        if row["limit"]:
            row["percent_of_limit"] = 100 * value / row["limit"]
        for text in self.matching(o.steal, name):
            percent, _, launches = text.partition("@")
            if repeat <= int(launches or repeat):
                row.update(steal_percent=percent, value=value / 2)
        for text in self.matching(o.value, name):
            row["value"] = text
        for text in self.matching(o.isa, name):
            row["isa_used"] = text
        state = ("failed" if self.matching(o.fail, name) else "skipped" if self.matching(o.skip, name) else "")
        if state:
            for column in self.columns:
                if column not in ("metric", "unit", "origin", "run", "case", "repeat", "host", "time_utc"):
                    row[column] = ""
            row.update(status=state, reason="the peer is gone" if state == "failed" else "no such device here")
        return row, {"failed": "fail", "skipped": "skip"}.get(state, "done")

    def all_cases(self):
        for part, n in PARTS[self.options.cases]:
            yield from part(n)

    def write(self):
        o, rows, plan = self.options, {}, []
        os.makedirs(o.folder, exist_ok=True)
        moved = math.exp(self.random.gauss(0, o.level_spread)) if o.level_spread else 1
        for case, (bench, params, metric, unit, level, words, more) in enumerate(self.all_cases(), 1):
            name = f"{bench} {words} {metric}"
            if o.empty or self.matching(o.drop, name):
                continue
            factor = moved * (math.exp(self.random.gauss(0, o.run_spread)) if o.run_spread else 1)
            for text in self.matching(o.shift, name):
                factor *= float(text)
            for repeat in range(1, o.launches + 1):
                row, state = self.row(case, repeat, params, metric, unit, level / factor if unit == "us" else level * factor,
                                      name, more)
                rows.setdefault(bench, []).append(row)
                plan.append((state, case, repeat, bench, arguments(bench, params)))
        for bench, all_rows in rows.items():
            params = [name for name in all_rows[0] if name not in self.columns]
            write_rows(o.folder, bench, params + self.columns, all_rows)
        write_plan(o.folder, [(state, 1, case, repeat, bench, words, o.margin) for state, case, repeat, bench, words
                              in sorted(plan, key=lambda p: p[2])], ",margin")
        machine = guest() if o.machine == "guest" else json.loads(json.dumps(BARE))
        for path, _, value in (text.partition("=") for text in o.fact):
            *rooms, name = path.split(".")
            part = machine
            for room in rooms:
                part = part.setdefault(room, {})
            part[name] = value
        write_meta(o.folder, machine, {row[3] for row in plan}, schema=o.schema, run=o.name, seed=o.seed,
                   started_utc=f"2026-01-02T03:{o.seed % 60:02}:00Z", finished_utc="2026-01-02T03:59:00Z")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--cases", type=int, default=50, choices=sorted(PARTS))
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--spread", type=float, default=.005, help="between launches, of the logarithm")
    parser.add_argument("--level-spread", type=float, default=0, help="between runs, of all cases at once")
    parser.add_argument("--run-spread", type=float, default=0, help="between runs, of each case by itself")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--machine", choices=("bare", "guest"), default="bare")
    parser.add_argument("--origin", default="measured")
    parser.add_argument("--margin", default="", help="of every case, as the suite says it: 0.02")
    parser.add_argument("--schema", type=int, default=3)
    parser.add_argument("--empty", action="store_true", help="no row at all")
    for name in ("shift", "fail", "skip", "drop", "value", "isa", "fact", "steal"):
        parser.add_argument("--" + name, action="append", default=[])
    options = parser.parse_args()
    options.name = os.path.basename(os.path.normpath(options.folder))
    Maker(options).write()


if __name__ == "__main__":
    main()
