#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test has variables of its own, setup sets the others
# plumb-allreduce over NCCL on the simulated device.

# takes: spinners
# waits: for ranks that start

load rows
load processes
load ../sim/env
load collective

@test "nccl: every operation and type between 2 GPUs, data compared; rows say that it is simulated" {
    simulate two
    nccl --np 2 --ranks 1,2 --op "$every" --dtype all --size 40K
    all_good 108
    [ "$(times origin | sort -u)" = simulated ]
    times detail | grep -q '^NCCL 2.*, via P2P/CUMEM$'
    [ "$(times chosen | grep -cx 'ring/simple, channels 0-1')" -eq 36 ] # of four operations between two
}

@test "nccl: every reduction of every type, also between three, where an average is rounded; a wrong one is found" {
    simulate eight
    nccl --np 3 --ranks 2,3 -d all -o all --size 24K
    all_good 90
    nccl --np 3 --ranks 3 -d all -o all --size 24K --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status | grep -cx wrong)" -eq 45 ]
    printf 'include = %s/tests/sim/machines/two.conf\n[gpu]\ncapability = 8.0\n' "$PWD" >"$BATS_TEST_TMPDIR/old.conf"
    simulate "$BATS_TEST_TMPDIR/old.conf"
    nccl --np 2 --ranks 2 -d e4m3,e5m2 --op allreduce,all-gather --size 24K
    [ "$(times reason | grep -c 'fp8 .* 9.0')" -eq 2 ]
    [ "$(times status | grep -cxE 'ok|noisy')" -eq 2 ]
}

@test "nccl, mpi: reduce, gather and scatter between 2 and 3 ranks, in place or not, data compared, wrong ones found" {
    simulate eight
    nccl --np 3 --ranks 1,2,3 --op "$rooted" --dtype f32,i8 --size 24K
    all_good 18
    nccl --np 3 --ranks 3 --op "$rooted" --in-place --size 24K
    all_good 3
    nccl --np 3 --ranks 3 --op "$rooted" --size 24K --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status | grep -cx wrong)" -eq 3 ]
    launched 3 -- --ranks 2,3 --op "$rooted" --dtype f32,bf16,i64 --size 24K
    all_good 18
    launched 3 -- --ranks 3 --op "$rooted" --in-place --size 24K
    all_good 3
    launched 3 -- --ranks 3 --op "$rooted" --overlap --size 24K
    all_good 3
    PLUMB_MPI_ELEMENTS=700 launched 3 -- --ranks 3 --op "$rooted" --size 24K
    all_good 3
    launched 3 -- --ranks 3 --op "$rooted,broadcast" --root 1,2 --size 24K
    all_good 8
    launched 3 -- --ranks 3 --op "$rooted,broadcast" --root 2 --in-place --size 24K
    all_good 4
    nccl --np 3 --ranks 3 --op "$rooted,broadcast" -r -1 --size 24K
    all_good 12
    [ "$(times root | sort -u | xargs)" = "0 1 2" ]
    nccl --np 3 --ranks 3 --op "$rooted,broadcast" -r 2 --in-place --size 24K
    all_good 4
    nccl --np 3 --ranks 3 --op "$rooted,broadcast" -r 1 --size 24K --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status | grep -cx wrong)" -eq 4 ]
}

@test "nccl: several GPUs in a process, by group calls: a communicator of all ranks, every operation right, a wrong one found" {
    local ops=allreduce,reduce-scatter,all-gather,broadcast,all-to-all,send-receive,reduce,gather,scatter
    simulate eight
    nccl --np 2 --ranks 2,4 --per-process 2 --op "$ops" --size 24K
    all_good 18
    [ "$(times per_process | sort -u)" = 2 ]
    [ "$(times ranks | sort | uniq -c | xargs)" = "9 2 9 4" ]
    # of 4 ranks 2 x 3 / 4: not of the 2 processes
    paste -d' ' <(cells metric) <(cells op) <(cells ranks) <(cells value) | awk '
        $2 != "allreduce" || $3 != 4 { next }
        $1 == "algbw" { rate = $4 }
        $1 == "busbw" { n++; bad += $4 / rate < 1.4999 || $4 / rate > 1.5001 }
        END { exit !(n == 1) || bad }'
    nccl --ranks 4 --per-process 4 --in-place --op allreduce,reduce-scatter,all-gather --size 24K
    all_good 3
    nccl --ranks 4 --per-process 4 --in-place --op broadcast,gather,scatter,reduce --root 3 --size 24K
    all_good 4
    nccl --ranks 4 --per-process 4 --pipelined 5 --aggregate 3 --register symmetric --size 24K
    all_good 1
    nccl --ranks 4 --per-process 4 --op "$ops" --size 24K --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status | grep -cx wrong)" -eq 9 ]
    times reason | grep -q 'rank [0-3] .*element '
}

