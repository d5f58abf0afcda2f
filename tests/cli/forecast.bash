# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: forecast.bats, forecast-long.bats.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    cd "$BATS_TEST_TMPDIR" || return 1
    made_by tools/make-cluster.py run
    # two layers of 4 million numbers
    printf 'layer,parameters,m,n,k,count,backward,output\na,4194304,1,2048,2048,1,2,2048\nb,4194304,1,2048,2048,1,2,2048\n' > toy.csv
    job=(run --model ./toy.csv --compute 60ms --update none --bucket 16M --over 'backend=ring transport=tcp')
}

# ring RANKS BYTES: seconds of make-cluster.py's ring over TCP: 38 us a message, 0.118 GB/s.
ring() {
    awk "BEGIN { printf \"%.12g\", 2 * ($1 - 1) * (38e-6 + $2 / $1 / 0.118e9) }"
}

near() { # near VALUE EXPECTED SHARE
    awk "BEGIN { off = ($1) / ($2) - 1; exit !(off <= $3 && off >= -($3)) }" || { echo "$1 is not $2"; return 1; }
}

# offers.yaml: as measured, with ten times the network, and twice the nodes that draw less.
make_offers() {
    cat > offers.yaml <<'END'
currency: EUR
energy_price: 0.25 EUR/kWh
time: 4 years
use: 80 %
offers:
  - {name: measured, nodes: 8, node_price: 20000 EUR, node_power: 1000 W}
  - {name: fast, nodes: 8, node_price: 21500 EUR, node_power: 1.02 kW, swap: network=10Gb/s}
  - {name: frugal, nodes: 16, node_price: 20900 EUR, node_power: 700 W}
END
}
