#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# What scripts/check-forecast makes of another simulator's steps: of rings whose truth is written down here, and of published steps.

load common

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    # Each rank passes its part on 2 (n - 1) times: 10 us, and 12.5 GB/s. A sum begins when its layer has ended, and the sum before.
    script "$BATS_TEST_TMPDIR/rings" <<'END'
#!/usr/bin/env python3
import os
import sys

ranks, layers, size, forward, backward, slower = map(float, sys.argv[2:8])
longer = float(os.environ.get("LONGER", 1)) if ranks > 4 else 1
at, free = forward * layers * slower, 0
for _ in range(int(layers)):
    at += backward * slower
    free = max(at, free) + 2 * (ranks - 1) * (1e-5 + size / ranks / 12.5e9) * longer
print(free)
END
}

judge() {
    run python3 scripts/lab/judge_rings.py "${PLUMB_BIN:-$PWD/build/bin}/plumb" "$BATS_TEST_TMPDIR/rings" "$BATS_TEST_TMPDIR" 32
}

@test "rings as the forecast has them: good" {
    exits 0 judge
    [[ $output != *BAD* ]]
    [ "$(grep -c '^good  a step' <<<"$output")" -eq 4 ]
}

@test "rings of more ranks than the forecast knows that take 5 % longer are not within 2 %" {
    LONGER=1.05 exits 1 judge
    [[ $output == *'BAD   sums alone, 32 ranks'* ]]
}

@test "published steps: each with its error, which is never hidden" {
    scripts/check-forecast tables >"$BATS_TEST_TMPDIR/out"
    [ "$(grep -cE '^[0-9.]+[BT] ' "$BATS_TEST_TMPDIR/out")" -eq 21 ]
    # 12 x 48 x 6144^2 + 51200 x 6144 parameters: 8 operations a token each with recomputation, 4 x 2048 tokens, attention, on 8 GPUs: 0.63 s
    awk '$1 == "22B" && $3 == "all" { found = 1; s = $5 * $8 / 100; exit !(s > 0.60 && s < 0.66) } END { if (!found) exit 1 }' \
        "$BATS_TEST_TMPDIR/out"
    # 1.6927e19 operations of 1920 sequences, as the source's 126 TFLOP/s mean on 2240 GPUs for 60.1 s: 24.2 s at 312, and 6 % more of what has no product; a bubble of 34 / 240
    awk '$1 == "530B" && $2 == 2240 { found = 1; s = $5 * $8 / 100; bubble = $10 / $8; exit !(s > 24.2 && s < 26.5 && bubble > 0.12 && bubble < 0.17) } END { if (!found) exit 1 }' \
        "$BATS_TEST_TMPDIR/out"
}
