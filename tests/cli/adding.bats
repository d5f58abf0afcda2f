#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# A benchmark is known in one place, its folder: a new one, one of another name, and names that no other place may have.

load tree

bats_require_minimum_version 1.5.0

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
    grep -q '^  by hand turns 4  *100 Mop/s .* 83.3 %$' a.said
    grep -q '^  by hand turns 4  *80.0 Mop/s .* 66.7 %  *low$' b.said
    grep -q '^Answer .*1 problem' b.said
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
    "$new" report a | grep -q '^  by hand turns 4'
}

@test "a new transport is a file and a line, and so is a new way to reduce" {
    [ -e build/obj/core.a ] || skip "nothing was compiled here"
    copy_of_tree "$top" "$work/tree"
    cp -r benches/net benches/allreduce "$work/tree/benches/"
    cd "$work/tree"
    sed 's/\bwire_cma\b/wire_cart/; s/"cma"/"cart"/' "$top/core/wire/cma.c" >core/wire/cart.c
    sed -i 's/more(cma, "cma", "cross-memory attach")/& more(cart, "cart", "by cart")/' core/wire/wire.h
    # of our own algorithms, the ring alone
    sed 's/\bcollective_ring\b/collective_round/g; s/"ring"/"round"/; /^const struct collective_ops collective_auto/,$d' \
        "$top/core/collective/own.c" >core/collective/round.c
    sed -i 's/more(auto, "auto")/& more(round, "round")/' core/collective/collective.h
    [ "$(diff -rq "$top/core" core | wc -l)" -eq 4 ] # two files, two lines
    make_in "$work/tree" "$top" build/bin/plumb-net build/bin/plumb-allreduce
    local net=build/bin/plumb-net allreduce=build/bin/plumb-allreduce short='--budget 50ms --warmup 1ms --csv'
    # they do what the others of their kind do, and options know where they apply
    # shellcheck disable=SC2086
    "$net" --transport cart --pattern bandwidth --size 64K $short | grep -q '^cart,bandwidth,.*,ok,'
    run -2 "$net" --transport cart --device eth0
    [[ $output == *"'--device' does not apply here"* ]]
    "$net" --describe | grep -q 'by cart'
    # shellcheck disable=SC2086
    "$allreduce" --backend round --transport cart,tcp --segment 4K --np 2 --ranks 2 --size 64K $short >rows
    [ "$(cut -d, -f1,2 rows | sort -u)" = $'backend,transport\nround,cart\nround,tcp' ]
    run -1 grep -E ',(wrong|failed|skipped),' rows
    run -2 "$allreduce" --backend round --algorithm ring --np 2
    [[ $output == *"'--algorithm' does not apply here"* ]]
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
