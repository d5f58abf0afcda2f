#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086,SC2154 # of variables that the files of this name share
# plumb-allreduce on one machine, in short: its operations are right, what is wrong is found, and what cannot be is refused.

# takes: spinners
load rows
load allreduce

allreduce() { quick="--csv --budget 10ms --warmup 2ms --min-samples 3 --no-cpu" measure "$@"; }

@test "every operation of ours, over shared memory and TCP, by 2 and 3 ranks: right to the bit; algbw is bytes over time, busbw its factor" {
    local transport
    for transport in shm tcp; do
        allreduce --np 3 --ranks 2,3 --backend ring --transport $transport --size 12,20K --max-samples 3 \
            --op allreduce,reduce-scatter,all-gather,broadcast,all-to-all,send-receive,reduce,gather,scatter
        all_good
        [ "$(cells op | sort -u | wc -l)" -eq 9 ]
    done
    allreduce --np 4 --ranks 1,4 --size 64K --max-samples 5 --budget 20s \
        --op allreduce,reduce-scatter,all-gather,broadcast,all-to-all,send-receive,reduce,gather,scatter # odd: the median is one of them
    all_good
    python3 - "$out" <<'END'
import csv, sys
value = {(r["op"], r["ranks"], r["metric"]): r["value"] for r in csv.DictReader(open(sys.argv[1])) if int(r["vector_bytes"]) == 65536}
factors = {"allreduce": 1.5, "broadcast": 1, "send-receive": 1, "reduce": 1}
for op in {op for op, ranks, metric in value}:
    time, algbw, busbw = (float(value[op, "4", metric]) for metric in ("time", "algbw", "busbw"))
    assert abs(algbw * time / 65.536 - 1) < .001 and abs(busbw / algbw / factors.get(op, .75) - 1) < .001, (op, time, algbw, busbw)
    assert not value.get((op, "1", "busbw")), op
END
}

@test "auto goes by the algorithm that the size suits, and says by which" {
    allreduce --np 2 --ranks 2 --backend auto --size 8,64K,1M --max-samples 3
    all_good
    [ "$(paste -d'|' <(cells metric) <(cells chosen) | sed -n 's/^time|\([a-z]*\),.*/\1/p' | xargs)" = 'doubling halving ring' ]
    allreduce --np 2 --ranks 2 --backend auto --size 8 --op reduce-scatter --max-samples 3 # doubling has none
    all_good
    [[ $(of time chosen) == halving* ]]
}

@test "what the buffers lie on is told: small pages where huge ones are off for the process" {
    allreduce --np 2 --ranks 2 --size 4M --max-samples 3
    all_good
    [[ $(of time pages) =~ ^(thp|base|base\+thp)$ ]]
    no_huge_pages
    under=$small allreduce --np 2 --ranks 2 --size 4M --max-samples 3
    all_good
    [ "$(of time pages)" = base ]
}

@test "one wrong element is found, in every operation, and told with its rank: wrong, exit 1" {
    local op
    for op in allreduce reduce-scatter all-gather all-to-all send-receive reduce gather scatter; do
        exits 1 allreduce --np 3 --ranks 3 --size 100K --op $op --inject corrupt
        [ "$(cells status | head -n 1)" = wrong ]
        [[ $(of time reason) == *"rank "*"element "* ]]
    done
}

@test "who takes part is listed, and nothing is measured" {
    timeout 600 "$bin" --np 3 --who >"$out"
    [ "$(cells rank | xargs)" = "0 1 2" ]
    [ "$(cells machine_ranks | sort -u)" = 3 ]
}

@test "one rank alone is measured only where it was asked for" {
    ranks() { "$bin" --describe "$@" | jq -r '[.options[] | select(.name == "ranks").default[]] | join(",")'; }
    [ "$(ranks --np 4)" = 2,4 ]
    [ "$(ranks --np 4 --ranks 0)" = 1,2,4 ]
    [ "$(ranks --np 1)" = 1 ]
}

@test "ranks of a launcher that do not see each other are refused; so is what cannot be" {
    run env OMPI_COMM_WORLD_SIZE=4 timeout 600 "$bin" --size 8
    [ "$status" -ne 0 ]
    [[ $output != *busbw* ]]
    told 2 '--np 2, * 4' env OMPI_COMM_WORLD_SIZE=4 "$bin" --np 2 --size 8 # it would be 4
    told 2 '--np 2, * 4' env FLUX_JOB_SIZE=4 "$bin" --np 2 --size 8
    run -2 env WORLD_SIZE=4 RANK=0 LOCAL_RANK=0 timeout 600 "$bin" --size 8
    [[ $output == *"torchrun "*" 4 processes"*mpirun* && $output != *busbw* ]]
    told 2 '--leader HOST' "$bin" --leader node0
    told 2 ring "$bin" --backend rng
}

@test "a launcher that tells ranks and no number is refused, unless --np says that this process is alone" {
    local set
    for set in PMIX_RANK=0 PALS_RANKID=1 MPI_LOCALNRANKS=2 'WORLD_SIZE=2 RANK=1'; do
        run -2 env $set timeout 600 "$bin" --size 8
        [[ $output == *launcher*--listen*--leader*"--np N"* && $output != *busbw* ]]
        run -2 env $set timeout 600 "$bin" --who
    done
    run -0 env PMIX_RANK=0 timeout 600 "$bin" --np 2 --who
    run -0 env OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0 timeout 600 "$bin" --who # mpirun -np 1: it is alone
}

@test "strong scaling divides the vector; a model's gradients, fused to buckets, are one operation" {
    allreduce --np 4 --ranks 2,4 --size 64K --scaling strong
    all_good
    [ "$(of time vector_bytes 2) $(of time vector_bytes 4)" = '32768 16384' ]
    allreduce --np 2 --ranks 2 --model resnet50 --bucket 4M,64M --dtype bf16
    all_good
    [ "$(cells vector_bytes | sort -u | xargs)" = 51114064 ]
    [ "$(cells bucket | sort -nu | xargs)" = "4194304 67108864" ]
}

@test "command lines of one process may ask for different numbers of ranks" {
    local np
    for np in 2 3; do echo "$quick --np $np --ranks $np --size 8"; done > "$BATS_TEST_TMPDIR/lines"
    "$bin" --commands /dev/null < "$BATS_TEST_TMPDIR/lines" | awk 'NR == 1 || !/^backend,/' > "$out"
    [ "$(cells ranks | sort -u | xargs)" = "2 3" ]
    [ "$(cells status | grep -cE 'wrong|failed|skipped')" -eq 0 ]
}
