#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # the made-up programs expand it themselves
# shellcheck disable=SC2154 # run sets stderr
# scripts/gpu-check in a made-up bundle, whose programs answer as they are told: what it says of what it saw.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    unset PLUMB_LIBCUBLASLT
    top=$BATS_TEST_TMPDIR/top
    out=$BATS_TEST_TMPDIR/out
    export FAKE=$BATS_TEST_TMPDIR/fake
    mkdir -p "$top/scripts" "$top/tests" "$top/bin" "$FAKE/path"
    cp scripts/gpu-check "$top/scripts"
    for bench in gemm memory copy launch; do
        # Each reads on, as a program may: it must not take what the script goes through.
        program "$top/bin/plumb-$bench" '
name=${0##*/plumb-}
printf "%s %s lt=%s\n" "$name" "$*" "${PLUMB_LIBCUBLASLT-}" >>"$FAKE/asked"
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
run) mkdir -p "$(eval echo \${$#})"; exit "$(cat "$FAKE/run.exit" 2>/dev/null || echo 0)" ;;
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
    { echo comparison,verdict,asked,ratio,low,high,pairs,ours,theirs,unit,peer,origin,reason; cat "$FAKE/figures.$only"; } >"$dir/figures.csv"
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
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
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
    check
    [ "$status" -eq 0 ]
    [ "$(step probe)" = "probe good Made-up GPU" ]
    [ "$(step tests)" = "tests good 8 of 8" ]
    [ "$(step sanitizer)" = "sanitizer good 11 runs clean" ]
    for name in memory copies gemm nccl; do
        [ "$(step "$name")" = "$name good 1 compared; see $out/$name.txt" ]
    done
    [ "$(step launch)" = "launch good see $out/launch.csv" ]
    [ "$(step suite)" = "suite good $out/run" ]
    tar -tzf "$out.tar.gz" | grep -qx 'out/steps.txt'
    [[ $stderr == *"tests 8 of 8: plumb-launch"* ]]
    [[ $stderr == *"sanitizer 11 of 11: racecheck plumb-launch"* ]]
}

@test "the most worth first; where the tests are wrong, nothing is measured with what is wrong" {
    check
    [ "$(grep -oE '^(plumb probe|plumb run|sanitizer|peer .*--only (collectives|copy|to-device|matmul)|launch .*--budget 2s)' "$FAKE/asked" |
        sed 's/ .*--only//; s/^launch.*/launch/' | uniq | paste -sd,)" = \
        "plumb probe,peer copy,peer to-device,peer matmul,launch,peer collectives,sanitizer,plumb run" ]
    : >"$FAKE/asked"
    rm -r "$out"
    answers copy 0 'cuda:0,,measured,wrong,"bit 3, flipped"'
    check
    [ "$status" -eq 1 ]
    [ "$(grep -cE '^(plumb run|peer|sanitizer)' "$FAKE/asked")" -eq 0 ]
    [ "$(step suite)" = "suite partial left out: the tests found wrong data, or a call that fails (--keep-going)" ]
    check --keep-going
    [ "$(grep -cE '^(plumb run|peer)' "$FAKE/asked")" -eq 5 ]
}

@test "all steps end within --total" {
    program "$top/scripts/peer-gpu" 'echo "peer $*" >>"$FAKE/asked"; exec sleep 2.2'
    check --steps memory,nccl,suite --total 2
    [ "$status" -eq 4 ]
    grep -q '^peer .*--limit [12] .*--only copy' "$FAKE/asked"
    [[ $(step nccl) == "nccl partial no time left (--total 2); --steps nccl --out $out" ]]
    [[ $(step suite) == "suite partial no time left (--total 2); "* ]]
    [ "$(grep -c 'peer' "$FAKE/asked")" -eq 1 ]
    check --steps probe --total soon
    [ "$status" -eq 2 ]
}

@test "rows that are all skipped are no test: partial, with the reason" {
    answers gemm 0 'cuda:0,,measured,skipped,"no such, library"'
    check --steps probe,tests
    [ "$status" -eq 4 ]
    [[ $(step tests) == "tests partial 1 of 8 not seen; plumb-gemm "*": skipped: no such, library; see "* ]]
    : >"$FAKE/gemm.rows"
    check --steps tests
    [[ $(step tests) == "tests partial "*": no rows; see "* ]]
}

