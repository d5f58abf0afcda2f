#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a run folder of a made-up cluster: rows of allreduce, and of net between all hosts, as tests of the report need them.

Times follow the latency-bandwidth model exactly but for a seeded noise, so that what the report fits is known.

usage: make-cluster.py DIR [--rows 3|300] [--seed N] [--noise 0.003]
         [--slow-host N] [--late-rank R] [--two-levels] [--above] [--per-node N]
"""
import argparse
import math
import os
import random

from run_folder import row_columns, write_meta, write_plan, write_rows

COLUMNS = row_columns()

PARAMS = ("backend transport device op dtype redop size ranks fill scaling in_place segment algorithm gap overlap model bucket buffer nodes vector_bytes "
          "chosen detail rank rank_host scope").split()
NET = ("transport pattern direction size streams from to side scope rail peer_host cpus detail peer_detail").split()
LINK = 0.11955  # GB/s: what TCP carries of 1 Gbit/s
# Of each way: us a message, GB/s.
WAYS = {("ring", "tcp"): (38.0, 0.1180), ("ring", "rdma"): (6.5, 0.1192), ("mpi", ""): (45.0, 0.1100)}
MODELS = {"resnet50": 25557032, "bert-large": 335141888}


class Maker:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.ranks = [2 ** i for i in range(1, options.hosts.bit_length())]
        self.rows = {"allreduce": [], "net": []}
        self.case = 0

    def noise(self):
        return math.exp(self.random.gauss(0, self.options.noise))

    def add(self, bench, params, metric, unit, value, limit=None, source="", width=None, **more):
        width = 2 * self.options.noise if width is None else width
        row = dict.fromkeys(COLUMNS, "")
        row.update(params)
        row.update(metric=metric, unit=unit, value=f"{value:.9g}", stop="converged", origin="measured", status="ok",
                   run=self.options.name, case=self.case, repeat=1, host="node1", time_utc="2026-01-02T03:04:05Z")
        if width is not False:
            row.update(ci_low=f"{value * (1 - width):.9g}", ci_high=f"{value * (1 + width):.9g}", confidence=.95, samples=60)
        if limit:
            row.update(limit=limit, limit_source=source, percent_of_limit=f"{100 * value / limit:.9g}")
        row.update(more)
        self.rows[bench].append(row)

    def point(self, backend, transport, ranks, size, scaling="weak", **more):
        latency, rate = WAYS[(backend, transport)]
        self.case += 1
        params = dict(backend=backend, transport=transport, op="allreduce", dtype="f32", redop="sum", size=size, ranks=ranks,
                      fill="node", scaling=scaling, nodes=math.ceil(ranks / self.options.per_node), vector_bytes=size, chosen=f"{backend}, segments of 256K",
                      detail="cubic, MSS 1448" if transport == "tcp" else "")
        params["buffer"] = 0 if transport == "tcp" else ""
        params.update(more)
        us = (2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * size / rate / 1000) * self.noise() if ranks > 1 else size / 8000
        self.times(params, us, ranks, size)

    def times(self, params, us, ranks, size):
        levels = {}
        two = self.options.two_levels and params["backend"] == "mpi" and ranks == 4 and size >= 2 ** 20
        if two:
            levels = dict(level_low=us, level_low_share=.62, level_high=1.5 * us, level_high_share=.38)
        self.add("allreduce", params, "time", "us", us, **levels)
        if ranks < 2 or params.get("model"):
            return
        bus = 2 * (ranks - 1) / ranks * size / us / 1000
        if two:
            levels = dict(level_low=bus / 1.5, level_low_share=.38, level_high=bus, level_high_share=.62)
        above = self.options.above and params["backend"] == "ring" and size >= 2 ** 26
        self.add("allreduce", params, "busbw", "GB/s", bus, LINK / 1.3 if above else LINK, "sysfs: 1 Gb/s, payload of TCP", **levels)
        self.add("allreduce", params, "algbw", "GB/s", size / us / 1000)
        for rank in range(ranks) if params["backend"] == "ring" else []:
            late = 83 if rank == self.options.late_rank else 100 / ranks
            late = min(max(late * (1 + self.random.gauss(0, .05)), 0), 100)
            of = dict(params, rank=rank, rank_host=f"node{rank + 1}")
            self.add("allreduce", of, "late_share", "percent", late, width=False)
            self.add("allreduce", of, "waited_share", "percent", 4 if rank == self.options.late_rank else 30, width=False)

    def gradients(self, ranks):
        for (backend, transport), (latency, rate) in WAYS.items():
            for model, parameters in MODELS.items():
                for mib in (1, 4, 16, 25, 64, 256):
                    self.case += 1
                    calls = math.ceil(4 * parameters / (mib << 20))
                    us = 2 * (ranks - 1) * latency * calls + 1.5 * 4 * parameters / rate / 1000 + 300 * mib
                    self.times(dict(backend=backend, transport=transport, op="allreduce", dtype="f32", redop="sum", size="", ranks=ranks,
                                    fill="node", scaling="weak", nodes=ranks, model=model, bucket=mib << 20), us * self.noise(), ranks, 0)

    def links(self, hosts):
        for i in range(1, hosts + 1):
            for k in range(1, hosts + 1):
                if i >= k:
                    continue
                slow = self.options.slow_host in (i, k)
                base = dict(transport="tcp", direction="forward", streams=1, peer_host=f"node{k}", detail="eth0 cubic, MSS 1448",
                            peer_detail="eth0", **{"from": f"node{i}", "to": f"node{k}"})
                for size in (65536, 2 ** 20):
                    for direction in ("forward", "reverse"):
                        self.case += 1
                        rate = LINK * (.53 if slow else .985) * self.noise() * (1 if size > 65536 else .9)
                        self.add("net", dict(base, pattern="bandwidth", direction=direction, size=size), "bandwidth", "Gb/s", 8 * rate, 8 * LINK,
                                 "sysfs: eth0")
                self.case += 1
                self.add("net", dict(base, pattern="latency", size=8), "latency", "us", 31 * self.noise() * (1.02 if slow else 1))

    def make(self):
        if self.options.rows <= 3:
            for ranks in self.ranks:
                self.point("ring", "tcp", ranks, 2 ** 26)
            self.rows["allreduce"] = [r for r in self.rows["allreduce"] if r["metric"] in ("time", "busbw")]
            return
        for backend, transport in WAYS:
            for ranks in [1, *self.ranks]:
                for exponent in range(3, 28, 4 if transport == "" else 2):
                    self.point(backend, transport, ranks, 2 ** exponent)
        self.gradients(8)
        self.links(6)

    def launched(self, row):
        """A row as three launches, whose interval by Student's t is the one that the row has."""
        if self.options.launches == 1 or not row["value"] or not row["ci_high"]:
            return [row]
        step = math.log(float(row["ci_high"]) / float(row["value"])) * math.sqrt(3) / 4.302652729911275
        return [{**row, "repeat": k + 2, "value": f"{float(row['value']) * math.exp(k * step):.9g}"} for k in (-1, 0, 1)]

    def write(self):
        os.makedirs(self.options.folder, exist_ok=True)
        plan = {}
        self.rows = {bench: [one for row in rows for one in self.launched(row)] for bench, rows in self.rows.items()}
        for bench, rows in self.rows.items():
            if not rows:
                continue
            for row in rows:
                launch = (bench, row["case"], row["repeat"], row.get("from", ""), row.get("to", ""))
                plan[launch] = plan.get(launch, 0) + 1
            write_rows(self.options.folder, bench, (PARAMS if bench == "allreduce" else NET) + COLUMNS, rows)
        group = ";".join(f"node{i}" for i in range(1, self.options.hosts + 1))
        write_plan(self.options.folder, [("done", n, case, repeat, bench, "", source, to, group if bench == "allreduce" else "")
                                         for (bench, case, repeat, source, to), n in plan.items()], ",from,to,hosts")
        hosts = [{"name": f"node{i}", "address": f"10.0.0.{i}", "this_machine": i == 1, "version": "0.1.0", "slots": 2,
                  "clock_offset_s": -.001 * i, "clock_known_to_s": .02, "networks": [{"name": "down0", "speed_mbps": 10000, "addresses": []},
                  {"name": "eth0", "speed_mbps": 1000, "addresses": [f"10.0.0.{i}"]}, {"name": "mlx5_0:1", "speed_mbps": 100000, "addresses": []}]}
                 for i in range(1, self.options.hosts + 1)]
        write_meta(self.options.folder, {"host": {"hostname": "node1"}}, ("allreduce", "gemm", "memory", "net", "step"),
                   run=self.options.name, suite="cluster", config="", hosts={"launcher": "ssh", "list": hosts})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", type=float, default=.003)
    parser.add_argument("--slow-host", type=int)
    parser.add_argument("--late-rank", type=int)
    parser.add_argument("--two-levels", action="store_true")
    parser.add_argument("--launches", type=int, choices=(1, 3), default=1)
    parser.add_argument("--above", action="store_true")
    parser.add_argument("--per-node", type=int, default=1)
    options = parser.parse_args()
    options.name = os.path.basename(os.path.normpath(options.folder))
    maker = Maker(options)
    maker.make()
    maker.write()


if __name__ == "__main__":
    main()
