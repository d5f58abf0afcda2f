#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2016 # the made-up programs expand it themselves
# shellcheck disable=SC2154 # run sets stderr
# scripts/peer-gpu with programs that answer made-up numbers: which of them are compared, how, and what it makes of it.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    fake=$BATS_TEST_TMPDIR/fake
    mkdir -p "$fake"
    export ORDER=$BATS_TEST_TMPDIR/order
    : >"$ORDER"
    value gemm 800 900
    value memory 4400 4500
    # Of two nodes the second one is the GPU's own.
    program plumb-copy 'echo ours >>"$ORDER"; echo "$@" >>"'"$fake"'/copy.args"; case "$*" in
    *"--source nodes"*) echo source,numa,status,reason,origin,value,max; echo node0,remote,ok,,measured,9,9; echo "node1,${NEAR-local},ok,,measured,8,8" ;;
    *) echo status,reason,origin,value,max; echo ok,why,measured,55,56 ;; esac'
    program python 'echo theirs >>"$ORDER"; case "$1:$2" in -c:*) exit 0 ;; *:matmul*) echo 790 ;; *:copy) echo 4300 ;; esac'
    program cuda-stream 'echo "Function    MBytes/sec  Min (sec)"; echo "Copy 1.0 1"; echo "Triad       4200000.000 0.001"'
    program nvbandwidth 'echo "nvbandwidth Version: v0.8"; echo "{\"nvbandwidth\": {\"testcases\": [{\"name\": \"$2\", \"status\": \"Passed\", \"bandwidth_matrix\": [[\"55.40\"]]}]}}"'
}

# program NAME TEXT: an executable that does this.
program() {
    printf '#!/bin/sh\n%s\n' "$2" | script "$fake/$1"
}

# value BENCH MEDIAN BEST [STATUS]: our benchmark, as if it had measured that.
value() {
    program "plumb-$1" "echo ours >>\"\$ORDER\"; echo \"\$@\" >>\"$fake/$1.args\"; echo status,reason,origin,value,max; echo ${4:-ok},why,measured,$2,$3"
}

peer() {
    run --separate-stderr scripts/peer-gpu --bin "$fake" --python "$fake/python" --babelstream "$fake/cuda-stream" \
        --nvbandwidth "$fake/nvbandwidth" --pairs 3 "$@"
}

@test "every comparison: median against median, the best against BabelStream's best; what is asked of our benchmarks is what the peers do" {
    exits 0 peer
    [[ ${lines[0]} == "matmul: ratio 1.0127 (1.0127 to 1.0127, 3 pairs;"*"1.00: met"*"plumb 800, torch.matmul 790 TFLOP/s" ]]
    [[ ${lines[1]} == "copy: ratio 1.0233 "*"plumb 4400,"*" 4300 GB/s" ]]
    [[ ${lines[2]} == "triad: ratio 1.0714 "*"plumb 4500,"*" 4200 GB/s" ]]
    [[ ${lines[3]} == "to-device: ratio 0.9928 "*"asked 0.99: met"* ]]
    [[ ${lines[4]} == "from-device: ratio 0.9928 "* ]]
    [[ ${lines[5]} == "collectives 1 rank 64K "*": not compared: "* ]]
    grep -q -- '--dtype bf16 --library cublaslt-best --size 8192' "$fake/gemm.args"
    grep -q -- '--op copy .*--launch tuned' "$fake/memory.args"
    grep -q -- '--source node1 --destination cuda:0 .*--memory pinned' "$fake/copy.args" # the near one, as nvbandwidth's
    grep -q -- '--source cuda:0 --destination node1' "$fake/copy.args"
    [ "$(grep -c -- '--source nodes' "$fake/copy.args")" -eq 1 ]
    exits 2 peer --only nonsense
    [[ $stderr == *"'nonsense'"* ]]
}