@test "one failed or wrong row among good ones is wrong, and so is an exit code; wrong goes before partial" {
    answers gemm 0 'cuda:0,,measured,skipped,why'
    answers copy 0 'cuda:0,,measured,ok,' 'cuda:0,,measured,wrong,"bit 3, flipped"'
    check --steps tests
    [ "$status" -eq 1 ]
    [[ $(step tests) == "tests wrong 2 of 8; plumb-copy "*": wrong: bit 3, flipped; see "* ]]
    answers copy 3 'cuda:0,,measured,ok,'
    check --steps tests
    [ "$status" -eq 1 ]
    [[ $(step tests) == *": exit 3; see "* ]]
}

@test "rows of a simulated device are no test of a real one" {
    answers launch 0 'cuda:0,,simulated,ok,'
    check --steps probe,tests
    [ "$status" -eq 4 ]
    [ "$(step probe)" = "probe partial Made-up GPU; rows are simulated" ]
    [[ $(step tests) == *"rows are simulated"* ]]
}

@test "tests of the module: skipped for want of a part is partial, what a real GPU cannot be asked is not" {
    printf '%s\n' 'there is one GPU alone' '[  SKIPPED ] peers' '[  SKIPPED ] 2 test(s), listed below:' \
        '[  SKIPPED ] facts_of_the_simulated_machine' '[  SKIPPED ] peers' >"$FAKE/test_cuda_module.said"
    check --steps tests
    [ "$status" -eq 0 ]
    [ "$(step tests)" = "tests good 8 of 8; cannot be asked of this machine: facts_of_the_simulated_machine peers" ]
    echo '[  SKIPPED ] every_type' >"$FAKE/test_cuda_gemm.said"
    check --steps tests
    [ "$status" -eq 4 ]
    [[ $(step tests) == "tests partial 1 of 8 not seen; test_cuda_gemm: skipped: every_type; see "* ]]
    echo 77 >"$FAKE/test_cuda_gemm.exit"
    check --steps tests
    [[ $(step tests) == "tests partial "*"skipped: exit 77"* ]]
    echo 1 >"$FAKE/test_cuda_gemm.exit"
    echo '[  FAILED  ] every_type' >"$FAKE/test_cuda_gemm.said"
    check --steps tests
    [ "$status" -eq 1 ]
    [[ $(step tests) == "tests wrong 1 of 8; test_cuda_gemm: exit 1: every_type; see "* ]]
    rm "$top/tests/test_cuda_gemm"
    check --steps tests
    [[ $(step tests) == "tests partial "*"is not here: it needs cmocka"* ]]
}

@test "no GPU: said with its reason, exit 2" {
    answers launch 0 'cuda:0,,,skipped,no driver'
    check
    [ "$status" -eq 2 ]
    [[ $stderr == *"no GPU answers as 'cuda:0': skipped: no driver"* ]]
}

@test "cuBLASLt of the given python is taken where the module finds none, and none where it finds one" {
    answers gemm 0 'cuda:0,,measured,skipped,"no cuBLASLt (libcublasLt.so.13): install it, or"'
    mkdir -p "$FAKE/site/nvidia/cu13/lib" "$FAKE/site/nvidia/cublas/lib"
    touch "$FAKE/site/nvidia/cu13/lib/libcublasLt.so.13" "$FAKE/site/nvidia/cublas/lib/libcublasLt.so.12"
    program "$FAKE/python" "PYTHONPATH=$FAKE/site exec python3 \"\$@\""
    check --steps tests -- --pairs 3 --python "$FAKE/python"
    grep '^gemm .*--size 1024' "$FAKE/asked" | grep -q "lt=$FAKE/site/nvidia/cu13/lib/libcublasLt.so.13\$"
    rm "$FAKE/gemm.rows" "$FAKE/asked"
    check --steps tests -- --python "$FAKE/python"
    grep '^gemm .*--size 1024' "$FAKE/asked" | grep -q 'lt=$'
}

@test "compute-sanitizer: what it is asked; gemm is left out of racecheck" {
    check --steps sanitizer
    [ "$status" -eq 0 ]
    grep '^sanitizer --tool memcheck --error-exitcode 99 .*--report-api-errors no ' "$FAKE/asked" | grep -q plumb-gemm
    grep -q '^sanitizer --tool racecheck .*plumb-memory' "$FAKE/asked"
    run ! grep -q '^sanitizer --tool racecheck .*plumb-gemm' "$FAKE/asked"
}