@test "nccl: several GPUs in a process: the GPUs of all its ranks are watched and named, and what cannot be is refused" {
    simulate eight
    for gpu in 1 3; do # of the first process the second GPU, of the second one, too
        fault "throttle:gpu=$gpu:factor=0.6:reason=power"
        nccl --np 2 --ranks 4 --per-process 2 --size 24K
        [ "$(times gpu_addresses)" = 0000:1b:00.0+0000:1c:00.0+0000:3b:00.0+0000:3c:00.0 ]
        [[ $(times disturbed) == *"GPU held back"* ]] || { times disturbed; return 1; }
    done
    unset PLUMB_SIM_FAULT
    nccl --np 1 --ranks 3 --per-process 3 --size 24K
    [[ $(times reason) == *"--per-process 3 "*" 8"* ]]
    warned 2 '--per-process 2 * 3 ranks' nccl --np 2 --ranks 3 --per-process 2 --size 24K
    # A graph for each GPU, in one process and in two; wrong data of any of them is found.
    for np in 1 2; do
        nccl --np $np --ranks 4 --per-process $((4 / np)) --size 24K --pipelined 3 -m 2 -G 0,5 --op allreduce,all-gather,broadcast
        all_good 6
        [ "$(times graph | sort | uniq -c | xargs)" = "3 0 3 5" ]
    done
    for gpu in 0 3; do
        fault "corrupt:gpu=$gpu:kernel=AllReduce:after=40:times=1000000"
        nccl --np 1 --ranks 4 --per-process 4 --size 24K --pipelined 4 -G 2
        [ "$status" -eq 1 ] && [ "$(times status)" = wrong ]
    done
    fault error:call=cuGraphInstantiateWithFlags:code=2
    nccl --np 1 --ranks 4 --per-process 4 --size 24K --pipelined 4 -m 2 -G 3
    [ "$(times status)" = failed ]
    [[ $(times reason) == *"8 operations: cuGraphInstantiate"* ]] || { times reason; return 1; }
    unset PLUMB_SIM_FAULT
    simulate two
    nccl --np 2 --ranks 4 --per-process 2 --size 24K
    [[ $(times reason) == *"same GPUs"* ]]
}

@test "nccl: operations that are queued, given at once or kept as a graph: each is right, and a wrong one is found" {
    simulate two
    nccl --np 2 --ranks 2 --size 64K --pipelined 1,20
    all_good 2
    [ "$(times pipelined | xargs)" = "1 20" ]
    nccl --np 2 --ranks 2 --size 64K --pipelined 5 -m 2 -G 0,3 --op "$every" --dtype i32
    all_good 12
    [ "$(times graph | sort | uniq -c | xargs)" = "6 0 6 3" ]
    [ "$(times aggregate | sort -u)" = 2 ]
    nccl --np 2 --ranks 2 --size 64K --pipelined 4 -G 2 --inject corrupt
    [ "$status" -eq 1 ] && [ "$(times status)" = wrong ]
    nccl --np 2 --ranks 2 --size 64K --pipelined 4 -G 2 --in-place
    all_good 1
    fault corrupt:kernel=AllReduce:after=40:times=1000000
    nccl --np 2 --ranks 2 --size 64K --pipelined 4 -G 2
    [ "$status" -eq 1 ] && [ "$(times status)" = wrong ]
    fault hang:kernel=AllReduce:after=200
    nccl --np 2 --ranks 2 --size 64K --pipelined 20 --budget 20m
    [ "$status" -eq 4 ] && [ "$(times status)" = failed ]
    fault ''
    alone --np 2 --ranks 2 --backend ring,nccl --size 64K --pipelined 8 # ours wait for each
    all_good 2
    [ "$(times pipelined)" = "$(printf '\n8')" ]
    warned 2 '--overlap' nccl --np 2 --ranks 2 --size 64K --pipelined 8 --overlap
}

