#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# No program reads a sentence: with all sentences of its runs replaced, each verdict and each number of compare, check, history and
# report stays what it was.

load ../sim/env

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    command -v python3 >/dev/null || skip "python3 is not installed"
    [ -x "${PLUMB_BIN:-build/bin}/plumb" ] || skip "plumb was not built"
    plumb=${PLUMB_BIN:-$PWD/build/bin}/plumb
    reference=$PWD/results/reference
    rewrite=$PWD/tests/tools/rewrite-sentences.py
    work=$BATS_TEST_TMPDIR
    export PLUMB_CONFIGS=$PWD/configs
}

# write RUN... : the runs under keep/, plain/ and traps/ of the test's folder, by the names of their folders.
write()
{
    local how run
    for how in keep plain traps; do
        mkdir -p "$work/$how"
        for run in "$@"; do
            "$rewrite" "$run" "$work/$how/$(basename "$run")" "$how"
        done
    done
}

# ask COMMAND...: with its folder as the place of the runs, in each of them; what it leaves in out.json.
ask()
{
    local how
    for how in keep plain traps; do
        cd "$work/$how" || return
        "$plumb" "$@" >said 2>told || [ $? -le 4 ] || {
            cat said told
            return 1
        }
    done
    cd "$work" || return
}

# same FILE: what ask() left, but for sentences.
same()
{
    python3 - "$work" "$1" <<'END'
import json, re, sys
work, name = sys.argv[1:]
PROSE = {"reason", "sentence", "text", "differs"}
def bare(value, key=""):
    if isinstance(value, dict):
        return {k: bare(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [bare(v, key) for v in value]
    return "" if key in PROSE and isinstance(value, str) else value
texts = [open(f"{work}/{how}/{name}", encoding="utf-8").read() for how in ("keep", "plain", "traps")]
keep, plain, traps = (json.dumps(bare(json.loads(t)), indent=1) for t in texts)
assert keep == plain, name + ": other without its sentences"
assert plain == traps, name + ": other with words in them"
assert '"cases"' in keep and len(keep) > 1000
END
}

# The page but for sentences: of plain and traps, whose sentences are as long.
same_page()
{
    local how
    for how in plain traps; do
        "$rewrite" "$work/$how/$1" "$work/$how.page" bare
    done
    cmp "$work/plain.page" "$work/traps.page"
    ! grep -q ' qz[0-9]*z' "$work/plain.page"
    grep -q ' qz[0-9]*z' "$work/plain/$1"
}

# judge A B: compare, check and report of two runs of the rewritten folders.
judge()
{
    ask compare "$1" "$2" --json compare.json
    same compare.json
    ask check "$2" --baseline "$1" --json check.json
    same check.json
    ask report "$1" "$2" --out page
    same_page page/report.html
}

@test "the recorded machines: sentences replaced, the same verdicts and the same page" {
    write "$reference"/epyc-zen5-2vcpu "$reference"/xeon-avx512-2vcpu
    judge epyc-zen5-2vcpu xeon-avx512-2vcpu
}

@test "runs of today, on a simulated GPU, over sockets and shared memory, and of the null benchmark: the same" {
    local i
    simulate eight
    mkdir "$work/runs"
    cat >"$work/t.yaml" <<'END'
suite: t
defaults: {repeat: 2, budget: 60ms, warmup: 20ms}
cases:
  - {bench: copy, engine: ce, source: "cuda:0", destination: ["cuda:1", "cuda:3"], op: write, access: ["on", "off"], size: 4M}
  - {bench: gemm, device: "cuda:0", dtype: f16, size: 512}
  - {bench: memory, op: [read, triad], size: 64K, threads: 1}
  - {bench: net, transport: [tcp, shm], size: 1M}
  - {bench: allreduce, ranks: 2, transport: [tcp, shm], size: 1M}
  - {bench: "null", number: [1, 2]}
END
    for i in 1 2; do
        "$plumb" run "$work/t.yaml" --out "$work/runs/r$i" >"$work/run$i" 2>&1 || [ $? -le 1 ] || cat "$work/run$i"
    done
    grep -q '"schema": 3' "$work/runs/r1/run.json"
    write "$work/runs/r1" "$work/runs/r2"
    judge r1 r2
    ask history . --all --json
    same said
}

# Two sentences may be held against each other, to show one of them once.
@test "no code searches a column of sentences" {
    local names='reason|evidence|disturbed|limit_source|detail|peer_detail|FIELD_REASON|FIELD_DISTURBED|FIELD_LIMIT_SOURCE'
    local searches='strncmp|strn?casecmp|memcmp|strstr|strcasestr|memmem|strn?chr|strrchr|strspn|strcspn|strpbrk|sscanf|regexec|fnmatch|strtok_r'
    grep -rnE -e "\b($searches)\([^;]*\b($names)\b" -e "\bstrcmp\([^,\"]*\b($names)\b[^,\"]*, *\"[^\"]" -e "\b($names)\[[a-z0-9]+\] *[!=]= *'" \
        core benches harness --include='*.c' --include='*.h' |
        grep -v '^harness/check/check\.c:.*o->reason' >"$work/found" || true
    cat "$work/found"
    [ ! -s "$work/found" ]
}

# What ranks and hosts write is for people; notices (core/group/notice.h) and marks are for the launcher. Which MPI mpirun is of, its
# version alone says.
@test "no code searches what a launch writes for words" {
    grep -rnE '\b(strstr|strcasestr)\([^"]*"[^"]*[A-Za-z]{3}' harness/hosts harness/run --include='*.c' |
        grep -v '^harness/hosts/launcher\.c:.*r\.out\.text, "Open MPI"' >"$work/found" || true
    cat "$work/found"
    [ ! -s "$work/found" ]
}