@test "compute-sanitizer that knows no such device, or is not there: partial" {
    echo 'echo "========= Error: Device not supported. Please"; exit 1' >"$FAKE/memcheck.says"
    check --steps sanitizer
    [ "$status" -eq 4 ]
    [ "$(step sanitizer)" = "sanitizer partial compute-sanitizer: Device not supported. Please" ]
    [ "$(grep -c ^sanitizer "$FAKE/asked")" -eq 1 ]
    rm "$FAKE/path/compute-sanitizer"
    # The machine's own, where there is one, is not to be found.
    for path in sh bash env cat date dirname basename grep head mkdir mv rm sed tar gzip touch awk python3; do
        ln -sf "$(type -P "$path")" "$FAKE/path/$path"
    done
    run --separate-stderr env PATH="$FAKE/path" "$top/scripts/gpu-check" --out "$out" --steps sanitizer
    [ "$status" -eq 4 ]
    [[ $(step sanitizer) == "sanitizer partial compute-sanitizer is not here"* ]]
}

@test "compute-sanitizer: exit 99 or errors in its summary are findings, other exit codes are not" {
    echo 'echo "========= ERROR SUMMARY: 12 errors"; exit 99' >"$FAKE/racecheck.says"
    check --steps sanitizer
    [ "$status" -eq 1 ]
    [[ $(step sanitizer) == "sanitizer wrong 5 of 11; racecheck plumb-memory "*"SUMMARY: 12 errors"* ]]
    echo 'echo "========= RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)"; exit 4' >"$FAKE/racecheck.says"
    check --steps sanitizer
    [[ $(step sanitizer) == "sanitizer wrong 5 of 11;"* ]]
    echo 'echo "========= RACECHECK SUMMARY: 10 hazards displayed (0 errors, 10 warnings)"; exit 6' >"$FAKE/racecheck.says"
    check --steps sanitizer
    [ "$status" -eq 4 ]
    [[ $(step sanitizer) == "sanitizer partial 5 of 11 not seen; racecheck plumb-memory "*": exit 6: no rows; see "* ]]
}

@test "compute-sanitizer: a hold that ran out and rows that are skipped are partial, wrong data is wrong" {
    answers memory 4 'cuda:0,,measured,failed,the stream was held for 10 s and went on by itself'
    check --steps sanitizer
    [ "$status" -eq 4 ]
    [[ $(step sanitizer) == "sanitizer partial 4 of 11 not seen; "*"the hold ran out (held for)"* ]]
    answers memory 0 'cuda:0,,measured,skipped,no memory'
    check --steps sanitizer
    [[ $(step sanitizer) == "sanitizer partial 4 of 11 not seen; "*"skipped: no memory"* ]]
    answers memory 1 'cuda:0,,measured,wrong,element 3'
    check --steps sanitizer
    [ "$status" -eq 1 ]
    [[ $(step sanitizer) == "sanitizer wrong 4 of 11; "*"wrong: element 3"* ]]
}

@test "peers: below one is wrong, one that could not be compared is partial" {
    printf '%s\n' 'matmul: ratio 1.01 (' 'triad: not compared: no BabelStream' >"$FAKE/peer.said"
    check --steps memory -- --pairs 3
    [ "$status" -eq 4 ]
    [[ $(step memory) == "memory partial 1 of 2 compared"* ]]
    grep -qx "peer --bin bin --device cuda:0 --limit [0-9]* --out $out/memory --pairs 3 --only copy,triad" "$FAKE/asked"
    echo 1 >"$FAKE/peer.exit"
    check --steps memory
    [ "$status" -eq 1 ]
    echo 2 >"$FAKE/peer.exit"
    check --steps memory
    [ "$status" -eq 4 ]
    [[ $(step memory) == "memory partial nothing could be compared: exit 2; triad: no BabelStream; see "* ]]
}

@test "memory and collectives: numbers of a simulated device, and fewer pairs than asked, are partial" {
    echo 'matmul: ratio 1.01 (0.9 to 1.1, 7 pairs; asked 1.00: met); plumb 1, torch 1 GB/s; rows are simulated' >"$FAKE/peer.said"
    echo 'x: ratio 1.01 (1.0 to 1.0, 6 of 7 pairs, no time left (--limit 9); within 2 %: yes); plumb 1' >"$FAKE/collectives.said"
    check --steps memory,nccl
    [ "$status" -eq 4 ]
    [[ $(step memory) == "memory partial rows are simulated; "* ]]
    [[ $(step nccl) == "nccl partial all 1 compared, with fewer pairs than asked; "* ]]
}

