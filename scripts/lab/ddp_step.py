# SPDX-License-Identifier: Apache-2.0
"""A training step of PyTorch's DistributedDataParallel over gloo, with compute of a stated length: the peer of plumb-step.

ddp_step.py --model FILE --steps N [--watch] MS:BYTES...

One rank; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which, GLOO_SOCKET_IFNAME the link. FILE is a model as in configs/models/:
each of its lines is a tensor with a gradient. A case is MS of compute and buckets of BYTES. Forward and backward pass of a line take
its share of MS: its operations over those of all. A pass ends at its time after the start of the step, however long the host takes for
the framework's own work meanwhile, as on an accelerator. Rank 0 prints a line for each case: MS:BYTES, the median ms of the slowest
rank in a step, the MB that its link sent in a step, and the sizes of the buckets, in the order in which they are summed.
--watch: and when each bucket was whole in the last rank, in ms of the step, which a hook notes.
"""
import argparse
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from model_lines import tensors  # noqa: E402

WARMUP = 2  # the first step sums one bucket of all, then they are made anew


class Clock:
    """Where the compute of this step has come to."""

    def start(self):
        self.at = self.begin = time.monotonic()

    def take(self, seconds):
        self.at += seconds
        while (left := self.at - time.monotonic()) > 0:
            time.sleep(left)


class Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, clock, forth, back):
        ctx.clock, ctx.back = clock, back
        ctx.shape = None if weight is None else weight.shape
        clock.take(forth)
        return x + 1

    @staticmethod
    def backward(ctx, grad):
        ctx.clock.take(ctx.back)
        mine = None if ctx.shape is None else torch.full((1,), float(dist.get_rank() + 1)).expand(ctx.shape)
        return grad, mine, None, None, None


class Model(torch.nn.Module):
    def __init__(self, lines, seconds):
        super().__init__()
        per_operation = seconds / sum(forth + back for _, forth, back in lines)
        self.clock = Clock()
        self.lines = [(n, forth * per_operation, back * per_operation) for n, forth, back in lines]
        self.weights = torch.nn.ParameterList(torch.zeros(n) for n, _, _ in lines if n)

    def forward(self, x):
        weights = iter(self.weights)
        for n, forth, back in self.lines:
            x = Pass.apply(x, next(weights) if n else None, self.clock, forth, back)
        return x


def sent_bytes():
    with open(f"/sys/class/net/{os.environ['GLOO_SOCKET_IFNAME']}/statistics/tx_bytes", encoding="ascii") as count:
        return int(count.read())


def step(ddp, x):
    """Seconds of the slowest rank, from a barrier."""
    ddp.zero_grad(set_to_none=True)
    dist.barrier()
    begin = time.monotonic()
    ddp.module.clock.start()
    ddp(x).sum().backward()
    took = torch.tensor([time.monotonic() - begin], dtype=torch.float64)
    dist.all_reduce(took, dist.ReduceOp.MAX)
    return took.item()


def check(ddp, divided_by):
    n = dist.get_world_size()
    for weight in ddp.module.weights:
        if not torch.all(weight.grad == n * (n + 1) / 2 / divided_by):
            sys.exit("ddp_step: a gradient is not what all ranks' make")


def watched(clock, whole):
    """A hook that sums a bucket as DDP does, and notes when it was whole, in ms of the step. It leaves the division out."""

    def hook(_, bucket):
        whole[bucket.index()] = 1e3 * (time.monotonic() - clock.begin)
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda done: done.value()[0])

    hook.__annotations__ = {"bucket": dist.GradBucket, "return": torch.futures.Future[torch.Tensor]}
    return hook


def measure(lines, case, steps, watch):
    compute, bucket = case.split(":")
    ddp = torch.nn.parallel.DistributedDataParallel(
        Model(lines, float(compute) / 1e3), bucket_cap_mb=int(bucket) / 2**20, gradient_as_bucket_view=True
    )
    whole, seen = {}, []
    if watch:
        ddp.register_comm_hook(None, watched(ddp.module.clock, whole))
    x = torch.zeros(1, requires_grad=True)
    for _ in range(WARMUP):
        step(ddp, x)
    before, times = sent_bytes(), []
    for _ in range(steps):
        whole.clear()
        times.append(1e3 * step(ddp, x))
        seen.append([whole[at] for at in sorted(whole)])
    moved = (sent_bytes() - before) / 1e6 / steps
    check(ddp, 1 if watch else dist.get_world_size())
    told = ddp._get_ddp_logging_data()
    sizes = (told.get("rebuilt_bucket_sizes") or told["bucket_sizes"]).replace(" ", "")
    last = torch.tensor(seen, dtype=torch.float64)
    dist.all_reduce(last, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        at = ",".join(f"{ms:.1f}" for ms in last.median(0).values.tolist()) if watch else "-"
        print(case, f"{statistics.median(times):.3f} {moved:.3f} {sizes} {at}", flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--model", required=True)
    options.add_argument("--steps", type=int, required=True)
    options.add_argument("--watch", action="store_true")
    options.add_argument("cases", nargs="+")
    options = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    lines = tensors(options.model)
    for case in options.cases:
        measure(lines, case, options.steps, options.watch)
    dist.destroy_process_group()


main()
