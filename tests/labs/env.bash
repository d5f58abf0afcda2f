# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the tests in the labs: a cluster of this checkout's own name, so that a user's labs, and other checkouts' tests, are left alone.

# shellcheck source-path=SCRIPTDIR
. "${BASH_SOURCE[0]%/*}/../cli/common.bash"

# The names of this checkout's test labs: $PLUMB_LAB and a second one.
lab_names()
{
    PLUMB_LAB=t$(pwd -P | cksum | cut -d' ' -f1)
    LAB_OTHER=${PLUMB_LAB}b
    export PLUMB_LAB LAB_OTHER
}

# Takes away what tests, or killed tests, left.
lab_clean()
{
    ((EUID == 0)) || return 0
    lab_names
    PLUMB_LAB=$LAB_OTHER scripts/lab-cluster down 2>/dev/null || true
    scripts/lab-cluster down
}

# lab_root: skips the test without the right to make network namespaces.
lab_root()
{
    ((EUID == 0)) || skip 'network namespaces take root'
    command -v tc >/dev/null || skip 'iproute2 is not installed'
    unshare -n true 2>/dev/null || skip 'this system lets nobody make network namespaces (a container?)'
}

# lab_cluster up's arguments: the lab, or a skip where this kernel cannot.
lab_cluster()
{
    lab_root
    scripts/lab-cluster up "$@" 2>"$BATS_TEST_TMPDIR/up" || {
        grep -E 'this kernel (makes no|has)|tbf' "$BATS_TEST_TMPDIR/up" && skip "$(tail -n 1 "$BATS_TEST_TMPDIR/up")"
        cat "$BATS_TEST_TMPDIR/up" >&2
        return 1
    }
}

# on I COMMAND...: on that host, for so long at most that no load reaches it.
on()
{
    timeout -k 5 1500 scripts/lab-cluster exec "$@"
}

# expected [RATE]: bit/s of TCP.
expected()
{
    scripts/lab-cluster expect "$@" | cut -d' ' -f1
}

# within VALUE WANTED PERCENT
within()
{
    awk -v value="$1" -v wanted="$2" -v percent="$3" 'BEGIN {
        off = 100 * (value / wanted - 1)
        printf "%.0f of %.0f: %+.2f %%\n", value, wanted, off
        exit !(off <= percent && off >= -percent) }'
}

# above VALUE WANTED PERCENT: is it more than so much above?
above()
{
    awk -v value="$1" -v wanted="$2" -v percent="$3" 'BEGIN { exit !(value > wanted * (1 + percent / 100)) }'
}

# reaches_once WANTED PERCENT COMMAND...: the command prints bit/s. 1: it falls short; 2: it failed, or it is more than the
# link can carry, as nothing can add.
reaches_once()
{
    local wanted=$1 percent=$2 value
    shift 2
    value=$("$@") || return 2
    ! above "$value" "$wanted" "$percent" || {
        echo "$value is more than the link can carry, $wanted"
        return 2
    }
    within "$value" "$wanted" "$percent"
}

# reaches WANTED PERCENT COMMAND...: in one of six goes, as other work on this machine takes from it; above it never.
reaches()
{
    local go status
    for ((go = 0; go < 6; go++)); do
        status=0
        reaches_once "$@" || status=$?
        ((status == 1)) || return "$status"
    done
    echo 'fell short in six goes'
    return 1
}

# lab_guest: skips the test where no guest can be had.
lab_guest()
{
    [[ ! -e $BATS_FILE_TMPDIR/no-guest ]] || skip "$(tail -n 1 "$BATS_FILE_TMPDIR/no-guest")"
}

# For setup_file: what the guest is made of, and where it cannot be had, why.
guest_setup()
{
    timeout -k 5 600 scripts/lab-rdma setup >"$BATS_FILE_TMPDIR/guest" 2>&1 ||
        { echo 'lab-rdma setup failed' && cat "$BATS_FILE_TMPDIR/guest"; } >"$BATS_FILE_TMPDIR/no-guest"
}

# guest_siw: for setup_file, after guest_setup: does the guest have soft iWARP? CI sets it up, which downloads 165 MB and
# compiles; elsewhere that is the user's choice. 1: no, and why.
guest_siw()
{
    local said=$BATS_FILE_TMPDIR/guest
    ! grep -q 'ready: .*, with siw,' "$said" || return 0
    [[ ${CI-} ]] || { echo 'siw is not set up: scripts/lab-rdma setup --siw' && return 1; }
    timeout -k 5 900 scripts/lab-rdma setup --siw >"$said" 2>&1 && return
    echo "siw cannot be set up: $(tail -n 1 "$said")"
    return 1
}

# no_guest REASON: for setup_file: this file's tests are skipped.
no_guest()
{
    echo "$1" >>"$BATS_FILE_TMPDIR/no-guest"
}

# For the tests of one benchmark between hosts: setup_file, setup and teardown of a file.
between_file()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_clean
}

# between_hosts N PROGRAM: N hosts; a secret for the program in $secret, and $out for what it prints.
between_hosts()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    [[ -x $2 ]] || skip "${2##*/} is not built"
    lab_cluster "$1"
    scripts/lab-cluster congestion cubic
    # shellcheck disable=SC2034 # of the tests
    secret=$BATS_TEST_TMPDIR/secret out=$BATS_TEST_TMPDIR/out
    (umask 077 && echo 'a secret of these tests' >"$secret")
}

# blind I J: what host I sends to J goes to nobody; all other hosts hear both, and I hears J.
blind()
{
    local address
    address=$(scripts/lab-cluster hosts | sed -n "$(($2 + 1))p")
    on "$1" ip neigh replace "$address" lladdr 02:00:00:00:00:99 dev eth0 nud permanent
}

# Bytes that node0 has got.
got()
{
    on 0 cat /sys/class/net/eth0/statistics/rx_bytes
}

# more_than BYTES
more_than()
{
    (($(got) > $1))
}