@test "collectives: outside of 2 % and wrong data are wrong, not decided and not compared are partial; what it is asked" {
    local good='x 64K: ratio 1.0001 (0.9990 to 1.0012, 7 pairs; within 2 %: yes); plumb 1, nccl-tests 1 us'
    printf '%s\n' "$good" 'y 64K: ratio 1.05 (1.04 to 1.06, 7 pairs; within 2 %: NO, ours takes longer); plumb 2' >"$FAKE/collectives.said"
    echo 1 >"$FAKE/collectives.exit"
    check --steps nccl -- --nccl-tests there
    [ "$status" -eq 1 ]
    [[ $(step nccl) == "nccl wrong 2 of 2 compared; y 64K: ratio 1.05 "*"NO, ours takes longer"* ]]
    grep -qx "peer --bin bin --device cuda:0 --limit \(420\|41[0-9]\) --out $out/nccl --nccl-tests there --sizes 64K,16M,1G --ranks 1,2 --only collectives" "$FAKE/asked"
    printf '%s\n' "$good" 'y 64K: WRONG DATA: 3 elements' >"$FAKE/collectives.said"
    check --steps nccl
    [[ $(step nccl) == "nccl wrong 1 of 2 compared; y 64K: WRONG DATA: 3 elements; see "* ]]
    echo 3 >"$FAKE/collectives.exit"
    printf '%s\n' "$good" 'y 64K: ratio 1.05 (0.9 to 1.06, 7 pairs; within 2 %: not decided); plumb 2' >"$FAKE/collectives.said"
    check --steps nccl
    [ "$status" -eq 4 ]
    [[ $(step nccl) == "nccl partial 1 of 2 not decided; see "* ]]
    echo 0 >"$FAKE/collectives.exit"
    printf '%s\n' "$good" 'y 64K: not compared: no MPI; plumb 2 us' >"$FAKE/collectives.said"
    check --steps nccl
    [[ $(step nccl) == "nccl partial 1 of 2 compared; y 64K: no MPI; plumb 2 us; see "* ]]
    check --steps nccl --limit 100
    grep -q "^peer .*--limit \(9[0-9]\|100\) .*--only collectives" "$FAKE/asked"
    check --steps probe --limit soon
    [ "$status" -eq 2 ]
}

@test "a step ends within its limit: what runs is ended, what is left is named, what there is stays and is packed" {
    program "$top/tests/test_cuda_module" 'echo so far; exec sleep 1000'
    check --steps tests --limit 2
    [ "$status" -eq 4 ]
    [[ $(step tests) == "tests partial "*" of 8 not seen; test_cuda_module: it did not end in time (--limit 2); see $out/tests.log" ]]
    [[ $stderr == *"plumb-launch --device cuda:0: no time left (--limit 2)"* ]]
    grep -qx 'so far' "$out/tests.log"
    program "$top/bin/plumb" 'mkdir -p "$4"; exec sleep 1000'
    check --steps suite --limit 2
    [ "$status" -eq 4 ]
    [[ $(step suite) == "suite partial no time left (--limit 2): $out/run; go on with --steps suite --out $out" ]]
    program "$FAKE/path/compute-sanitizer" 'case "$*" in *"--op launch "*) exec "$TRY" ;; *) exec sleep 1000 ;; esac'
    TRY=$(type -P true) check --steps sanitizer --limit 6 # of which the first look takes a part too
    [ "$status" -eq 4 ]
    [[ $(step sanitizer) == "sanitizer partial 11 of 11 not seen; memcheck plumb-gemm "*"it did not end in time: exit 124"* ]]
}

@test "SIGTERM: the table and the packed folder have what there is" {
    check --steps probe
    program "$top/bin/plumb" 'kill -TERM "$(cut -d" " -f4 "/proc/$PPID/stat")"'
    check --steps suite
    [ "$status" -eq 143 ]
    [ "$(step probe)" = "probe good Made-up GPU" ]
    [[ $(step suite) == "suite partial it began and did not end" ]]
    tar -xzOf "$out.tar.gz" out/steps.txt | grep -q '^suite *partial *it began'
}

@test "what earlier steps saw is packed before the next one begins" {
    program "$top/bin/plumb" 'case $1 in run) kill -KILL "$(cut -d" " -f4 "/proc/$PPID/stat")" ;; esac'
    check --steps tests,suite
    [ "$status" -eq 137 ]
    tar -xzOf "$out.tar.gz" out/steps.txt | grep -q '^tests *good'
}

