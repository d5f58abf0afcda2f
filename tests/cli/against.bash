# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: against.bats, against-long.bats.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    bin="${PLUMB_BIN:-$top/build/bin}"
    plumb="$bin/plumb"
    work="$(mktemp -d)"
    cd "$work" || return 1
    # Each has its own benchmark beside it, which notes its launches in `turns`. Leftovers are found by this folder's name.
    for side in one two; do
        mkdir -p "$side"
        cp "$plumb" "$side/plumb"
        script "$side/plumb-null" <<END
#!/bin/sh
case " \$* " in
*" --csv "*)
    echo "$side \$*" >> "$work/turns"
    if [ -e "$work/slow-$side" ]; then exec "$work/$side/slow" 30; fi
    ;;
esac
exec "$bin/plumb-null" "\$@"
END
        ln -s "$(command -v sleep)" "$side/slow"
    done
    printf 'suite: t\nabout: a test\ndefaults: {repeat: 4, budget: 5ms, warmup: 1ms}\ncases:\n  - {bench: "null", number: [1, 2, 3]}\n' > t.yaml
}

teardown() {
    cd / || return 1
    pkill -KILL -f "$work" 2> /dev/null
    rm -rf "$work"
}

# shellcheck disable=SC2120 # mostly without
in_turn() { # in_turn [OPTION...]
    "$plumb" run t.yaml --of "SIDE=one $work/one/plumb" --against "SIDE=two $work/two/plumb" --out r --no-report "$@"
}

# judged STATUS: is it that of a verdict, whichever this machine gives?
judged() { [ "$1" -eq 0 ] || [ "$1" -eq 1 ] || [ "$1" -eq 3 ]; }

column() { # column FILE NAME
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1])): print(row[sys.argv[2]])' "$1" "$2"
}

# balanced FILE: of the launches "TARGET CASE", in the order in which they ran, each case has both orders alike, and the cases
# begin alike with either target.
balanced() {
    python3 - "$1" <<'END'
import collections, sys
lines = [line.split() for line in open(sys.argv[1])]
first = collections.defaultdict(list)
for one, two in zip(lines[::2], lines[1::2]):
    assert one[1:] == two[1:] and one[0] != two[0], (one, two)
    first[tuple(one[1:])].append(one[0])
assert len(lines) % 2 == 0 and first
names = sorted({line[0] for line in lines})
begin = collections.Counter({name: 0 for name in names})
for case, order in first.items():
    assert all(x != y for x, y in zip(order, order[1:])), (case, order)
    begin[order[0]] += 1
assert abs(begin[names[0]] - begin[names[1]]) <= 1, begin
END
}

# dry_run: what a dry run of both targets prints.
dry_run() {
    "$plumb" run t.yaml --of "$work/one/plumb" --against "$work/two/plumb" --dry-run
}

# launch N: whose is it, one or two?
launch() { dry_run | sed -n "$(($1 + 1))p" | cut -d, -f2 | sed 's/a/one/; s/b/two/'; }

none_left() { in_time 1800 eval "! pgrep -f '$work/(one|two)/' > /dev/null"; }

wait_for_turns() { in_time 1200 eval "[[ -e turns && \$(wc -l < turns) -ge $1 ]]"; } # wait_for_turns N

# long.yaml: t.yaml, but longer than what fits into a pipe.
long_suite()
{
    { cat t.yaml && yes '# a comment that fills the pipe, a line of it' | head -n 3000; } > long.yaml
}

# make_slower: slower.py, through which rows become so many times as slow; what a row of few samples leaves empty stays so.
make_slower() {
    cat > slower.py <<'END'
import csv, sys
by = float(sys.argv[1])
rows = list(csv.reader(sys.stdin))
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(rows[0])
for row in rows[1:]:
    for name in ("value", "ci_low", "ci_high"):
        at = rows[0].index(name)
        row[at] = row[at] and "%.9g" % (float(row[at]) * by)
    out.writerow(row)
END
}
