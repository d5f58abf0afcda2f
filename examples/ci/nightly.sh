#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a suite, compares it with the history, and prints the verdict where somebody must act.
# cron mails what is printed. Exits as plumb check does.
#
#   PLUMB    the program                     plumb
#   SUITE    what to measure                 quick
#   FOLDER   where runs and the history lie  /var/lib/plumbline
#   KEEP     how many run folders stay       30 (their figures stay in the history)
set -uo pipefail

plumb=${PLUMB:-plumb}
suite=${SUITE:-quick}
folder=${FOLDER:-/var/lib/plumbline}
keep=${KEEP:-30}

mkdir -p "$folder/runs" || exit 2
# Two runs at once on one machine would measure each other.
exec 9>"$folder/lock" || exit 2
if ! flock -n 9; then
    echo "plumbline: last night's run has not ended yet; nothing was measured" >&2
    exit 4
fi

name=$(basename "$suite" .yaml)
run="$folder/runs/$name-$(date -u +%Y%m%d-%H%M%S)"
began=
[ -e "$folder/history.db" ] || began=tonight
rm -f "$folder/last-check.md"
"$plumb" run "$suite" --out "$run" >"$folder/last-run.txt" 2>&1
measured=$?
# 1 and 4, wrong data and an incomplete run, are judged below, where the cases are named.
"$plumb" check "$run" --baseline history --update-baseline --history "$folder/history.db" \
    --markdown "$folder/last-check.md" --json "$folder/last-check.json" \
    >"$folder/last-check.txt" 2>&1
status=$?
if ((measured != 0 && measured != 1 && measured != 4)); then
    # It crashed, or was misused: that is the news, whatever it had measured by then.
    echo "$(hostname), suite $name: plumb run ended with $measured:" \
        "$(grep . "$folder/last-run.txt" | tail -n 1)"
    status=$measured
fi
# 3: there is no baseline. The night that begins the history has none; on a later one somebody must look.
if ((status != 0)) && [ "$status$began" != 3tonight ]; then
    cat "$folder/last-check.txt"
fi

# The runs of this suite alone, as $run is called: those of "quick-net" begin with "quick-", too.
d='[0-9]' && d4=$d$d$d$d
shopt -s nullglob
LC_ALL=C
# shellcheck disable=SC2206 # a pattern
runs=("$folder/runs/$name"-$d4$d4-$d4$d$d/)
for ((i = 0; i < ${#runs[@]} - keep; i++)); do
    rm -rf "${runs[i]%/}"
done
exit "$status"
