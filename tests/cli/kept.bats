#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a benchmark chooses by a race is decided once a run: plumb run with a plumb-memory whose race falls one way and the other.

bats_require_minimum_version 1.5.0

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    bin="${PLUMB_BIN:-$top/build/bin}"
    work="$(mktemp -d)"
    cd "$work" || return 1
    printf 'suite: t\nabout: a test\ndefaults: {repeat: 3, budget: 5ms, warmup: 1ms}\ncases:\n' > t.yaml
    printf '  - {bench: memory, op: read, size: 32K, threads: 1}\n' >> t.yaml
    unit="$(a_unit)"
}

teardown() {
    cd / || return 1
    rm -rf "$work"
}

a_unit() { # a vector unit that this CPU has, beside the generic one
    "$bin/plumb-memory" --op read --size 32K --threads 1 --budget 1ms --warmup 1ms --isa sse2,neon --csv > units.csv
    python3 -c 'import csv
print(next(row["isa"] for row in csv.DictReader(open("units.csv")) if row["status"] in ("ok", "noisy")))'
}

# fickle FOLDER FIRST SECOND: there a plumb, and a plumb-memory that is the real one but for its race: of the launches that are
# given no --isa, or `auto`, the first, third .. choose FIRST, the others SECOND. `launches` has what each was given, `raced` is as
# long as races were. Where there is a file `broken` no launch but the first does anything, where there is `killer` what started
# it is killed.
fickle() {
    mkdir "$1"
    cp "$bin/plumb" "$1/plumb"
    cat > "$1/plumb-memory" <<END
#!/bin/bash
[[ " \$* " == *" --csv "* ]] || exec "$bin/plumb-memory" "\$@"
[[ ! -e $work/broken || ! -e $work/$1/launches ]] || exit 3
[[ ! -e $work/killer || ! -e $work/$1/launches ]] || kill -KILL \$PPID
echo "\$*" >> "$work/$1/launches"
chosen="\$(sed -n 's/.*--isa \([a-z0-9]*\).*/\1/p' <<< "\$*")"
if [[ -z \$chosen || \$chosen == auto ]]; then
    echo race >> "$work/$1/raced"
    if (( \$(wc -l < "$work/$1/raced") % 2 )); then chosen=$2; else chosen=$3; fi
fi
exec "$bin/plumb-memory" "\$@" --isa "\$chosen"
END
    chmod +x "$1/plumb-memory"
}

units_of() { # units_of RUN: of each case the vector units that its launches took
    python3 - "$1" <<'END'
import collections, csv, sys
units = collections.defaultdict(set)
for row in csv.DictReader(open(f"{sys.argv[1]}/memory.csv")):
    units[int(row["case"])].add(row["isa"])
for case in sorted(units):
    print(case, *sorted(units[case]))
END
}

@test "launches of a case take what its first one chose, though the race would fall otherwise" {
    fickle one generic "$unit"
    one/plumb run t.yaml --out r --no-report
    [ "$(units_of r)" = "1 generic" ]
    [ "$(wc -l < one/launches)" -eq 3 ]
    [ "$(wc -l < one/raced)" -eq 1 ]
    # The plan is as it was, and the log tells what a launch was given.
    run ! grep -q -- --isa r/plan.csv
    [ ! -e r/log/1-1.txt ]
    for repeat in 2 3; do
        [ "$(head -n 1 r/log/1-$repeat.txt)" = "plumb run: with --isa generic, as launch 1 of this case chose" ]
    done
    python3 -c 'import json
assert json.load(open("r/run.json"))["kept_options"]["memory"] == ["tuning", "isa"]'
}

@test "each case decides for itself, and what a case asks for stays" {
    fickle one generic "$unit"
    printf '  - {bench: memory, op: write, size: 32K, threads: 1, isa: [auto, %s]}\n' "$unit" >> t.yaml
    one/plumb run t.yaml --out r --no-report
    [ "$(wc -l < one/launches)" -eq 9 ]
    [ "$(wc -l < one/raced)" -eq 2 ]
    [ "$(units_of r | wc -l)" -eq 3 ]
    units_of r | grep -qx "3 $unit"
    [ "$(units_of r | head -n 2 | cut -d' ' -f2- | sort)" = "$(printf '%s\n' generic "$unit" | sort)" ]
    [ "$(grep -c -- '--isa auto' r/plan.csv)" -eq 3 ]
}

@test "a run that goes on takes the choice from its rows" {
    fickle one generic "$unit"
    touch broken
    run one/plumb run t.yaml --out r --no-report
    [ "$status" -eq 4 ]
    rm broken
    one/plumb run --resume r --retry --no-report
    [ "$(units_of r)" = "1 generic" ]
    [ "$(wc -l < one/launches)" -eq 3 ]
    [ "$(wc -l < one/raced)" -eq 1 ]
}

@test "two targets in turn decide each for itself" {
    fickle one generic "$unit"
    fickle two "$unit" generic
    run one/plumb run t.yaml --of "exec $work/one/plumb" --against "exec $work/two/plumb" --out r --no-report
    [ "$(units_of r/a)" = "1 generic" ]
    [ "$(units_of r/b)" = "1 $unit" ]
    [ "$(cat one/raced two/raced | wc -l)" -eq 2 ]
    [ "$(wc -l < two/launches)" -eq 3 ]
}

@test "two targets that go on know what each chose before" {
    fickle one generic "$unit"
    fickle two "$unit" generic
    touch killer
    run one/plumb run t.yaml --of "exec $work/one/plumb" --against "exec $work/two/plumb" --out r --no-report
    [ "$status" -eq 4 ]
    [[ "$output" == *"of 6 launches are kept; go on with:"* ]]
    rm killer
    run one/plumb run --resume r --no-report
    [ "$(units_of r/a)" = "1 generic" ]
    [ "$(units_of r/b)" = "1 $unit" ]
    [ "$(cat one/raced two/raced | wc -l)" -eq 2 ]
    [ "$(grep -c '^todo' r/a/plan.csv r/b/plan.csv | cut -d: -f2 | paste -sd' ')" = "0 0" ]
}
