# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For bats: run folders that a script makes up. Whatever was made once in a file of tests is copied from then on: a copy costs
# next to nothing, a start of Python does.

# made_by SCRIPT DIR OPTIONS...: the run that this script of tests/ makes with these options, by the name of the folder.
made_by() {
    local script=$1 dir=$2
    shift 2
    local words="$*" name
    name=$(basename "$dir")
    local kept=$BATS_FILE_TMPDIR/made/${script##*/}-${words//\//|}
    [ -d "$kept" ] || {
        mkdir -p "$kept"
        python3 "$BATS_TEST_DIRNAME/../$script" "$kept/name-of-a-run" "$@" > /dev/null || {
            rm -r "$kept"
            return 1
        }
    }
    rm -rf "${dir:?}"
    mkdir -p "$dir"
    cp -r "$kept/name-of-a-run/." "$dir/"
    find "$dir" -name '*.csv' -exec sed -i "s/name-of-a-run/$name/g" "$dir/run.json" {} +
}
