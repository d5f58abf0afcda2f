#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# What every benchmark's command line does, shown on plumb-null, whose samples are made up.

load rows
load bench

@test "--level is the median of all noise, also of two levels" {
    for noise in normal lognormal ar1 two-levels; do
        for spread in 0.5% 3% 20%; do
            bench --csv --noise $noise --spread $spread --level 1ms --width 0.000001% --budget 20s \
                --min-samples 200000 --max-samples 200000
            awk -v value="$(cell value)" -v spread=$spread 'BEGIN {
                far = (value - 1000) / 1000; exit !(far < spread / 2500 && far > -spread / 2500) }'
        done
    done
}

@test "no two cases, and no two repetitions of one, have the same draws" {
    bench --csv --repeat 3 --number 1,2 --level 1ms,2ms --spread 1%,2% --noise normal,lognormal \
        --max-samples 100 --samples "$BATS_TEST_TMPDIR/samples"
    [ "$(wc -l < "$out")" -eq 49 ]
    python3 - "$out" "$BATS_TEST_TMPDIR/samples" <<'END'
import csv, math, sys
rows = list(csv.DictReader(open(sys.argv[1])))
draws = {}
for sample in csv.DictReader(open(sys.argv[2])):
    row = rows[int(sample["row"])]
    ratio = float(sample["value"]) / (1000 * int(row["level"].rstrip("ms")))
    deviation = math.log(ratio) if row["noise"] == "lognormal" else ratio - 1
    draws.setdefault(sample["row"], []).append(deviation / float(row["spread"].rstrip("%")) * 100)
assert len(draws) == 48, len(draws)
lists = list(draws.values())
for i, a in enumerate(lists):
    for b in lists[:i]:
        assert max(abs(x - y) for x, y in zip(a[:20], b[:20])) > 0.1, (a[:3], b[:3])
END
}