@test "nccl: registered buffers, as a window the kernels of windows, and an end to each; where it takes none, a reason" {
    simulate two
    export PLUMB_SIM_NCCL_TALLY=$BATS_TEST_TMPDIR/tally
    nccl --np 2 --ranks 2 --size 64K -R 0,1,2 --op allreduce,all-gather
    all_good 6
    [ "$(times register | sort | uniq -c | xargs)" = "2 local 2 none 2 symmetric" ]
    [ "$(times library_algorithm | sort | uniq -c | xargs)" = "4 ring 2 symmetric" ]
    [ "$(times library_protocol | sort -u | xargs)" = "AllGather_STMC AllReduce_RSxLDMC_AGxSTMC simple" ]
    [ "$(times library_channels | sort -n | uniq -c | xargs)" = "4 2 2 16" ]
    [ "$(times busbw_per_link | sort -n | uniq -c | xargs)" = "1 0.666667 5 1" ] # switches add in one: 2 (n-1)/(n+1)
    [ "$(grep -c 'registered=0$' "$PLUMB_SIM_NCCL_TALLY")" -eq "$(wc -l <"$PLUMB_SIM_NCCL_TALLY")" ]
    nccl --np 2 --ranks 2 --size 64K -R 2 --in-place --pipelined 3 -G 1
    all_good 1
    NCCL_LOCAL_REGISTER=0 nccl --np 2 --ranks 2 --size 64K -R 1
    row skipped '--register local'
    nccl --np 4 --ranks 4 --size 64K -R 2 # ranks that share GPUs are machines of their own
    [ "$(times status)" = skipped ]
    fault error:call=ncclMemAlloc:code=1
    nccl --np 2 --ranks 2 --size 64K
    times reason | grep -q 'ncclMemAlloc: unhandled cuda error'
    fault error:call=ncclCommWindowRegister:code=3
    nccl --np 2 --ranks 2 --size 64K -R 2
    times reason | grep -q 'ncclCommWindowRegister: internal error'
}

@test "nccl-tests' command lines mean the same, and what is not done is refused with a sentence" {
    local line
    simulate two
    alone -b 8 -e 64K -f 8 -g 2 -n 20 -w 5 -c 1 -o sum -d float -R 1 -a 3 -z 0 -N 1 -T 0
    all_good 5
    [ "$(times backend | sort -u) $(times ranks | sort -u) $(times pipelined | sort -u)" = "nccl 2 20" ]
    alone -b 64K -e 2112K -g 1 -t 2 -n 2 -z 0
    [ "$(times vector_bytes | xargs)" = "65536 1114112 2162688" ] # nccl-tests adds 1 MiB where there is no factor
    alone -b 64 -e 64 -g 1 -t 2 -n 1000 -z 0
    [ "$(times pipelined)" = 512 ]
    alone -b 64K -e 64K -g 2 -n 40 -z 2
    all_good 1
    [ "$(times pipelined)" = 1 ]
    for line in '-a 1' '-z 1' '-N 2' '-y 1' '-T 5' '-C 1' '-S 1' '-J x.json' '--cta-policy 1' '-D 1' '-V 4' '-M 1' '-u 1' '-I 1' '-K 1'; do
        # shellcheck disable=SC2086 # an option and its value
        alone -b 8 -e 8 -g 2 $line
        [ "$status" -eq 2 ] && [ ! -s "$out" ] || { echo "$line"; return 1; }
        grep -qE -- "^plumb-allreduce: --[a-z-]+ " "$err"
    done
}

@test "nccl: the algorithm that was asked for; a name that there is not" {
    simulate two
    nccl --np 2 --ranks 2 --size 64K --algorithm tree/ll
    all_good 1
    [ "$(times chosen)" = 'tree/ll, channels 0-1' ]
    nccl --np 2 --ranks 2 --size 64K --algorithm trees
    row skipped "'trees'; * tree, ring"
}

# As Slurm starts them with --gpus-per-task=1: each sees one GPU, its first.
@test "nccl: ranks of which each sees a GPU of its own alone share none: by peer access, no rehearsal" {
    local program=$bin rank
    open_mpi
    simulate one
    for rank in 0 1; do
        sed "s/^name = .*/&\nuuid = GPU-51300000-0000-0000-0000-00000000000$rank/" "$PLUMB_SIM_MACHINE" >"$BATS_TEST_TMPDIR/$rank.conf"
    done
    # shellcheck disable=SC2016 # the script expands them
    printf '#!/bin/sh\nPLUMB_SIM_MACHINE=%s/$OMPI_COMM_WORLD_RANK.conf exec %s "$@"\n' "$BATS_TEST_TMPDIR" "$program" | script "$BATS_TEST_TMPDIR/own"
    bin=$BATS_TEST_TMPDIR/own backend=nccl
    launched 2 -- --ranks 2 --size 64K
    all_good 1
    [ "$(times chosen | grep -c rehearsal)" -eq 0 ]
    times detail | grep -q 'via P2P'
    bin=$program
    launched 2 -- --ranks 2 --size 64K # now it is one and the same
    all_good 1
    times chosen | grep -q '^rehearsal'
    times detail | grep -q 'via NET/Socket, network lo$'
}

