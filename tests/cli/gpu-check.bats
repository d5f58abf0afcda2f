#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2016 # the made-up programs expand it themselves
# shellcheck disable=SC2154 # run sets stderr
# scripts/gpu-check in a made-up bundle, whose programs answer as they are told: what it says of what it saw.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    unset PLUMB_LIBCUBLASLT PLUMB_LIBNCCL
    top=$BATS_TEST_TMPDIR/top
    out=$BATS_TEST_TMPDIR/out
    export FAKE=$BATS_TEST_TMPDIR/fake
    mkdir -p "$top/scripts" "$top/tests" "$top/bin" "$FAKE/path"
    cp scripts/gpu-check "$top/scripts"
    for bench in gemm memory copy launch; do
        # Each reads on, as a program may: it must not take what the script goes through.
        program "$top/bin/plumb-$bench" '
name=${0##*/plumb-}
printf "%s %s lt=%s nccl=%s\n" "$name" "$*" "${PLUMB_LIBCUBLASLT-}" "${PLUMB_LIBNCCL-}" >>"$FAKE/asked"
cat >/dev/null
while [ $# -gt 0 ]; do
    [ "$1" != --output ] || exec >"$2"
    shift
done
echo "device,evidence,origin,status,reason"
[ ! -e "$FAKE/$name.rows" ] || { cat "$FAKE/$name.rows"; exit "$(cat "$FAKE/$name.exit")"; }
echo "cuda:0,\"words, of data\",measured,ok,"
echo "cuda:0,,measured,skipped,this GPU has no e4m3"
echo "cuda:0,,measured,noisy,\"samples, too few\""'
    done
    program "$top/bin/plumb" '
echo "plumb $*" >>"$FAKE/asked"
case $1 in
probe) cat "$FAKE/probe.json" 2>/dev/null || echo "{\"gpus\": [{\"name\": \"Made-up GPU\"}]}" ;;
run) eval "dir=\${$#}"; mkdir -p "$dir"; cp "$FAKE"/suite/* "$dir" 2>/dev/null; exit "$(cat "$FAKE/run.exit" 2>/dev/null || echo 0)" ;;
esac'
    for unit in test_cuda_module test_cuda_gemm; do
        program "$top/tests/$unit" 'cat >/dev/null; cat "$FAKE/${0##*/}.said" 2>/dev/null; exit "$(cat "$FAKE/${0##*/}.exit" 2>/dev/null || echo 0)"'
    done
    program "$top/scripts/peer-gpu" '
echo "peer $*" >>"$FAKE/asked"
case "$*" in *"--only collectives") what=collectives ;; *) what=peer ;; esac
cat "$FAKE/$what.said" 2>/dev/null || echo "matmul: ratio 1.01 (...)"
while [ $# -gt 1 ]; do
    case $1 in --out) dir=$2 ;; --only) only=$2 ;; esac
    shift
done
[ ! -e "$FAKE/figures.$only" ] || {
    mkdir -p "$dir"
    { echo comparison,verdict,asked,ratio,low,high,pairs,ours,theirs,unit,peer,origin,reason,ours_by,theirs_by; cat "$FAKE/figures.$only"; } >"$dir/figures.csv"
}
[ ! -e "$FAKE/kill.$only" ] || kill -KILL "$PPID"
exit "$(cat "$FAKE/$what.exit" 2>/dev/null || echo 0)"'
    program "$FAKE/path/compute-sanitizer" '
echo "sanitizer $*" >>"$FAKE/asked"
while [ "${1#-}" != "$1" ]; do case $1 in --tool) tool=$2 ;; esac; shift 2; done
[ ! -e "$FAKE/$tool.says" ] || { . "$FAKE/$tool.says"; }
"$@"
code=$?
echo "========= ERROR SUMMARY: 0 errors"
exit $code'
    PATH=$FAKE/path:$PATH
}

# program FILE TEXT: an executable that does this.
program() {
    printf '#!/bin/sh\n%s\n' "$2" | script "$1"
}

# answers BENCH EXIT ROW...: what that benchmark says from here on.
answers() {
    local bench=$1
    echo "$2" >"$FAKE/$bench.exit"
    shift 2
    printf '%s\n' "$@" >"$FAKE/$bench.rows"
}

check() {
    run --separate-stderr "$top/scripts/gpu-check" --out "$out" "$@"
}

