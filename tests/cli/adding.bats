#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# A benchmark is known in one place, its folder: a new one, one of another name, and names that no other place may have.

load tree

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    cd "$top" || return 1
    export PLUMB_CONFIGS=$top/configs
    work=$BATS_TEST_TMPDIR
}

run_at() { # run_at SPEED FOLDER
    printf 'suite: t\ndefaults: {repeat: 4, budget: 20ms, warmup: 1ms}\ncases:\n  - {bench: dial, turns: [1, 4], speed: %s}\n' \
        "$1" >"$2.yaml"
    "$new" run "$2.yaml" --out "$2" >"$2.said" 2>/dev/null
}

@test "a new benchmark is one folder: it is built, planned, judged, drawn, and has its headline" {
    [ -e build/obj/core.a ] || skip "nothing was compiled here"
    copy_of_tree "$top" "$work/tree"
    cp -r tests/tools/dial "$work/tree/benches/"
    make_in "$work/tree" "$top" build/bin/plumb build/bin/plumb-dial
    new=$work/tree/build/bin/plumb
    cd "$work"
    run_at 100 a
    run_at 80 b
    grep -q '^Dial  *by hand (turns 4)  *100.0 Mop/s .* 83.3 %  *normal$' a.said
    grep -q '^Dial  *by hand (turns 4)  *80.00 Mop/s .* 66.7 %  *low$' b.said
    [ "$(cd a/plots && ls ./*.svg)" = ./dial-rate.svg ]
    "$new" compare a b --csv - >pairs.csv 2>/dev/null || [ $? -eq 1 ]
    python3 - <<'END'
import csv
pairs = [(p["key"], p["pipe"], p["verdict"], p["differs"]) for p in csv.DictReader(open("pairs.csv"))]
assert sorted(pairs) == [("dial|turns=%d|%s" % (n, m), "Dial", "worse", "setting 100 against 80")
                         for n in (1, 4) for m in ("hits|percent", "rate|Mop/s")], pairs
END
    # the runs keep what that takes: no benchmark is asked
    rm build -rf tree/build/bin/plumb-dial
    "$new" compare a b --csv - 2>/dev/null | cmp - pairs.csv
    "$new" report a | grep -q '^Dial  *by hand'
}

# In texts of the code, a benchmark is named by its program, beside the word bench, or, where its name is no everyday word, at all.
named() {
    local names='gemm|memory|copy|launch|net|allreduce|step|null'
    # comments apart, which may give an example; the word bench in the path of a file does not count
    grep -rn '"' core harness --include='*.[ch]' | sed -E 's,/\*.*,,; /^[^:]+:[0-9]+: \*/d; /^[^:]+:[0-9]+:#include/d' |
        grep -E "plumb[- ]($names)\\b|:[0-9]+:.*[Bb]ench[^\"]*\"($names)\"|\"($names)\"[^\"]*[Bb]ench|\"(gemm|allreduce)\"|\"($names) --"
}

# What may: what a collective does, as MPI calls it; a word of a script's answers.
allowed='^core/collective/collective.c:.*"allreduce", *"reduce-scatter"|^harness/hosts/launcher.c:.*plumb-net %s'

@test "nothing in core or harness names a benchmark" {
    run named
    found=$(grep -vE "$allowed" <<<"$output" || true)
    [ -z "$found" ] || { printf 'these name a benchmark:\n%s\n' "$found"; false; }
    # the search is not blind
    grep -q 'core/collective/collective.c' <<<"$output"
}

@test "no report names an operation or an algorithm" {
    local names='ring|halving|doubling|tree|reduce-scatter|all-gather|all-to-all|send-receive|broadcast'
    # comments apart, which may give an example
    run bash -c "cat harness/report/*.c harness/compare/*.c core/bench/*.c | sed -E 's,/\*.*,,' | grep -nE '\"($names)'"
    [ -z "$output" ]
}