@test "steps one by one into one folder: the table has what earlier ones left, the exit code counts it" {
    answers copy 1 'cuda:0,,measured,wrong,bits'
    check --steps tests
    [ "$status" -eq 1 ]
    [ "$(step suite)" = "suite not run" ]
    check --steps probe,suite --skip probe
    [ "$status" -eq 1 ]
    [[ $(step tests) == "tests wrong "* ]]
    [[ $(step suite) == "suite good "* ]]
    [ "$(step probe)" = "probe not run" ]
    rm "$FAKE/copy.rows"
    check --steps tests
    [ "$status" -eq 0 ]
    [ "$(step tests)" = "tests good 8 of 8" ]
    check --steps tests,nonsense
    [ "$status" -eq 2 ]
    [[ $stderr == *"no step 'nonsense'"* ]]
}

@test "a step that is killed is not what it was before" {
    check --steps suite
    [ "$(step suite)" = "suite good $out/run" ]
    program "$top/bin/plumb" 'kill -KILL "$(cut -d" " -f4 "/proc/$PPID/stat")"' # timeout is in between
    check --steps suite
    [ "$status" -eq 137 ]
    grep -q '^suite *partial *it began and did not end' "$out/steps.txt"
}

@test "the suite goes on where it was left" {
    echo 4 >"$FAKE/run.exit"
    check --steps suite --suite quick --only '*copy*'
    [ "$status" -eq 4 ]
    [[ $(step suite) == "suite partial incomplete: "* ]]
    grep -qx "plumb run quick --out $out/run --only \*copy\*" "$FAKE/asked" # fake plumb makes the last word's folder
    mkdir -p "$out/run"
    echo 0 >"$FAKE/run.exit"
    check --steps suite
    [ "$status" -eq 0 ]
    grep -qx "plumb run --resume $out/run" "$FAKE/asked"
    echo 2 >"$FAKE/run.exit"
    check --steps suite
    [ "$status" -eq 4 ]
    [[ $(step suite) == "suite partial plumb run --resume $out/run refused"* ]]
    echo 0 >"$FAKE/run.exit"
    printf '%s\n' 'device,evidence,origin,status,reason' 'cuda:0,"a, b",simulated,ok,' >"$out/run/launch.csv"
    check --steps suite
    [ "$status" -eq 4 ]
    [ "$(step suite)" = "suite partial rows are simulated: $out/run" ]
}

# A source tree whose make does this.
tree() {
    mkdir -p "$top/benches" "$top/build/bin" "$top/build/lib/plumbline"
    printf 'programs units:\n\t@%s\n' "$1" >"$top/Makefile"
}

