# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: kept.bats, kept-long.bats.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    bin="${PLUMB_BIN:-$top/build/bin}"
    work=$BATS_TEST_TMPDIR
    cd "$work" || return 1
    printf 'suite: t\nabout: a test\ndefaults: {repeat: 3, budget: 5ms, warmup: 1ms}\ncases:\n' > t.yaml
    printf '  - {bench: memory, op: read, size: 32K, threads: 1}\n' >> t.yaml
    unit="$(a_unit)"
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
    script "$1/plumb-memory" <<END
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
}

units_of() { # units_of RUN: of each case the vector units that its launches took
    python3 - "$1" <<'END'
import collections, csv, sys
units = collections.defaultdict(set)
for row in csv.DictReader(open(f"{sys.argv[1]}/memory.csv")):
    units[int(row["case"])].add(row["isa_used"])
for case in sorted(units):
    print(case, *sorted(units[case]))
END
}
