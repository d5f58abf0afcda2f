#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb run on simulated GPUs: suites that find them, pairs, limits, faults, and what is said where there is none.

load common
load ../sim/env
load run-gpu

# The repository's machine with so many GPUs.
many() {
    printf '[machine]\ngpus = %s\n' "$1" > "$work/many.conf"
    in_work "$work/many.conf"
}

@test "a matrix of eight GPUs: every pair has the configured rate, limit and origin; the summary and the page show it" {
    in_work eight
    suite <<< '  - {bench: copy, engine: ce, source: gpus, destination: gpus, op: write, access: "on", size: 4M}'
    "$plumb" run t.yaml --out r > said
    python3 - <<'END'
import csv
links = {(0, 1): 45, (2, 3): 45, (4, 5): 23, (0, 2): 23, (4, 6): 23}
def expected(i, k):
    i, k = sorted((i, k))
    if (i, k) == (3, 4):
        return None
    return links.get((i, k)) or (12 if i // 2 == k // 2 else 9 if i // 4 == k // 4 else 7)
rows = list(csv.DictReader(open("r/copy.csv")))
assert len(rows) == 56, len(rows)
for row in rows:
    i, k = int(row["source"][5:]), int(row["destination"][5:])
    assert row["origin"] == "simulated", row
    wanted = expected(i, k)
    if wanted is None:
        assert row["status"] == "skipped" and "peer access" in row["reason"], row
        continue
    assert abs(float(row["value"]) / wanted - 1) < 0.05, (i, k, row["value"], wanted)
    limit = 50 if wanted == 45 else 25 if wanted == 23 else 15.7538
    assert abs(float(row["limit"]) / limit - 1) < 1e-3 and row["limit_source"].startswith("nvml"), (i, k, row["limit"], row["limit_source"])
END
    flat said >unbroken
    grep -q 'GPU to GPU by .*GB/s.* simulated' unbroken
    [ "$(grep -c 'GB/s' said)" -eq "$(grep -c 'GB/s.*simulated' said)" ]
    [ "$(grep -o ' n/a' said | wc -l)" -eq 2 ]
    grep -q ": 56 of 56 .*<b>copy</b>" r/report.html
    [ "$(grep -c '<figure class=.matrix.>' r/report.html)" -eq 1 ]
    grep -q "<figcaption><b>bandwidth (GB/s)</b>.*<span class='badge'>simulated</span>" r/report.html
    [ "$(grep -o "style='--shade:[0-9]*%'" r/report.html | wc -l)" -eq 54 ]
    [ "$(grep -o ">n/a</td>" r/report.html | wc -l)" -eq 2 ]
}

@test "a slow link between GPUs that are joined alike is named, in the summary and the page" {
    many 8
    fault slow_link:gpu=0:peer=5:factor=0.5
    suite <<< '  - {bench: copy, engine: ce, source: gpus, destination: gpus, op: write, access: "on", size: 4M}'
    "$plumb" run t.yaml --repeat 2 --out r > said # a single launch proves nothing
    flat said | grep -Eq '^Answer  *1 problem .* cuda:0 -> cuda:5 carries 0\.(49|50) .*the way back 0\.(49|50).*\(simulated\)'
    [ "$(grep -c 'GB/s' said)" -eq "$(grep -c 'GB/s.*simulated' said)" ]
    grep -q "<li class='warn'>cuda:0 -&#62; cuda:5 " r/report.html
    [ "$(grep -o "class='slow'" r/report.html | wc -l)" -eq 2 ]
}

@test "where pairs of three rates cannot be told apart, a slow link looks slow, and no other does" {
    in_work eight # on PCIe switches that nothing here shows
    fault slow_link:gpu=0:peer=5:factor=0.5
    suite <<< '  - {bench: copy, engine: ce, source: gpus, destination: gpus, op: write, access: "on", size: 4M}'
    "$plumb" run t.yaml --repeat 3 --out r > said
    flat said | grep -Eq 'looks slow: cuda:0 -> cuda:5 and cuda:5 -> cuda:0 .*\(simulated\)'
    grep -q 'cuda:0 -&#62; cuda:5' r/report.html
}

@test "a launch on a simulated GPU that is stopped is simulated, too" {
    in_work one
    suite <<< '  - {bench: copy, engine: ce, source: node0, destination: gpu, memory: pinned, size: 4M, budget: 60s, min-samples: 1000000, timeout: 1s}'
    run -4 "$plumb" run t.yaml --out r --no-report
    grep -q ',late,\|late,0001' r/plan.csv
    python3 - <<'END'
import csv
row, = csv.DictReader(open("r/copy.csv"))
assert (row["origin"], row["code"]) == ("simulated", "timeout"), row
END
}

@test "each row's limit names its source; a simulated GPU with a real one's name gets no datasheet" {
    sed 's/^name = .*/name = NVIDIA H200/' tests/sim/machines/eight.conf > "$work/named.conf"
    in_work "$work/named.conf"
    suite <<'END'
  - {bench: gemm, device: gpu, library: cublaslt, dtype: bf16, size: 512}
  - {bench: memory, device: gpu, op: copy, launch: tuned, size: 64M}
  - {bench: copy, engine: ce, source: node0, destination: gpu, memory: pinned, size: 4M}
END
    "$plumb" run t.yaml --out r > said
    python3 - <<'END'
import csv
for bench, limit in (("gemm", 20 * 1500e6 * 4096 / 1e12), ("memory", 128), ("copy", 15.7538)):
    for row in csv.DictReader(open(f"r/{bench}.csv")):
        assert row["origin"] == "simulated", row
        assert row["limit_source"].startswith("nvml: "), (bench, row["limit_source"])
        assert abs(float(row["limit"]) / limit - 1) < 1e-3, (bench, row["limit"], limit)
        assert abs(float(row["percent_of_limit"]) / (100 * float(row["value"]) / limit) - 1) < 1e-3, row
END
    run grep -c datasheet r/gemm.csv r/memory.csv r/copy.csv
    [[ "$output" != *:[1-9]* ]]
}

@test "of sixteen GPUs a sample of the pairs, the same with the same seed; the plan and the page say how many" {
    many 16
    suite <<< '  - {bench: copy, engine: ce, source: gpus, destination: gpus, op: write, size: 64K}'
    "$plumb" run t.yaml --dry-run --seed 3 > a 2> said
    grep -q "40 of 240 " said
    [ "$(wc -l < a)" -eq 41 ]
    diff a <("$plumb" run t.yaml --dry-run --seed 3 2>/dev/null)
    run diff -q <(sort a) <("$plumb" run t.yaml --dry-run --seed 4 2>/dev/null | sort)
    [ "$status" -eq 1 ]
    "$plumb" run t.yaml --seed 3 --out r > /dev/null
    grep -q " 40 of 240 " r/report.html
}

@test "every suite of the house can be planned with no GPU, with one and with eight" {
    cd "$work" || return 1
    for suite in quick node gpu; do
        PLUMB_CUDA_MODULE=$work/none.so "$plumb" run "$suite" --dry-run > none
        [ "$(grep -c cuda none)" -le 4 ]
    done
    cd "$top" || return 1
    for machine in one eight; do
        in_work "$machine"
        for suite in quick node gpu gpu-cluster; do
            "$plumb" run "$suite" --dry-run > "plan.$machine.$suite"
            [[ $suite == gpu-cluster ]] || grep -q cuda:0 "plan.$machine.$suite"
        done
        cd "$top" || return 1
    done
    [ "$(grep -c 'source cuda:. --destination cuda:' "$work/plan.eight.gpu")" -gt 300 ]
}

@test "the suite gpu-cluster over three hosts: NCCL over all of them, RDMA rail by rail from GPU memory and from host memory" {
    in_work eight
    printf '%s slots=8 address=127.0.0.1\n' alpha beta gamma > hosts
    "$plumb" run gpu-cluster --hosts hosts --dry-run > plan 2> said
    grep -q '24 ranks on 3 hosts' said
    # A ring of three pairs, each way, three times: a rail for each of eight GPUs, its memory at both ends and the host's.
    for rail in 0 1 2 3 4 5 6 7; do
        [ "$(grep -c -- "--size 4194304 --rail $rail --memory rail --peer-memory rail --verb write" plan)" -eq 18 ]
        [ "$(grep -c -- "--size 4194304 --rail $rail --verb write" plan)" -eq 18 ]
    done
    [ "$(grep -c -- '--rail 8' plan)" -eq 0 ]
    [ "$(grep -c -- '--backend nccl .*alpha;beta;gamma' plan)" -eq "$(grep -c -- '--backend nccl' plan)" ]
    [ "$(grep -c -- '--backend nccl' plan)" -gt 20 ]
    # NVLink: both engines write to and read from the GPU of the same number, over a ring of hosts, and both at once.
    [ "$(grep -- '--direction one-way' plan | grep -c -- '--source cuda:[0-7] --destination cuda:peer .*--op write')" -eq 48 ]
    [ "$(grep -- '--direction both' plan | grep -c -- '--source cuda:[0-7] --destination cuda:peer .*--op write')" -eq 48 ]
    [ "$(grep -c -- '--source cuda:peer --destination cuda:[0-7] .*--op read' plan)" -eq 48 ]
    [ "$(grep -c -- 'cuda:peer' plan)" -eq "$(grep -- 'cuda:peer' plan | grep -cE '(alpha|beta),(beta|gamma)|gamma,alpha')" ]
}

@test "copies between GPUs of two hosts: a case with between has the pair in its rows, others of the benchmark stay here" {
    printf '[machine]\ngpus = 1\n[gpu]\nfabric = yes\n' > "$work/m.conf"
    in_work "$work/m.conf"
    suite <<'END'
  - {bench: copy, engine: ce, source: gpus, destination: "cuda:peer", op: write, handle: fabric, size: 64K, between: ring}
  - {bench: copy, engine: ce, source: node0, destination: gpus, size: 64K}
END
    printf 'alpha address=127.0.0.1\nbeta address=127.0.0.1\n' > hosts
    printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' | script rsh
    "$plumb" run t.yaml --hosts hosts --rsh ./rsh --remote-dir "$(realpath "$bin")" --out r --no-report > said 2>&1
    grep -q ' ./rsh: 1 .* 1 pair; .* 1 ' said
    python3 - <<'END'
import csv
rows = {r["destination"]: r for r in csv.DictReader(open("r/copy.csv"))}
peer, here = rows["cuda:peer"], rows["cuda:0"]
assert (peer["from"], peer["to"], peer["handle"], peer["status"] in ("ok", "noisy")) == ("alpha", "beta", "fabric", True), peer
assert (here["from"], here["to"], here["handle"]) == ("", "", ""), here
END
    # Without hosts there is no other GPU, and the row says so.
    "$plumb" run t.yaml --out s --no-report > said 2>&1
    grep -q '^skipped,.*cuda:peer .*HOST\|cuda:peer.*skipped,[a-z-]*,"*cuda:peer .*HOST' s/copy.csv
}

@test "no two cases of a plan are the same measurement; what says nothing of a case is not in it" {
    in_work two
    suite <<'END'
  - {bench: copy, engine: ce, source: [node0, gpus], destination: gpus, op: [write, read], memory: pinned, size: 4M}
  - {bench: launch, device: [gpu, cuda, gpus], op: [launch, graph, alloc], nodes: 3, size: 8K}
  - {bench: launch, device: "cuda:1", op: graph, nodes: 3}
  - {bench: gemm, device: [host, gpu], dtype: f32, threads: [1, 2], size: 64}
END
    cases t.yaml | sort > planned
    [ "$(uniq -d planned)" = "" ]
    [ "$(grep -c -- '--op write' planned)" -eq 2 ]
    [ "$(grep -c -- '--source node0 .*--op' planned)" -eq 0 ]
    [ "$(grep -- '--source node0' planned | grep -c -- '--memory pinned')" -eq 2 ]
    [ "$(grep -c -- '--op launch ' planned)" -eq 2 ]
    [ "$(grep -c -- '--op graph --nodes 3' planned)" -eq 2 ]
    [ "$(grep -c -- '--op alloc --size 8192' planned)" -eq 2 ]
    [ "$(grep -c -- '--device cuda:0 --dtype f32 --size' planned)" -eq 1 ]
    [ "$(grep -c -- '--threads' planned)" -eq 2 ]
    # What is planned is taken by the benchmarks.
    "$plumb" run t.yaml --out r --only launch > said
    [ "$(grep -c '^done,' r/plan.csv)" -eq 6 ]
    for suite in gpu node quick; do
        "$plumb" run "$suite" --dry-run 2>/dev/null | awk -F, '$3 == 1' | cut -d, -f4- | sort | uniq -d > twice
        [ ! -s twice ]
    done
}
