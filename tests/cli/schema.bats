#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# docs/schema.md against the files that a run leaves. Its tables of columns are held against the code by
# tests/unit/test_schema.c.
# shellcheck disable=SC2016 # these are backquotes of Markdown

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    command -v python3 >/dev/null || skip "python3 is not installed"
    run=$BATS_TEST_TMPDIR/run
    printf 'suite: tiny\nabout: two cases\ncases:\n  - bench: "null"\n    number: [1, 2]\n' >"$BATS_TEST_TMPDIR/tiny.yaml"
    "${PLUMB_BIN:-build/bin}/plumb" run "$BATS_TEST_TMPDIR/tiny.yaml" --out "$run" >/dev/null
}

# said PATTERN: the names in backquotes of the line of the page that begins with it.
said()
{
    sed -n "s/$1//p" docs/schema.md | grep -o '`[^`]*`' | head -n 1 | tr -d '` '
}

@test "run.json has the keys of the page, and no other" {
    python3 -c 'import json, sys; print("\n".join(sorted(json.load(open(sys.argv[1])))))' "$run/run.json" >"$BATS_TEST_TMPDIR/keys"
    sed -n '/^`run.json` is one object/,$p' docs/schema.md | grep '^| `' | cut -d'|' -f2 | grep -o '`[a-z_]*`' |
        tr -d '`' | sort >"$BATS_TEST_TMPDIR/said"
    diff "$BATS_TEST_TMPDIR/said" "$BATS_TEST_TMPDIR/keys"
}

@test "plan.csv and samples have the columns of the page" {
    [ "$(head -n 1 "$run/plan.csv")" = "$(said '^`plan.csv` has the columns ')" ]
    [ "$(head -n 1 "$run/samples/null.csv")" = "$(said '^`samples\/BENCH.csv` has the columns ')" ]
}