@test "nccl: wrong data, a failure of NCCL's and a GPU that hangs end a case with their reason" {
    simulate two
    fault corrupt:kernel=AllReduce
    nccl --np 2 --ranks 2 --size 64K
    [ "$(times status)" = wrong ]
    fault error:call=ncclCommInitRankConfig:code=2
    nccl --np 2 --ranks 2 --size 64K
    row failed 'ncclCommInitRankConfig: unhandled system error'
    fault error:call=ncclCommGetAsyncError:code=6:after=2
    nccl --np 2 --ranks 2 --size 64K
    row failed 'remote process exited'
    fault hang:kernel=AllReduce:after=8:gpu=1
    nccl --np 2 --ranks 2 --size 64K,1M
    [ "$(times status | sort -u)" = failed ]
    times reason | head -n 1 | grep -q 'nothing has moved'
    times reason | tail -n 1 | grep -q 'case before'
}

# ranks COLUMN...: of each rank's row of late_share the rank and these columns.
ranks() {
    python3 - "$out" "$@" <<'END'
import csv, sys
for row in csv.DictReader(open(sys.argv[1])):
    if row["metric"] == "late_share":
        print(",".join([row["rank"]] + [row[c] for c in sys.argv[2:]]))
END
}

@test "nccl: each rank watches its own GPU, and the row says whose was held back" {
    simulate two
    fault throttle:gpu=1:factor=0.6:reason=power
    nccl --np 2 --ranks 2 --size 64K
    all_good 1
    times disturbed | grep -q 'rank 1 (.*): GPU .* (power cap)'
    times disturbed | grep -vq 'rank 0: GPU'
    [ "$(times gpu_clock_mhz_low) $(times gpu_clock_mhz_high) $(times gpu_throttle)" = '900 1500 power cap' ]
    # Each rank's row has its own GPU's alone, rank 0's too.
    [ "$(ranks gpu_clock_mhz_low gpu_clock_mhz_high gpu_throttle gpu_ecc_errors)" = '0,1500,1500,,0
1,900,900,power cap,0' ]
    fault throttle:gpu=0:factor=0.6:reason=thermal
    nccl --np 2 --ranks 2 --size 64K
    times disturbed | grep -q 'rank 0: GPU .* (thermal slowdown)'
    times disturbed | grep -vq 'rank 1'
    [ "$(ranks gpu_clock_mhz_low gpu_throttle)" = '0,900,thermal slowdown
1,1500,' ]
    fault no_nvml # what cannot be read is not known
    nccl --np 2 --ranks 2 --size 64K
    [ "$(ranks gpu_clock_mhz_low gpu_clock_mhz_high gpu_throttle gpu_throttled_looks gpu_ecc_errors)" = '0,,,,,
1,,,,,' ]
    fault ''
    CUDA_DEVICE_MAX_CONNECTIONS=1 nccl --np 2 --ranks 2 --size 64K
    times disturbed | grep -vq 'GPU'
    times detail | grep -q ', CUDA_DEVICE_MAX_CONNECTIONS=1'
}

@test "nccl: a rank that never joins ends the case; a call that does not heed that it is aborted, those after it" {
    local fails=error:call=ncclCommInitRankConfig:code=2:gpu=1:times=1
    simulate two
    fault "$fails"
    exits 4 nccl --np 2 --ranks 2 --size 64K,128K
    times reason | head -n 1 | grep -q 'ncclCommInitRankConfig: unhandled system error'
    [[ $(times status | tail -n 1) == @(ok|noisy) ]]
    fault "$fails,hang:kernel=ncclCommInitRankConfig:gpu=0"
    exits 4 nccl --np 2 --ranks 2 --size 64K,128K
    [ "$(times status | sort -u)" = failed ]
    times reason | tail -n 1 | grep -q 'case before'
}

@test "nccl: what is missing is a reason with a remedy" {
    simulate two
    PLUMB_LIBNCCL=/nonexistent nccl --np 2 --ranks 2 --size 64K
    row skipped PLUMB_LIBNCCL
}