@test "figures.csv has each result typed: reached to two decimals, missed, inconclusive, not compared, nothing asked" {
    figure() { awk -F, -v name="$1" '$1 == name { print $2, $3, $4, $7, $12 }' "$BATS_TEST_TMPDIR/o/figures.csv"; }
    value memory 4280 4180 # 0.9953 of torch's copy and of BabelStream
    program nvbandwidth 'exit 1'
    peer --out "$BATS_TEST_TMPDIR/o" --only matmul,copy,triad,to-device,matmul-f16
    [ "$(figure copy)" = "reached 1.0 0.99535 3 measured" ]
    [ "$(figure triad)" = "reached 1.0 0.99524 3 measured" ]
    [ "$(figure to-device)" = "not-compared 0.99   measured" ]
    [ "$(figure matmul-f16)" = "shown  1.0127 3 measured" ]
    grep -q -- '--dtype f16 --library cublaslt-best --size 8192' "$fake/gemm.args"
    value memory 4200 4100
    rm -r "$BATS_TEST_TMPDIR/o"
    exits 1 peer --out "$BATS_TEST_TMPDIR/o" --only triad
    [ "$(figure triad)" = "missed 1.0 0.97619 3 measured" ]
    # On both sides of what is asked.
    program plumb-memory 'echo x >>"$ORDER.n"; echo status,reason,origin,value,max; echo ok,,measured,4000,$((4000 + 100 * $(wc -l <"$ORDER.n")))'
    rm -r "$BATS_TEST_TMPDIR/o"
    exits 3 peer --out "$BATS_TEST_TMPDIR/o" --only triad
    [[ $(figure triad) == "inconclusive 1.0 "* ]]
    [[ ${lines[0]} == *"asked 1.00: not decided)"* ]]
}

@test "figures.csv has what each side is by, and different versions of cuBLASLt are told" {
    program plumb-gemm 'echo status,reason,origin,value,max,kernel; echo "ok,,measured,800,900,cuBLASLt 13.1.0"'
    program python 'case "$1:$2" in -c:*) ;; *:matmul*) echo 790 torch 2.9.0+cu128, cuBLASLt 12.8.4 ;; esac'
    program nvbandwidth 'echo "{\"nvbandwidth\": {\"Driver Version\": \"580.65\", \"git_version\": \"v0.8\", \"testcases\": [{\"name\": \"$2\", \"bandwidth_matrix\": [[\"55.40\"]]}]}}"'
    peer --out "$BATS_TEST_TMPDIR/o" --only matmul,to-device
    [[ ${lines[0]} == *"by cuBLASLt 13.1.0 and cuBLASLt 12.8.4" ]]
    grep -q '^matmul,.*,cuBLASLt 13.1.0,"torch 2.9.0+cu128, cuBLASLt 12.8.4"$' "$BATS_TEST_TMPDIR/o/figures.csv"
    grep -q '^to-device,.*,plumb,"nvbandwidth, Driver Version: 580.65, git_version: v0.8"$' "$BATS_TEST_TMPDIR/o/figures.csv"
}

@test "a row that is skipped or failed is no number, a wrong one is a finding" {
    value gemm 800 900 failed
    exits 2 peer --only matmul
    [[ ${lines[0]} == "matmul: not compared: "*"failed: why" ]]
    value gemm 800 900 wrong
    exits 1 peer --only matmul
    [[ ${lines[0]} == "matmul: WRONG DATA: "*": why" ]]
}

@test "where no node is the GPU's own --node names one" {
    NEAR=remote exits 2 peer --only to-device
    [[ ${lines[0]} == *"--node" ]]
    : >"$fake/copy.args"
    NEAR=remote exits 0 peer --only to-device --node node0
    [ "$(grep -c -- '--source node0' "$fake/copy.args")" -eq 3 ]
}

@test "the GPU that is asked for is the only one that anybody sees" {
    program plumb-gemm "echo ours \$CUDA_VISIBLE_DEVICES \$CUDA_DEVICE_ORDER \$* >>\"$fake/seen\"; echo status,reason,origin,value,max; echo ok,,measured,800,900"
    program python "echo theirs \$CUDA_VISIBLE_DEVICES >>\"$fake/seen\"; case \"\$1:\$2\" in -c:*) exit 0 ;; *) echo 790 ;; esac"
    exits 0 peer --only matmul --device cuda:3
    [ "$(grep -c '^theirs 3$' "$fake/seen")" -eq 4 ]
    [ "$(grep -c '^ours 3 PCI_BUS_ID --device cuda:0 ' "$fake/seen")" -eq 3 ]
    : >"$fake/seen"
    CUDA_VISIBLE_DEVICES=5,7 peer --only matmul --device cuda:1
    [ "$(grep -c '^theirs 7$' "$fake/seen")" -eq 4 ]
    CUDA_VISIBLE_DEVICES=5 peer --only matmul --device cuda:1
    [ "$status" -ne 0 ]
}

# Collectives. Both sides' times are in files, us: OUT-OF-PLACE IN-PLACE; ranks-N of theirs goes before that of all.

