# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # tests set out
# For the tests of plumb doctor on real systems: what it found. $out is a file of its --json.

# result CHECK SUBJECT FIELD: of the last examination; FIELD is "state", "cost.low" or a fact of the evidence.
result()
{
    python3 - "$out" "$@" <<'END'
import json, sys
path, check, subject, field = sys.argv[1:]
for r in json.load(open(path))["results"]:
    if r["check"] == check and r["subject"] == subject:
        value = r["evidence"].get(field) if field in (r["evidence"] or {}) else r
        for key in field.split(".") if value is r else []:
            value = (value or {}).get(key)
        print(json.dumps(value) if isinstance(value, (list, dict)) else value)
END
}

# is CHECK SUBJECT STATE
is()
{
    [[ $(result "$1" "$2" state) == "$3" ]] || { result "$1" "$2" state && result "$1" "$2" text && false; }
}

# priced CHECK SUBJECT FORMULA: its cost is that of the closed form, within 2 % of it.
priced()
{
    python3 -c 'import sys; got, want = float(sys.argv[1]), eval(sys.argv[2]); print(got, want); sys.exit(abs(got / want - 1) > 0.02)' \
        "$(result "$1" "$2" cost.low)" "$3"
}