@test "a source tree that cannot be built: a bundle's programs, or what is there, or what to do" {
    tree 'echo no hwloc; false'
    check --steps probe
    [ "$status" -eq 2 ]
    [[ $stderr == *"no hwloc"*"make programs failed: see $out/build.log: install "*"--bundle"* ]]
    mkdir "$BATS_TEST_TMPDIR/bundle"
    mv "$top/bin" "$BATS_TEST_TMPDIR/bundle/bin"
    check --steps probe --bundle "$BATS_TEST_TMPDIR/bundle"
    [ "$status" -eq 0 ]
    [[ $(step build) == "build good not here (make programs failed"*"the programs are those of $BATS_TEST_TMPDIR/bundle" ]]
    check --steps probe --bundle "$BATS_TEST_TMPDIR"
    [ "$status" -eq 2 ]
    cp "$BATS_TEST_TMPDIR"/bundle/bin/* "$top/build/bin"
    check --steps probe
    [ "$status" -eq 4 ]
    [[ $(step build) == "build partial make programs failed"* ]]
}

@test "a source tree that builds: its own programs; without nvcc it counts as not built" {
    tree 'true'
    mv "$top/bin"/* "$top/build/bin"
    touch "$top/build/lib/plumbline/plumb-cuda.so"
    check --steps probe
    [ "$status" -eq 0 ]
    [ "$(step build)" = "build good build/bin" ]
    rm "$top/build/lib/plumbline/plumb-cuda.so"
    check --steps probe
    [ "$status" -eq 4 ]
    [[ $(step build) == "build partial the GPU module was not built"* ]]
}

@test "figures: reached, missed, undecided, not seen; each with its ratio and spread, of all steps in one file" {
    echo 'triad,reached,1.0,1.004,0.998,1.01,7,4500,4480,GB/s,BabelStream,measured,' >"$FAKE/figures.copy,triad"
    printf '%s\n' 'to-device,missed,0.99,0.95,0.94,0.96,7,52,55,GB/s,nvbandwidth,measured,' \
        'from-device,not-compared,0.99,,,,,,,,nvbandwidth,measured,"none, here"' >"$FAKE/figures.to-device,from-device"
    echo 'collectives 2 ranks 16M out of place,undecided,1.0,1.02,0.97,1.05,6,1,1,us,nccl-tests,measured,' >"$FAKE/figures.collectives"
    echo 1 >"$FAKE/peer.exit"
    check
    [ "$status" -eq 1 ]
    grep -qx 'reached     memory, triad: 1.00 of BabelStream: 1.004 (0.998 to 1.01, 7 pairs)' <<<"$output"
    grep -qx 'missed      pinned copy to the GPU: 0.99 of nvbandwidth: 0.95 (0.94 to 0.96, 7 pairs)' <<<"$output"
    grep -qx 'not seen    pinned copy from the GPU: 0.99 of nvbandwidth' <<<"$output"
    grep -qx 'undecided   NCCL, 2 ranks, 16M: 1.00 of nccl-tests: 1.02 (0.97 to 1.05, 6 pairs)' <<<"$output"
    grep -qx 'not seen    NCCL, 1 rank, 1G: 1.00 of nccl-tests' <<<"$output"
    grep -qx 'seen on a real GPU: 3 of 10' <<<"$output"
    [ "$(wc -l <"$out/figures.csv")" -eq 5 ]
    sed -i 's/,measured,/,simulated,/' "$FAKE/figures.copy,triad"
    check --steps memory
    grep -q '^reached .*; simulated: says nothing of a GPU$' <<<"$output"
    grep -qx 'seen on a real GPU: 2 of 10' <<<"$output"
}

@test "wrong data of a later step, or a GPU that answers no more, leaves the rest out" {
    echo 'to-device,wrong-data,0.99,,,,,,,,nvbandwidth,measured,byte 3' >"$FAKE/figures.to-device,from-device"
    check
    [ "$(step gemm)" = "gemm partial left out: copies found wrong data (--keep-going)" ]
    grep -q '^wrong data *pinned copy to the GPU' <<<"$output"
    rm "$FAKE/figures.to-device,from-device"
    # It answers until the memory step.
    program "$top/scripts/peer-gpu" 'echo 4 >"$FAKE/launch.exit"
echo "cuda:0,,measured,failed,it fell off the bus" >"$FAKE/launch.rows"'
    check --again
    [ "$(step copies)" = "copies partial left out: after memory no GPU answers as 'cuda:0': failed: it fell off the bus (--keep-going)" ]
    [ "$(step suite)" = "suite partial left out: after memory no GPU answers as 'cuda:0': failed: it fell off the bus (--keep-going)" ]
}

@test "it goes on: what was good is not done again, --again does it" {
    check
    [ "$status" -eq 0 ]
    : >"$FAKE/asked"
    check
    [ "$status" -eq 0 ]
    [ "$(grep -cE '^(peer|sanitizer|plumb run|gemm)' "$FAKE/asked")" -eq 0 ]
    [ "$(step nccl)" = "nccl good 1 compared; see $out/nccl.txt" ]
    [[ $stderr == *"nccl was good before: --again, or --steps nccl, does it again"* ]]
    check --again
    [ "$(grep -c '^peer' "$FAKE/asked")" -eq 4 ]
}

@test "killed in the middle of a step: the next call goes on with that one" {
    touch "$FAKE/kill.collectives"
    check
    [ "$status" -eq 137 ]
    grep -q '^nccl *partial *it began and did not end' "$out/steps.txt"
    tar -xzOf "$out.tar.gz" out/steps.txt | grep -q '^launch *good'
    rm "$FAKE/kill.collectives"
    : >"$FAKE/asked"
    check
    [ "$status" -eq 0 ]
    [ "$(grep -oE '^(peer .*--only .*|plumb run|sanitizer)' "$FAKE/asked" | sed 's/.*--only //' | uniq | paste -sd,)" = "collectives,sanitizer,plumb run" ]
}

@test "--node: all GPUs, an hour; a machine of one GPU says so" {
    echo '{"gpus": {"devices": [{"name": "A"}, {"name": "B"}, {"name": "C"}]}}' >"$FAKE/probe.json"
    printf '%s\n' 'collectives 3 GPUs 16M out of place,reached,1.0,1.0,0.99,1.01,7,1,1,us,nccl-tests,measured,' \
        'collectives 3 GPUs 64K out of place,missed,1.0,1.1,1.09,1.11,7,1,1,us,nccl-tests,measured,' \
        >"$FAKE/figures.collectives,pair-write,pair-read,one-to-all,all-to-one"
    check --node -- --pairs 6
    [ "$status" -eq 0 ]
    grep -q '^peer .* --pairs 6 --spread --sizes 64K,16M,1G --ranks 3 --only collectives,pair-write,pair-read,one-to-all,all-to-one$' "$FAKE/asked"
    grep -q '^reached *NCCL, 3 GPUs, 16M' <<<"$output"
    grep -q '^missed *NCCL, 3 GPUs, 64K: 1.00 of nccl-tests: 1.1 (1.09 to 1.11, 7 pairs)' <<<"$output"
    grep -q '^not seen *NCCL, 3 GPUs, 1G' <<<"$output"
    grep -qx 'seen on a real GPU: 2 of 13' <<<"$output"
    # Of two GPUs too these are figures of their own: two ranks of one GPU are another thing.
    echo '{"gpus": {"devices": [{"name": "A"}, {"name": "B"}]}}' >"$FAKE/probe.json"
    echo 'collectives 2 ranks 64K out of place,reached,1.0,1.0,0.99,1.01,7,1,1,us,nccl-tests,measured,' >"$FAKE/figures.collectives"
    check --node --again
    grep -q '^reached *NCCL, 2 ranks, 64K' <<<"$output"
    grep -q '^not seen *NCCL, 2 GPUs, 64K' <<<"$output"
    rm "$FAKE/probe.json"
    check --node --steps probe,node
    [ "$status" -eq 4 ]
    [ "$(step node)" = "node partial --node takes several GPUs: this machine shows none" ]
}

@test "a finished run is kept as a reference by the GPU's name, and one that is there is not overwritten" {
    echo '{"gpus": [{"name": "NVIDIA H200"}]}' >"$FAKE/probe.json"
    program "$top/bin/plumb" 'case $1 in probe) cat "$FAKE/probe.json" ;; run) mkdir -p "$4/log"; echo "{}" >"$4/run.json" ;; esac'
    check --steps probe,suite
    [ -e "$top/results/reference/nvidia-h200/run.json" ]
    [ -e "$top/results/reference/nvidia-h200/steps.txt" ]
    [ ! -e "$top/results/reference/nvidia-h200/log" ]
    touch "$top/results/reference/nvidia-h200/kept"
    rm -r "$out"
    check --steps probe,suite
    [ -e "$top/results/reference/nvidia-h200/kept" ]
    [ -e "$out/reference/nvidia-h200/run.json" ]
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
    check --suite "$FAKE/tiny.yaml" --steps probe,memory,launch -- --pairs 1 --seconds 0.1
    [ "$status" -eq 4 ]
    [ "$(step probe)" = "probe partial Simulated GPU; rows are simulated" ]
    [[ $(step launch) == "launch partial rows are simulated; "* ]]
    [[ $(step memory) == "memory partial "* ]]
    grep -qx 'seen on a real GPU: 0 of 10' <<<"$output"
    # Killed as it runs the suite: what it has is kept, and the next call goes on with it.
    setsid "$top/scripts/gpu-check" --suite "$FAKE/tiny.yaml" --out "$out" --steps suite >/dev/null 2>&1 &
    killed=$!
    for _ in $(seq 6000); do
        done=$(grep -c '^done,' "$out/run/plan.csv" 2>/dev/null || true)
        [ "${done:-0}" -lt 2 ] || break
        sleep 0.05
    done
    kill -KILL -- "-$killed"
    wait "$killed" || true
    [ "$(grep -c '^done,' "$out/run/plan.csv")" -lt 40 ]
    check --suite "$FAKE/tiny.yaml" --steps suite
    [ "$status" -eq 4 ]
    [ "$(step suite)" = "suite partial rows are simulated: $out/run" ]
    [[ $stderr == *"goes on with '$out/run'"* ]]
    [ ! -e "$top/results/reference" ]
}
