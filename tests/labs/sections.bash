# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # tests judge what section sets
# For bats files whose tests share one guest, as each boot of one takes longer than most of what runs there. What a test has
# run in the guest is a function section_NAME above it. setup_file boots the guest, which runs all of them one after the
# other (sections.guest: each in a folder of its own, with a limit of its own, nothing of it left for the next); each test
# then judges what its own section left.
#
# PLUMB_SECTIONS='NAME...': only these run, for who works on one test; the tests of the others fail.

# So wide that only a hang reaches them; together less than the 40 minutes that run-tests gives a file of the long tier.
SECTION_SECONDS=1200  # for one section
SECTIONS_SECONDS=1400 # for all of the guest
AGAIN_SECONDS=800     # for what is run again

# run_sections SECONDS "NAME..." OPTIONS...: in a guest with these options of lab-rdma, for so long at most.
run_sections()
{
    local job=$BATS_FILE_TMPDIR/job name names
    read -ra names <<<"$2"
    for name in "${names[@]}"; do
        rm -rf "${job:?}/$name"
        mkdir "$job/$name"
        ln -s ../build "$job/$name/build"
    done
    scripts/lab-rdma with-build --job "$job" --timeout "$1" "${@:3}" -- \
        bash sections.guest "$SECTION_SECONDS" "${names[@]}" >>"$job/guest" 2>&1 3>&- ||
        echo "the guest ended with $?" >>"$job/guest"
}

# hung: the sections that left what cannot be killed: the guest's kernel hangs in them (soft-RoCE does, now and then, when its link goes).
hung()
{
    sed -n "s/^section '\(.*\)' left processes that cannot be killed.*/\1/p" "$BATS_FILE_TMPDIR/job/guest" | paste -sd' '
}

# sections OPTIONS...: for setup_file, after guest_setup: runs all sections of this bats file, in its order, in a guest with
# these options of lab-rdma. They begin with what the function in_guest defines there. $BATS_FILE_TMPDIR/job is the job folder.
# Where the guest's own kernel hung, that section and those behind it are run once more, in another guest.
sections()
{
    local job=$BATS_FILE_TMPDIR/job names first rest
    [[ ! -e $BATS_FILE_TMPDIR/no-guest ]] || return 0
    names=${PLUMB_SECTIONS:-$(sed -n 's/^section_\([a-z_]*\)() {.*/\1/p' "$BATS_TEST_FILENAME" | paste -sd' ')}
    mkdir -p "$job"
    declare -f in_guest >"$job/functions"
    for first in $names; do
        declare -f "section_$first" >>"$job/functions"
    done
    cp tests/labs/sections.guest "$job/"
    run_sections "$SECTIONS_SECONDS" "$names" "$@"
    first=$(hung)
    [[ $first ]] || return 0
    first=${first%% *} rest=" $names "
    rest=${rest#*" $first "}
    echo "again in another guest, from '$first' on" >>"$job/guest"
    run_sections "$AGAIN_SECONDS" "$first $rest" "$@"
}

# section NAME: sets job to its folder, and status, output, stderr and lines as bats' run does.
section()
{
    job=$BATS_FILE_TMPDIR/job/$1
    if [[ ! -s $job/status ]]; then
        [[ -e $job/stdout ]] && echo "the guest ended while section '$1' ran" || echo "section '$1' never ran"
        cat "$job"/std* "$BATS_FILE_TMPDIR/job/guest" 2>/dev/null || true
        return 1
    fi
    status=$(<"$job/status") output=$(<"$job/stdout") stderr=$(<"$job/stderr")
    mapfile -t lines < <(grep -v '^$' "$job/stdout")
    echo "$output"
    echo "$stderr"
    cat "$BATS_FILE_TMPDIR/job/guest"
    echo "section '$1' took $(<"$job/seconds") s and ended with $status"
}
