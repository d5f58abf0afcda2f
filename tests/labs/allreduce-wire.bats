#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What busbw is held against, of a library as of our own: the line of the link that the counters show, where the system tells its rate.

# takes: cluster
# waits: for what the links let through
load env
load ../cli/rows

setup_file() { between_file; }

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    bin=$PWD/build/bin/plumb-allreduce
    [[ -x $bin && -e build/lib/plumbline/plumb-mpi.so ]] || skip 'plumb-allreduce is not built, or not for MPI'
    mpirun --version 2>/dev/null | grep -q 'Open MPI' || skip "mpirun is not Open MPI's"
    lab_cluster 2 --rate 1gbit
    out=$BATS_TEST_TMPDIR/out line=$BATS_TEST_TMPDIR/line
    make_line >"$line"
}

teardown() { between_file; }

# LINE MBITS COMMAND...: becomes the command, for which eth0 is a card at a PCI address, of that rate: no system gives a veth one. 0: it
# is what it is.
make_line() {
    cat <<'SCRIPT'
rate=$1 net=/sys/class/net
shift
((rate)) || exec "$@"
exec unshare -m bash -c '
    card=$1/.card/devices/pci0000:00/0000:99:00.0/net/eth0
    mtu=$(cat "$1/eth0/mtu")
    mount -t tmpfs net "$1" && mkdir -p "$card" || exit 2
    echo "$2" >"$card/speed"
    echo "$mtu" >"$card/mtu"
    echo 1 >"$card/type"
    ln -s "${card#"$1/"}" "$1/eth0"
    ln -s ../../devices/virtual/net/lo "$1/lo"
    shift 2
    exec "$@"' line "$net" "$rate" "$@"
SCRIPT
}

# launch MBITS OPTIONS...: two ranks, each on its host, with a line of that rate; rows to $out.
launch() {
    local rate=$1
    shift
    timeout -k 5 1000 scripts/lab-cluster mpirun -np 2 bash "$line" "$rate" "$bin" --transport tcp --ranks 2 --size 1M --budget 1s \
        --min-samples 5 --csv --no-cpu "$@" >"$out" 2>"$out.err" 3>&- || { cat "$out.err" >&2 && return 1; }
}

# of BACKEND COLUMN: in its row of busbw.
of() {
    paste -d'|' <(cells metric) <(cells backend) <(cells "$2") | awk -F'|' -v backend="$1" \
        '$1 == "busbw" && $2 == backend { print $3; exit }'
}

# limits BACKEND MBITS SEGMENT: is the limit that rate, less Ethernet's and TCP's framing of such segments at MTU 1500?
limits() {
    awk -v limit="$(of "$1" limit)" -v mbits="$2" -v segment="$3" 'BEGIN {
        wanted = mbits / 8e3 * segment / 1538
        printf "%s of %s GB/s\n", limit, wanted
        exit !(limit > wanted * (1 - 1e-6) && limit < wanted * (1 + 1e-6)) }'
}

@test "a link of known rate: busbw of mpi and of our ring is held against it, and the row says which it is" {
    launch 10000 --backend mpi,ring
    limits mpi 10000 1460
    limits ring 10000 1448
    [[ $(of mpi limit_source) == "node"[01]"'s eth0, "*"sysfs: 10 Gb/s less TCP/IPv4 "*" 1500"* ]]
    [[ $(of ring limit_source) == "node"[01]"'s eth0: sysfs: 10 Gb/s less TCP/IPv4 "*" 1500"* ]]
    awk -v percent="$(of mpi percent_of_limit)" 'BEGIN { exit !(percent > 0 && percent < 50) }' # the link is shaped to a tenth
}

@test "a busbw above its limit is told, of mpi as of our ring" {
    launch 1 --backend mpi,ring
    limits mpi 1 1460
    limits ring 1 1448
    for backend in mpi ring; do
        awk -v percent="$(of $backend percent_of_limit)" 'BEGIN { exit !(percent > 100.5) }'
        [ "$(of $backend limit_scope)" = node ]
    done
}

@test "a link without a rate: no limit, and the row says of which and why; nor for vectors that are too small" {
    launch 0 --backend mpi,ring --size 8,1M
    [ "$(cells limit | sort -u)" = '' ]
    cells limit_source | grep -q "^node0's eth0: .* 10 Gb/s, made up: "
    cells limit_source | grep -q "^node0: .* 8 bytes "
    cells limit_source | grep -q "^node0's eth0, .* 10 Gb/s, made up: "
}

@test "a training step with little compute is held against the same line: gradients of 8 MB of two ranks go through it once" {
    local model=$BATS_TEST_TMPDIR/blocks.csv
    printf '%s\n' 'layer,parameters,m,n,k' 'l,2000000,1,1000,1000' >"$model"
    timeout -k 5 1000 scripts/lab-cluster mpirun -np 2 bash "$line" 10000 build/bin/plumb-step --transport tcp --ranks 2 \
        --model "$model" --batch 32 --compute-time 1ms --budget 1s --min-samples 5 --csv >"$out" 2>"$out.err" 3>&-
    paste -d'|' <(cells metric) <(cells limit) <(cells percent_of_limit) <(cells limit_kind) <(cells limit_source) | grep throughput >"$line.told"
    cat "$line.told"
    awk -F'|' '{ wanted = 64 / (8e6 / (1.25e9 * 1448 / 1538)); print wanted
        exit !($2 > wanted * .999999 && $2 < wanted * 1.000001 && $3 > 0 && $3 < 50 && $4 == "sysfs" && $5 ~ /links need.*sysfs: 10 Gb/) }' "$line.told"
}
