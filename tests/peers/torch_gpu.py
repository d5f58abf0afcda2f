# SPDX-License-Identifier: Apache-2.0
"""What PyTorch reaches on a GPU: the peer of scripts/peer-gpu.

usage: torch_gpu.py matmul[-TYPE] SIZE SECONDS | torch_gpu.py copy BYTES SECONDS

Prints the median of its samples: TFLOP/s of a torch.matmul (bf16, or TYPE: f16, tf32, f32, f64; e4m3 by torch._scaled_mm with
fast sums, int8 by torch._int_mm) of random SIZE x SIZE matrices, or GB/s, read and written
bytes both counted, of torch's copy between two buffers on the device; then what computed it, with its versions. Timed by CUDA events around ten calls, so that the
cost of a call is out of it; operands rotate through more than the second-level cache holds.
"""
import ctypes
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


def random(size, dtype=torch.float32):
    return torch.rand(size, size, device="cuda", dtype=dtype) * 2 - 1


def plain(dtype):
    def operands(size):
        # All bits of f64 are random, as ours: at its power cap a GPU is faster with zeros.
        a, b = (random(size, torch.float64 if dtype == torch.float64 else torch.float32).to(dtype) for _ in range(2))
        c = torch.empty_like(a)
        return lambda: torch.matmul(a, b, out=c)

    return operands


def scaled(size):
    a, b = random(size).to(torch.float8_e4m3fn), random(size).to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)


def whole(size):
    a, b = (torch.randint(-127, 128, (size, size), dtype=torch.int8, device="cuda") for _ in range(2))
    return lambda: torch._int_mm(a, b.t())


PRODUCTS = {"bf16": plain(torch.bfloat16), "f16": plain(torch.float16), "tf32": plain(torch.float32), "f32": plain(torch.float32),
            "f64": plain(torch.float64), "e4m3": scaled, "int8": whole}
BYTES = {"bf16": 6, "f16": 6, "tf32": 12, "f32": 12, "f64": 24, "e4m3": 4, "int8": 6}  # of the three entries


def matmul(kind, size, seconds):
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)
    sets = max(2, 3 * l2 // (BYTES[kind] * size * size) + 1)
    products = [PRODUCTS[kind](size) for _ in range(sets)]
    return 2 * size**3 / median_seconds(lambda i: products[i % sets](), seconds) / 1e12


def copy(size, seconds):
    a = torch.randint(0, 255, (size,), dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    return 2 * size / median_seconds(lambda _: b.copy_(a), seconds) / 1e9


def libraries():
    """torch, and the cuBLASLt that it has loaded by now."""
    words = [f"torch {torch.__version__}"]
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next((line.split()[-1] for line in maps if "libcublasLt.so" in line), "")
    if path:
        version = ctypes.CDLL(path).cublasLtGetVersion()
        words.append(f"cuBLASLt {version // 10000}.{version // 100 % 100}.{version % 100}")
    return ", ".join(words)


def main():
    name, _, kind = (sys.argv + [""])[1].partition("-")
    if len(sys.argv) != 4 or name not in ("matmul", "copy") or (kind or "bf16") not in PRODUCTS:
        sys.exit(__doc__)
    size, seconds = int(sys.argv[2]), float(sys.argv[3])
    print(f"{copy(size, seconds) if name == 'copy' else matmul(kind or 'bf16', size, seconds):.6g} {libraries()}")


main()