# step NAME: its line of the table, blanks squeezed.
step() {
    grep "^$1 " <<<"$output" | tr -s ' '
}

@test "all steps good: exit 0, the table, and all of it packed" {
    exits 0 check
    [ "$(step probe)" = "probe good Made-up GPU" ]
    [ "$(step tests)" = "tests good 8 of 8" ]
    [ "$(step sanitizer)" = "sanitizer good 11 runs clean" ]
    for name in memory copies gemm nccl; do
        [[ $(step "$name") == "$name good 1 compared; "*"$out/$name.txt" ]]
    done
    [ "$(step launch)" = "launch good see $out/launch.csv" ]
    [ "$(step suite)" = "suite good $out/run" ]
    tar -tzf "$out.tar.gz" | grep -qx 'out/steps.txt'
    [[ $stderr == *"tests 8 of 8: plumb-launch"* ]]
    [[ $stderr == *"sanitizer 11 of 11: racecheck plumb-launch"* ]]
}

@test "one failed or wrong row among good ones is wrong, and so is an exit code; wrong goes before partial" {
    answers gemm 0 'cuda:0,,measured,skipped,why'
    answers copy 0 'cuda:0,,measured,ok,' 'cuda:0,,measured,wrong,"bit 3, flipped"'
    exits 1 check --steps tests
    [[ $(step tests) == "tests wrong 2 of 8; plumb-copy "*": wrong: bit 3, "* ]]
    answers copy 3 'cuda:0,,measured,ok,'
    exits 1 check --steps tests
    [[ $(step tests) == *": exit 3; see "* ]]
}

@test "wrong data and a lost GPU make later steps worthless, a failed unit test and a failed row do not" {
    echo 1 >"$FAKE/test_cuda_module.exit"
    answers copy 1 'cuda:0,,measured,failed,no such call'
    check
    [[ $(step tests) == "tests wrong 3 of 8; "* && $(step gemm) == "gemm good "* && $(step suite) == "suite good "* ]]
    answers copy 1 'cuda:0,,measured,failed,no such call' 'cuda:0,,measured,wrong,bits'
    check --again
    [[ $(step gemm) == "gemm partial "*tests* ]]
    answers copy 1 'cuda:0,,measured,failed,lost'
    program "$top/tests/test_cuda_gemm" "echo 1 >'$FAKE/launch.exit'; echo 'cuda:0,,,failed,lost' >'$FAKE/launch.rows'"
    check --again
    [[ $(step gemm) == "gemm partial "*after*tests* ]]
}

@test "a suite's run in which a benchmark has no number is partial, and no reference" {
    mkdir "$FAKE/suite"
    for bench in gemm memory allreduce; do
        printf '%s\n' origin,status,reason 'measured,skipped,"no NCCL, here"' measured,ok, >"$FAKE/suite/$bench.csv"
    done
    sed -i '$d' "$FAKE"/suite/{gemm,allreduce}.csv
    cp "$FAKE/suite/gemm.csv" "$FAKE/suite/plan.csv"
    exits 4 check --steps suite
    [[ $(step suite) == "suite partial "*"allreduce, gemm "* ]]
    [ ! -e "$top/results/reference" ]
}

@test "NCCL and cuBLASLt are those of the Python environment with torch, whichever CUDA they are of, unless they do nothing" {
    local site=$BATS_TEST_TMPDIR/site
    for name in nccl/lib/libnccl.so.2 cublas/lib/libcublasLt.so.12; do
        install -D /dev/null "$site/nvidia/$name"
    done
    cp "$top/bin/plumb-gemm" "$top/bin/plumb-allreduce"
    PYTHONPATH=$site check --steps tests
    [[ $stderr == *"$site/nvidia/nccl/lib/libnccl.so.2"* ]]
    grep -q "^gemm .* lt=$site/nvidia/cublas/lib/libcublasLt.so.12 nccl=$site/nvidia/nccl/lib/libnccl.so.2" "$FAKE/asked"
    : >"$FAKE/asked"
    answers allreduce 0 'cuda:0,,,skipped,"the library does not load"'
    PYTHONPATH=$site check --steps tests
    grep -q "^gemm .* lt=$site/nvidia/cublas/lib/libcublasLt.so.12 nccl=\$" "$FAKE/asked"
}

