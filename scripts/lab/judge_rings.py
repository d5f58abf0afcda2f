# SPDX-License-Identifier: Apache-2.0
"""The step of scripts/check-forecast that holds plumb forecast against SimGrid; see there.

judge_rings.py PLUMB RINGS FOLDER MOST

RINGS is scripts/lab/rings.c, compiled. Sums of up to MOST / 8 ranks are simulated, and become a run below FOLDER. From it `plumb forecast` says
how long sums and steps of up to MOST ranks take, and SimGrid simulates these.
"""
import argparse
import importlib
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/tools"))
cluster = importlib.import_module("make-cluster")

plumb, rings, folder, most = *sys.argv[1:4], int(sys.argv[4])
RATE, LATENCY = 12.5e9, 5e-6  # of a host's link, each way: bytes a second, seconds
LAYERS, FORWARD, BACKWARD = 4, 0.004, 0.008
BUCKET = 1 << 24
ALLOWED = 0.02
holds = True


def judge(good, text):
    global holds
    holds = holds and good
    print(f"{'good' if good else 'BAD '}  {text}")


def simulate(ranks, layers, size, forward=0, backward=0, slower=1):
    """Seconds. Compute is a wait; no factor of SimGrid's that imitates TCP is left."""
    words = [rings, os.path.join(folder, "platform.xml"), ranks, layers, size, forward, backward, slower, "--cfg=network/model:CM02",
             "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:0", "--cfg=contexts/stack-size:64", "--log=root.thres:error"]
    return float(subprocess.run(list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True).stdout)


def write_platform():
    with open(os.path.join(folder, "platform.xml"), "w", encoding="ascii") as out:
        out.write("<?xml version='1.0'?><!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'><platform version='4.1'>"
                  f"<cluster id='c' prefix='h' suffix='' radical='0-{most - 1}' speed='1Gf' bw='{RATE}Bps' lat='{LATENCY}s'"
                  " sharing_policy='SPLITDUPLEX'/></platform>\n")


def write_run():
    """Sums of 1 MiB to 64 MiB over 2 to most / 8 ranks, and an overlap of 100 %: in SimGrid compute and messages share nothing."""
    maker = cluster.Maker(argparse.Namespace(seed=1, noise=0.001, name="simulated", per_node=1, launches=1, two_levels=False, above=False, hosts=8,
                                             late_rank=None))

    def params(ranks, size, **more):
        return dict(backend="ring", transport="tcp", op="allreduce", dtype="f32", redop="sum", size=size, ranks=ranks, fill="node", scaling="weak",
                    nodes=ranks, vector_bytes=size, **more)

    ranks = 2
    while ranks <= most // 8:
        for size in (1 << 20, 1 << 22, 1 << 24, 1 << 26):
            maker.case += 1
            maker.add("allreduce", params(ranks, size), "time", "us", 1e6 * simulate(ranks, 1, size), origin="simulated")
        ranks *= 2
    maker.case += 1
    maker.add("allreduce", params(ranks // 2, 1 << 26, overlap="true"), "overlap", "percent", 100, origin="simulated", width=0)
    maker.options.folder = os.path.join(folder, "run")
    maker.write()


def forecast(*words):
    at = [str(most >> shift) for shift in (2, 1, 0)]
    done = subprocess.run([plumb, "forecast", "run", "--model", "./blocks.csv", "--update", "none", "--core", "full", "--bucket", str(BUCKET),
                           "--nodes", ",".join(at), "--json", *words], check=True, cwd=folder, stdout=subprocess.PIPE, text=True)
    return {int(point["ranks"]): point for point in json.loads(done.stdout)["points"]}


def hold(name, points, simulated):
    for ranks, point in points.items():
        if "refused" in point:
            judge(False, f"{name}, {ranks} ranks: no forecast ({point['refused']})")
            continue
        truth = simulated(ranks)
        ratio = point["step_s"] / truth
        judge(abs(ratio - 1) <= ALLOWED, f"{name}, {ranks} ranks: forecast {1e3 * point['step_s']:.3f} ms, SimGrid {1e3 * truth:.3f} ms: {ratio:.4f}")


def main():
    write_platform()
    with open(os.path.join(folder, "blocks.csv"), "w", encoding="ascii") as out:
        out.write(f"block,layer,parameters,m,n,k\n0..{LAYERS - 1},l.{{}},{BUCKET // 4},1,1000,1000\n")
    write_run()
    total = LAYERS * (FORWARD + BACKWARD)
    # what compute does not take is sums: with a nanosecond of compute these are alone
    hold("sums alone", forecast("--compute", "1ns", "--no-overlap"), lambda ranks: simulate(ranks, LAYERS, BUCKET))
    hold("a step", forecast("--compute", f"{1e3 * total}ms"), lambda ranks: simulate(ranks, LAYERS, BUCKET, FORWARD, BACKWARD))
    slow = forecast("--compute", f"{1e3 * total}ms")[most // 2]
    truth = simulate(most // 2, LAYERS, BUCKET, FORWARD, BACKWARD, 1.05)
    judge(slow["step_low_s"] <= truth <= slow["step_high_s"],
          f"a step, {most // 2} ranks, one of them 5 % slower: SimGrid {1e3 * truth:.3f} ms, {truth / slow['step_s']:.4f} of the forecast; "
          f"its interval is {slow['step_low_s'] / slow['step_s']:.3f} to {slow['step_high_s'] / slow['step_s']:.3f}")
    return 0 if holds else 1


sys.exit(main())
