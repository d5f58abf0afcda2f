# SPDX-License-Identifier: Apache-2.0
"""What PyTorch reaches on a GPU: the peer of scripts/peer-gpu.

usage: torch_gpu.py matmul SIZE SECONDS | torch_gpu.py copy BYTES SECONDS

Prints the median of its samples: TFLOP/s of a bf16 torch.matmul of random SIZE x SIZE matrices, or GB/s, read and written
bytes both counted, of torch's copy between two buffers on the device. Timed by CUDA events around ten calls, so that the
cost of a call is out of it; operands rotate through more than the second-level cache holds.
"""
import statistics
import sys
import time

import torch

CALLS = 10


def sample(call, first):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(2_000_000)  # holds the stream until all calls are queued
    begin.record()
    for i in range(CALLS):
        call(first + i)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000 / CALLS


def median_seconds(call, seconds):
    until, times, i = time.monotonic() + seconds / 4, [], 0
    while time.monotonic() < until:
        sample(call, i)
        i += CALLS
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(times) < 5:
        times.append(sample(call, i))
        i += CALLS
    return statistics.median(times)


def matmul(size, seconds):
    l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
    sets = max(2, 3 * l2 // (6 * size * size) + 1)
    operands = []
    for _ in range(sets):
        a = (torch.rand(size, size, device="cuda") * 2 - 1).to(torch.bfloat16)
        b = (torch.rand(size, size, device="cuda") * 2 - 1).to(torch.bfloat16)
        operands.append((a, b, torch.empty_like(a)))

    def call(i):
        a, b, c = operands[i % sets]
        torch.matmul(a, b, out=c)

    return 2 * size**3 / median_seconds(call, seconds) / 1e12


def copy(size, seconds):
    a = torch.randint(0, 255, (size,), dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    return 2 * size / median_seconds(lambda _: b.copy_(a), seconds) / 1e9


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("matmul", "copy"):
        sys.exit(__doc__)
    work = {"matmul": matmul, "copy": copy}[sys.argv[1]]
    print(f"{work(int(sys.argv[2]), float(sys.argv[3])):.6g}")


main()