@test "under compute-sanitizer nothing is held, and rows that say so are good" {
    echo '[ "$PLUMB_NO_HOLD" ] || exit 99' | tee "$FAKE/memcheck.says" >"$FAKE/racecheck.says"
    sed -i 's/^echo "device,evidence,origin,status,reason"/echo "device,evidence,origin,status,reason,code"/' "$top/bin/plumb-launch"
    answers launch 0 'cuda:0,,measured,skipped,not timed,not-timed'
    check --steps sanitizer
    [ "$(step sanitizer)" = "sanitizer good 11 runs clean" ]
}

@test "steps one by one into one folder: the table has what earlier ones left, the exit code counts it" {
    answers copy 1 'cuda:0,,measured,wrong,bits'
    exits 1 check --steps tests
    [ "$(step suite)" = "suite not run" ]
    exits 1 check --steps probe,suite --skip probe
    [[ $(step tests) == "tests wrong "* ]]
    [[ $(step suite) == "suite good "* ]]
    [ "$(step probe)" = "probe not run" ]
    rm "$FAKE/copy.rows"
    exits 0 check --steps tests
    [ "$(step tests)" = "tests good 8 of 8" ]
    exits 2 check --steps tests,nonsense
    [[ $stderr == *"no step 'nonsense'"* ]]
}

@test "it goes on: what was good is not done again, --again does it" {
    exits 0 check
    : >"$FAKE/asked"
    exits 0 check
    [ "$(grep -cE '^(peer|sanitizer|plumb run|gemm)' "$FAKE/asked")" -eq 0 ]
    [[ $(step nccl) == "nccl good 1 compared; "*"$out/nccl.txt" ]]
    [[ $stderr == *"nccl was good"*"--steps nccl"* ]]
    check --again
    [ "$(grep -c '^peer' "$FAKE/asked")" -eq 4 ]
}

@test "killed in the middle of a step: the next call goes on with that one" {
    touch "$FAKE/kill.collectives"
    exits 137 check
    grep -q '^nccl *partial ' "$out/steps.txt"
    tar -xzOf "$out.tar.gz" out/steps.txt | grep -q '^launch *good'
    rm "$FAKE/kill.collectives"
    : >"$FAKE/asked"
    exits 0 check
    [ "$(grep -oE '^(peer .*--only .*|plumb run|sanitizer)' "$FAKE/asked" | sed 's/.*--only //' | uniq | paste -sd,)" = "collectives,sanitizer,plumb run" ]
}

@test "over the simulated device: each step runs, nothing counts as seen, a kill leaves the run to go on with" {
    . tests/sim/env.bash
    simulate one
    ln -sfn "$PWD/build/lib" "$top/lib"
    rm -r "${top:?}/bin"
    mkdir "$top/bin"
    ln -s "$PWD"/build/bin/* "$top/bin"
    ln -s "$PWD/configs" "$top/configs"
    ln -s "$PWD/tests/peers" "$top/tests/peers"
    cp scripts/peer-gpu "$top/scripts"
    printf '%s\n' 'suite: tiny' 'about: launches' 'defaults: {budget: 20ms, warmup: 1ms}' 'cases:' \
        '  - bench: launch' '    device: gpu' '    op: [launch, launch-complete, graph, stream-sync]' '    repeat: 10' >"$FAKE/tiny.yaml"
    exits 4 check --suite "$FAKE/tiny.yaml" --steps probe,memory,launch -- --pairs 1 --seconds 0.1
    [[ $(step probe) == "probe partial Simulated GPU; "* ]]
    [[ $(step launch) == "launch partial "*simulated* ]]
    [[ $(step memory) == "memory partial "* ]]
    grep -q ': 0 of 10$' <<<"$output"
    # Killed as it runs the suite: what it has is kept, and the next call goes on with it.
    setsid "$top/scripts/gpu-check" --suite "$FAKE/tiny.yaml" --out "$out" --steps suite >/dev/null 2>&1 &
    killed=$!
    in_time 300 eval "[[ \$(grep -cs '^done,' '$out/run/plan.csv') -ge 2 ]]"
    kill -KILL -- "-$killed"
    wait "$killed" || true
    [ "$(grep -c '^done,' "$out/run/plan.csv")" -lt 40 ]
    exits 4 check --suite "$FAKE/tiny.yaml" --steps suite
    [[ $(step suite) == "suite partial "*simulated*"$out/run" ]]
    [[ $stderr == *"goes on with '$out/run'"* ]]
    [ ! -e "$top/results/reference" ]
}
