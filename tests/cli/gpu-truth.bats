#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086,SC2154 # options in one variable are several words, paths_of sets variables
# tier: long
# What rows of GPUs say of themselves when something was not as it should be, on simulated devices: samples that were
# taken while the GPU was held back, cases that were refused, a module that does not load, a GPU that does not answer.

load ../sim/env
load rows

setup()
{
    paths_of memory
    samples=$BATS_TEST_TMPDIR/samples
    simulate one
}

# bench NAME ARGUMENTS...: runs it; sets status, and leaves stdout and stderr in $out and $err.
bench() { bin=${bin%-*}-$1 quick=--csv measure "${@:2}"; }

memory()
{
    bench memory --device cuda:0 --size 1M --op copy --launch plain --warmup 20ms "$@"
}

# ends_soon NAME ARGUMENTS...: started, told to end when its first row is there and the second case hangs; sets status and
# took_s, from the signal on.
ends_soon()
{
    local name=$1 pid begin
    shift
    export PLUMB_SIM_HUNG=$BATS_TEST_TMPDIR/hung
    "${PLUMB_BIN:-build/bin}/plumb-$name" --csv "$@" >"$out" 2>"$err" </dev/null 3>&- &
    pid=$!
    in_time 600 eval "[[ \$(wc -l <'$out') -ge 2 && -e $PLUMB_SIM_HUNG ]]"
    begin=$SECONDS
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    took_s=$((SECONDS - begin))
}

@test "PLUMB_NO_HOLD: nothing is held or timed, right data is said to be untimed, and wrong data is wrong" {
    fault launch_failed:kernel=spin # the kernel that holds
    export PLUMB_NO_HOLD=1
    for line in "memory --device cuda:0 --op copy,latency --size 1M" "gemm --device cuda:0 --library cublaslt --size 256" \
        "copy --source node0 --destination cuda:0 --size 1M --direction one-way,both --engine ce,sm" "launch --device cuda:0"; do
        exits 0 bench $line --budget 50ms --warmup 1ms --max-samples 5
        [ "$(cells status | sort -u) $(cells code | sort -u)" = "skipped not-timed" ]
        [ -z "$(cells value | tr -d '\n')" ]
    done
    fault launch_failed:kernel=spin corrupt:kernel=copy:times=1000000
    memory --budget 50ms
    [ "$status" -eq 1 ] && [ "$(cells status | sort -u)" = wrong ]
}

@test "samples: each says where it is from, and those of a GPU that was held back by what" {
    fault throttle:reason=thermal:from_ms=1000:for_ms=400
    exits 0 memory --budget 3s --width 0.0001% --min-samples 100000 --samples "$samples"
    [ "$(head -n 1 "$samples")" = repeat,row,value,origin,disturbed ]
    [ "$(tail -n +2 "$samples" | cut -d, -f4 | sort -u)" = simulated ]
    n=$(tail -n +2 "$samples" | wc -l)
    marked=$(cut -d, -f5 "$samples" | grep -c '^thermal slowdown$')
    [ "$n" -eq "$(cells samples)" ]
    # The whole time of it at least, and no more than a look's distance either side (looks may be late).
    ((marked > 0 && marked < n))
    [[ $(cells disturbed) == *"(thermal slowdown), $marked of $n samples"* ]]
    # One piece, neither the first nor the last.
    [ "$(tail -n +2 "$samples" | cut -d, -f5 | uniq | wc -l)" -eq 3 ]
    [ "$(cells gpu_throttle)" = "thermal slowdown" ]
}

@test "a case that is refused before a GPU is opened is simulated where the machine is" {
    refused="--planned --device cuda:0 --size 1M --op triad --engine driver"
    bench memory $refused
    [ "$(cells origin)" = simulated ]
    [ "$(cells status)" = skipped ]
    bench memory --planned --device cuda:7 --size 1M --op copy --launch plain # as a run does
    [ "$(cells origin)" = simulated ]
    unset PLUMB_SIM_MACHINE PLUMB_LIBCUBLASLT LD_LIBRARY_PATH
    PLUMB_LIBCUDA=/nonexistent/libcuda.so.1 bench memory $refused
    [ "$(cells origin)" = measured ]
}

@test "a module that does not load: why, and what to do" {
    echo 'no library' >"$BATS_TEST_TMPDIR/plumb-cuda.so"
    PLUMB_CUDA_MODULE=$BATS_TEST_TMPDIR/plumb-cuda.so memory
    [ "$(cells status)" = skipped ]
    says "$out" plumb-cuda.so
    PLUMB_CUDA_MODULE=/nonexistent/plumb-cuda.so memory
    says "$out" "'/nonexistent/plumb-cuda.so'"

    (
        cd "$BATS_TEST_TMPDIR"
        echo 'int f(void) { return 0; }' >a.c
        "${CC:-cc}" -shared -fPIC a.c -o libmissing_part.so
        echo 'int f(void); int plumb_gpu_module(void) { return f(); }' >b.c
        "${CC:-cc}" -shared -fPIC b.c -o lacking.so -L. -lmissing_part
        rm libmissing_part.so
    )
    PLUMB_CUDA_MODULE=$BATS_TEST_TMPDIR/lacking.so memory
    says "$out" "'libmissing_part.so'"
}

@test "a GPU that hangs: told to end, the benchmark does, with its rows so far" {
    fault hang:kernel=triad_f64_u1
    exits 4 ends_soon memory --device cuda:0 --size 1M --op copy,triad --launch plain --budget 200ms --samples "$samples"
    ((took_s <= 300))
    [ "$(cells status | sed 's/noisy/ok/')" = $'ok\nfailed' ]
    says "$out" 'interrupted: GPU 0 at 0000:10:00.0 '
    [ "$(tail -n +2 "$samples" | wc -l)" -eq "$(cells samples | head -n 1)" ]
}

@test "a driver's call that does not end: told to end, the benchmark does, with its rows and samples so far" {
    fault hang:kernel=empty:after=100
    exits 4 ends_soon launch --op stream-sync,launch-complete --budget 200ms --samples "$samples"
    ((took_s <= 300))
    [[ $(cells op) == stream-sync ]]
    says "$err" 'plumb-launch: interrupted'
    [ "$(tail -n +2 "$samples" | wc -l)" -eq "$(cells samples)" ]
}
