# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154,SC2317,SC2329 # cells reads out, section sets output, the guest calls in_guest
# For the tests of plumb-net over RDMA devices in a guest.

# What each section in the guest begins with. --device of the listener: $at.
in_guest() {
    umask 077
    echo 'a secret of these tests' >secret
    listens() { ss -Hltn 'sport = :18515' | grep -q .; }
    serve() {
        build/bin/plumb-net --listen 0.0.0.0 --secret-file secret --device "$at" >>server 2>&1 &
        server=$!
        for try in $(seq 3000); do listens && return; sleep 0.1; done
        cat server >&2
        exit 9
    }
    net() { timeout 600 build/bin/plumb-net 10.0.0.1 --secret-file secret --wait 30s --transport rdma --no-cpu --csv "$@"; }
    # A long transfer, process $client, is under way when the device has got 2000 packets more.
    packets() { echo "$(<"/sys/class/infiniband/$at/ports/1/hw_counters/rcvd_pkts")"; }
    transfer() {
        local before
        before=$(packets)
        net --pattern bandwidth --size 64K --budget 80s --min-samples 1000000 "$@" >out 2>err &
        client=$!
        for try in $(seq 3000); do
            (($(packets) > before + 2000)) && break
            sleep 0.1
        done
        began=$SECONDS
    }
    # What became of it: "4 12 failed 1", status, seconds, processes of plumb-net that are left.
    ended() {
        wait "$client"
        echo "ended $? $((SECONDS - began))"
        for try in $(seq 3000); do
            left=$(pgrep -c -x plumb-net)
            ((left <= $1)) && break
            sleep 0.1
        done
        echo "left $left"
    }
    next() {
        net --pattern bandwidth --size 64K --budget 300ms --min-samples 3 >next 2>&1
        echo "next $?"
    }
    # units TEST [NAME]: unit tests of the module, or the one of that name, which find a device in the guest alone. Devices are for everyone, as the one of
    # the memlock limit is nobody.
    units() {
        chmod 666 /dev/infiniband/*
        build/units/"$@"
    }
}

# For setup_file: OPTIONS of the guest. Unit tests are beside the programs of the build.
net_sections() {
    local test
    cd "$BATS_TEST_DIRNAME/../.." || exit
    guest_setup
    [[ -e build/lib/plumbline/plumb-rdma.so ]] || no_guest 'the module plumb-rdma.so is not built (libibverbs-dev)'
    [[ -x build/bin/plumb-net ]] || no_guest 'plumb-net is not built'
    mkdir -p "$BATS_FILE_TMPDIR/job/build/units"
    for test in test_net_rdma test_wire_rdma test_wire_rdma_faults libcore-tests.so; do
        [[ ! -x build/tests/$test ]] || cp "build/tests/$test" "$BATS_FILE_TMPDIR/job/build/units/"
    done
    cc -D_GNU_SOURCE -shared -fPIC -o "$BATS_FILE_TMPDIR/job/build/registrations.so" tests/labs/registrations.c
    sections "$@"
}

# For setup.
net_setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    lab_guest
}

# in_section NAME: what it left, what its programs said, and why rows have no value.
in_section() {
    section "$1"
    out=$job/out
    cat "$job/server" "$job/err" 2>/dev/null || true
    [ "$status" -eq 0 ]
    [[ ! -s $out ]] || cells metric verb status reason | grep -vE '^[^ ]+ [^ ]+ (ok|noisy) ' || true
}

# every COLUMN PATTERN: each row of the metrics that are measured has this.
every() {
    local cell n=0
    while IFS= read -r cell; do
        # shellcheck disable=SC2053 # a pattern is meant
        [[ $cell == $2 ]] || {
            echo "$1 is '$cell', not '$2'"
            return 1
        }
        n=$((n + 1))
    done < <(paste -d'|' <(cells metric) <(cells "$1") | sed -n 's/^\(bandwidth\|latency\|rate\|message_rate\)|//p')
    ((n > 0))
}

# passed SECTION TEST: these unit tests passed.
passed() {
    [[ -x build/tests/$2 ]] || skip "$2 is not built: make units"
    section "$1"
    [ "$status" -eq 0 ]
    [[ $stderr$output == *"PASSED"* && $stderr$output != *"FAILED"* ]]
}

# ran NAME...: these tests were not skipped.
ran() {
    local name
    for name; do
        grep -qF "[       OK ] $name" <<<"$output$stderr"
    done
}

# check "ended STATUS SECONDS"
check() {
    local word ended seconds
    read -r word ended seconds <<<"$1"
    [ "$word $ended" = 'ended 4' ]
    ((seconds <= 30)) # the transfer would last 80
}

# The transfer's row says who failed.
failed() {
    [ "$(cells status | head -n 1)" = failed ]
    [[ $(cells reason | head -n 1) == *10.0.0.1* ]]
}