# nccl: our benchmark, nccl-tests and mpirun as stand-ins.
nccl() {
    echo 100.00 50.00 >"$fake/theirs"
    echo 101 50.2 >"$fake/ours"
    program plumb-allreduce '
echo "$@" >>"${0%/*}/ours.args"; echo ours >>"$ORDER"
read -r out in <"${0%/*}/ours"
place=out
while [ $# -gt 0 ]; do case $1 in --size) sizes=$2 ;; --in-place) place=in ;; esac; shift; done
echo size,detail,metric,mean,origin,status,reason
[ ! -e "${0%/*}/ours.says" ] || . "${0%/*}/ours.says"
for size in $(echo "$sizes" | tr , " "); do
    eval "echo \"$size,\\\"NCCL 2.28.9, via NET/Socket\\\",time,\$$place,measured,${status:-ok},$reason\""
    echo "$size,x,busbw,,measured,skipped,no bus"
done'
    # As MPI has it, one process tells for all; without it each tells for itself. The format is that of nccl-tests 2.19.
    program all_reduce_perf '
here=${0%/*} rank=${OMPI_COMM_WORLD_RANK:-0} ranks=${OMPI_COMM_WORLD_SIZE:-1}
echo "$*; $NCCL_HOSTID on $NCCL_TESTS_DEVICE" >>"$here/theirs.args"; [ "$rank" != 0 ] || echo theirs >>"$ORDER"
gpus=1 mpi=yes zs="wait after each inner iteration (-m), no barrier " library=22809 wrong=0 bounds=0 stop=
while [ $# -gt 0 ]; do case $1 in -b) size=$2 ;; -g) gpus=$2 ;; esac; shift; done
read -r out in <"$here/theirs"
[ ! -e "$here/theirs.says" ] || . "$here/theirs.says"
if [ $mpi = yes ] && [ "$rank" != 0 ]; then exit 0; fi
[ $mpi = yes ] || ranks=1
ranks=$((ranks * gpus))
cat <<END
# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=$library
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes $size maxBytes $size step: 1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0
# Blocking Enabled: $zs
#
# Using devices
END
i=0
while [ $i -lt "$ranks" ]; do
    printf "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%04x:%02x:%02x] %s\n" $i 0 $(($$ + i / gpus)) node 0 0 59 0 "NVIDIA H200"
    i=$((i + 1))
done
echo "#"
printf "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n" "" "" "" "" ""
for unit in "size count type redop root time algbw busbw #wrong time algbw busbw #wrong" "(B) (elements) . . . (us) (GB/s) (GB/s) . (us) (GB/s) (GB/s) ."; do
    printf "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s \n" $(echo "$unit") | tr . " "
done
[ "$stop" != before ] || kill -KILL $$
printf "%12i  %12i  %8s  %6s  %6s" "$size" $((size / 4)) float sum -1
printf "  %7s  %6s  %6s  %6s" "$out" 0.66 0.00 0 "$in" 1.31 0.00 "$wrong"
echo
[ "$stop" != after ] || exit 0
printf "# %-20s : %d %s\n" "Out of bounds values" "$bounds" OK "Avg bus bandwidth" 0 ""
printf "#\n# Collective test concluded: all_reduce_perf\n#\n\n"
case $wrong$bounds in 00 | N/A0) ;; *) exit 1 ;; esac'
    program mpirun '
export OMPI_COMM_WORLD_SIZE=$2 OMPI_COMM_WORLD_RANK=0
shift 2
while [ $OMPI_COMM_WORLD_RANK -lt $OMPI_COMM_WORLD_SIZE ]; do
    "$@" || exit
    OMPI_COMM_WORLD_RANK=$((OMPI_COMM_WORLD_RANK + 1))
done'
}

collectives() {
    run --separate-stderr env -u PLUMB_LIBNCCL scripts/peer-gpu --bin "$fake" --python "$fake/python" --only collectives \
        --nccl-tests "$fake/all_reduce_perf" --mpirun "$fake/mpirun" --sizes 64K --pairs 1 "$@"
}

@test "collectives: the ratio of times, out of place and in place, for each size and number of ranks" {
    nccl
    exits 0 collectives --sizes 64K,64M --pairs 6
    [[ ${lines[0]} == "collectives 1 rank 64K out of place: ratio 1.0100 (1.0100 to 1.0100, 6 pairs; "*" yes); plumb 101, nccl-tests 100 us; NCCL 2.28.9" ]]
    [[ ${lines[1]} == "collectives 1 rank 64M out "*": ratio 1.0100 "* ]]
    [[ ${lines[2]} == "collectives 2 ranks 64K out "*": ratio 1.0100 "*rehearsal ]]
    [[ ${lines[4]} == "collectives 2 ranks 64K in "*": ratio 1.0040 "*"plumb 50.2, nccl-tests 50 us"* ]]
    [[ ${lines[9]} == "collectives 4 ranks 64M in "*": ratio 1.0040 "* ]]
    [ "${#lines[@]}" -eq 10 ] # one rank in place has nothing to do
}

@test "collectives: nccl-tests is built with the NCCL of PyPI's package, which has no name for a linker" {
    nccl
    wheel=$BATS_TEST_TMPDIR/wheel/nvidia/nccl
    install -D /dev/null "$wheel/lib/libnccl.so.2"
    install -D /dev/null "$wheel/include/nccl.h"
    install -D /dev/null "$BATS_TEST_TMPDIR/tests/src/all_reduce.cu"
    program nvcc ''
    program make 'for word; do case $word in NCCL_HOME=*) ls -L "${word#*=}/lib" "${word#*=}/include" ;; esac; done >>"'"$fake"'/made"; exit 1'
    PATH=$fake:$PATH NVCC=$fake/nvcc run --separate-stderr env -u NCCL_HOME PLUMB_LIBNCCL="$wheel/lib/libnccl.so.2" scripts/peer-gpu --bin "$fake" \
        --python "$fake/python" --only collectives --nccl-tests "$BATS_TEST_TMPDIR/tests" --mpirun "$fake/mpirun" --sizes 64K --pairs 1
    grep -qx libnccl.so "$fake/made"
    grep -qx nccl.h "$fake/made"
}

@test "collectives: a known slow-down of either side is out of 2 %; few pairs and a wide interval decide nothing" {
    nccl
    echo 110 50 >"$fake/ours"
    exits 1 collectives --sizes 4M --pairs 6
    [[ ${lines[1]} == "collectives 2 ranks 4M out "*": ratio 1.1000 (1.1000 to 1.1000, 6 pairs; "*" NO, "*longer* ]]
    [[ ${lines[2]} == "collectives 2 ranks 4M in "*": ratio 1.0000 "*" yes)"* ]]
    echo 120.00 50.00 >"$fake/theirs"
    exits 1 collectives --sizes 4M --pairs 6
    [[ ${lines[0]} == *"ratio 0.9167 "*"NO, "*less* ]]
    echo 100.00 50.00 >"$fake/ours"
    exits 3 collectives --sizes 4M --pairs 5
    [[ ${lines[2]} == *"ratio 1.0000 (1.0000 to 1.0000, 5 pairs;"*"not decided"* ]]
    : >"$ORDER"
    echo 'out=$((90 + 10 * ($(grep -c theirs "$ORDER") / 3 % 3))).00' >"$fake/theirs.says" # another one in each round
    exits 3 collectives --sizes 4M --pairs 6
    [[ ${lines[0]} == *"(0.9091 to 1.1111, 6 pairs;"*"not decided"* ]]
}

@test "collectives: wrong data of either side are a finding, and named" {
    nccl
    echo '[ "$ranks" != 2 ] || wrong=37' >"$fake/theirs.says"
    exits 1 collectives
    [[ ${lines[0]} == "collectives 1 rank 64K "*": ratio 1.0100 "* ]]
    [[ ${lines[1]} == "collectives 2 ranks 64K out "*": WRONG DATA: nccl-tests: 37 "*" 65536 "* ]]
    [[ ${lines[3]} == "collectives 4 ranks 64K "*": ratio 1.0100 "* ]]
    echo 'bounds=1' >"$fake/theirs.says"
    exits 1 collectives
    [[ ${lines[0]} == *"WRONG DATA: nccl-tests: 1 out of bounds"* ]]
    rm "$fake/theirs.says"
    echo 'status=wrong reason="rank 1 element 7"' >"$fake/ours.says"
    exits 1 collectives
    [[ ${lines[0]} == *"WRONG DATA: plumb-allreduce: rank 1 element 7" ]]
}

@test "collectives: a peer that dies, stops short or fails is named with its words, and the rest goes on" {
    nccl
    echo '[ "$ranks" != 2 ] || [ "$(grep -c "^-b .*peer-rank-0" "$here/theirs.args")" -lt 4 ] || stop=before' >"$fake/theirs.says"
    exits 3 collectives --pairs 3
    [[ ${lines[1]} == "collectives 2 ranks 64K out "*": not compared: nccl-tests "*"(64K); plumb 101 us" ]]
    [[ ${lines[1]} == *"ended with 137"* ]]
    [[ ${lines[3]} == "collectives 4 ranks 64K "*": ratio 1.0100 "* ]]
    echo 'stop=before' >"$fake/theirs.says"
    exits 2 collectives
    [[ ${lines[0]} == *"not compared: nccl-tests "*SIGKILL* ]]
    echo 'stop=after' >"$fake/theirs.says"
    collectives
    [[ ${lines[0]} == *"not compared: nccl-tests: "*"(64K)"* ]]
    echo 'echo "node: Test NCCL failure common.cu:958 '"'unhandled system error'"'"; exit 3' >"$fake/theirs.says"
    collectives
    [[ ${lines[0]} == *"not compared: nccl-tests "*" 3: node: Test NCCL failure common.cu:958 "*" (64K); plumb 101 us" ]] # its last words
}

@test "everything is kept: pairs as they end, what each program printed; a signal ends the run with what there is" {
    nccl
    collectives --sizes 64K --pairs 2 --out "$BATS_TEST_TMPDIR/out"
    [ "$(head -n 2 "$BATS_TEST_TMPDIR/out/pairs.csv")" = "comparison,pair,first,ours,theirs,unit
collectives 1 rank 64K out of place,1,ours,101.0,100.0,us" ]
    grep -qx 'collectives 4 ranks 64K in place,2,theirs,50.2,50.0,us' "$BATS_TEST_TMPDIR/out/pairs.csv"
    [ "$(find "$BATS_TEST_TMPDIR/out/log" -name '*-all_reduce_perf.txt' | wc -l)" -eq 6 ]
    grep -q '^# Out of bounds values' "$BATS_TEST_TMPDIR/out/log/002-all_reduce_perf.txt"
    # In the second pair of two ranks nccl-tests does not end, and peer-gpu is asked to.
    echo '[ "$ranks" != 2 ] || [ "$(grep -c "^-b .*peer-rank-0" "$here/theirs.args")" -lt 8 ] || { kill -TERM "$(cat "$here/pid")"; exec sleep 1000; }' >"$fake/theirs.says"
    : >"$fake/theirs.args"
    run -3 --separate-stderr sh -c 'echo $$ >"$1/pid"; shift; exec "$@"' sh "$fake" env -u PLUMB_LIBNCCL scripts/peer-gpu --bin "$fake" \
        --python "$fake/python" --only collectives --nccl-tests "$fake/all_reduce_perf" --mpirun "$fake/mpirun" --pairs 6 --sizes 64K
    [[ ${lines[0]} == *"collectives 1 rank 64K out "*": ratio 1.0100 "*" of 6 pairs, "*"SIGTERM;"*"not decided"* ]]
    [ "${#lines[@]}" -eq 5 ]
}

@test "collectives: the real program on the simulated device, with 1, 2 and 4 ranks; wrong data of its are seen" {
    load ../sim/env
    simulate one
    nccl
    echo 1000000.0 1000000.0 >"$fake/theirs"
    rm "$fake/plumb-allreduce"
    ln -s "${PLUMB_BIN:-$PWD/build/bin}/plumb-allreduce" "$fake"
    # The version of the stand-in's nccl.h is not ours to know.
    version=$("${PLUMB_BIN:-build/bin}/plumb-allreduce" --backend nccl --np 1 --ranks 1 --size 8 --max-samples 1 --no-cpu --csv | grep -om1 'NCCL [0-9.]*')
    version=${version#NCCL }
    IFS=. read -r major minor patch <<<"$version"
    echo "library=$((major * 10000 + minor * 100 + patch))" >"$fake/theirs.says"
    simulated() {
        PLUMB_CUDA_MODULE=${PLUMB_BIN:-$PWD/build/bin}/../lib/plumbline/plumb-cuda.so \
            run --separate-stderr scripts/peer-gpu --bin "$fake" --only collectives --seconds 0.1 --sizes 4K \
            --nccl-tests "$fake/all_reduce_perf" --mpirun "$fake/mpirun" --pairs 1 "$@"
    }
    exits 3 simulated
    [ "$(grep -c "ratio 0\..*nccl-tests 1e+06 us; NCCL $version.*; rows are simulated\$" <<<"$output")" -eq 5 ]
    simulate two
    simulated --spread --ranks 2
    [ "$(grep -c "^collectives 2 GPUs .* ratio 0\..*; rows are simulated\$" <<<"$output")" -eq 2 ]
    simulate one
    fault corrupt:kernel=AllReduce:gpu=0:times=1000000
    exits 1 simulated
    [[ ${lines[1]} == "collectives 2 ranks 4K out "*": WRONG DATA: plumb-allreduce: "* ]]
}
