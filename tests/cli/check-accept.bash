# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: check-accept.bats, check-accept-long.bats.

setup_file() { :; }

setup() { in_work; }

# made NAME SEED [options of make_runs.py]; the seed is also the minute of its start
made() {
    local name=$1 seed=$2
    shift 2
    made_by cli/make_runs.py "$name" --seed "$seed" "$@"
}

# tell RUN STATEMENT on the object o that its run.json holds
tell() {
    python3 -c 'import json, sys
path = sys.argv[1] + "/run.json"
o = json.load(open(path))
exec(sys.argv[2])
json.dump(o, open(path, "w"))' "$@"
}

night() { # night EXIT NAME SEED [options of make_runs.py]
    local exit=$1 name=$2
    shift 2
    [ -d "$name" ] || made "$name" "$@"
    check "$exit" "$name" --update-baseline --json "$name.json"
}

level() { # the runs that NAME was held against
    json "$1.json" "' '.join(o['baseline']['runs'])"
}
