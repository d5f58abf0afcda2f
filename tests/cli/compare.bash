# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: compare.bats, compare-long.bats.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    cd "$BATS_TEST_TMPDIR" || return 1
    out=out err=err
    export LC_ALL=C.UTF-8
    make_run a --seed 1 # which most tests compare others with
}

make_run() { # make_run DIR [options of make_runs.py]
    made_by cli/make_runs.py "$@"
}

compare() { # compare ARGUMENTS: sets $status, leaves the files out and err
    status=0
    "$plumb" compare "$@" > out 2> err || status=$?
}

flat() { tr -s ' \n' ' ' < out; } # all of it, on one line
tally() { cells all.csv pipe "$1" | sort | uniq -c | xargs; } # tally VERDICT: how many cases of all.csv have it, by component
states() { cells all.csv state | sort | uniq -c | xargs; } # how many cases of all.csv were compared, and were not

cells() { # cells FILE COLUMN [STATE]: that column of the CSV, of all cases or those whose verdict is STATE
    python3 - "$@" <<'END'
import csv, sys
for row in csv.DictReader(open(sys.argv[1])):
    if len(sys.argv) < 4 or row["verdict"] == sys.argv[3]:
        print(row[sys.argv[2]])
END
}

set_meta() { # set_meta RUN PYTHON: with the object m of its run.json
    python3 -c 'import json, sys
path = sys.argv[1] + "/run.json"
m = json.load(open(path))
exec(sys.argv[2])
json.dump(m, open(path, "w"))' "$@"
}

disturb() { # disturb RUN PATTERN COLUMN=VALUES...: of the rows of benchmarks that match; VALUES are the launches'
    python3 - "$@" << 'END'
import csv, glob, sys
for path in glob.glob(f"{sys.argv[1]}/{sys.argv[2]}.csv"):
    rows = list(csv.DictReader(open(path)))
    for row in rows:
        row["elapsed_s"] = 1
        for word in sys.argv[3:]:
            column, values = word.split("=")
            values = values.split(",")
            row[column] = values[(int(row["repeat"]) - 1) % len(values)]
    out = csv.DictWriter(open(path, "w", newline=""), rows[0], lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
END
}
