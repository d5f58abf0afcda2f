#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb import: run folders out of what other programs printed, and what report and compare say of them.

load common
load ../sim/env
load import

# iperf NAME BITS: an output of iperf3 with this rate.
iperf()
{
    sed "s/19394252218.366222/$2/" "$w/iperf3-3.12.json" >"$1"
}

@test "a line becomes the row of its case, by the definition of its figure" {
    told 0 'iperf3-3.12.json: iperf3 3.12, 1 row ' plumb import "$w/iperf3-3.12.json" --out r
    [[ $output == *"run folder: r"* ]]
    # 19394252218.366222 bits a second
    [ "$(cells r/net.csv transport pattern direction size streams threads metric unit value value_is origin status)" = \
        'tcp,bandwidth,forward,131072,1,*,average_bandwidth,Gb/s,19.3942522,,imported,ok' ]
    run -0 plumb import "$w/ib_read_lat-6.06.txt" --out i
    [ "$(cells i/net.csv verb metric value value_is p50 mean min max stddev size)" = \
        'read,latency,35.62,,35.62,88.98,16.45,,,8' ]
    run -0 plumb import "$w/nccl-allreduce-2.19.6.json" --out n
    cells n/allreduce.csv backend op dtype redop ranks size in_place metric value value_is |
        grep -qx 'nccl,allreduce,f32,sum,4,67108864,,time,341.5,mean'
    cells n/allreduce.csv size in_place metric value | grep -qx '67108864,yes,time,338.25'
    run -0 plumb import "$w/nvbandwidth-0.8.json" --set size=512M --out v
    cells v/copy.csv engine source destination direction memory op size value |
        grep -qx 'ce,node\*,cuda:0,one-way,pinned,,536870912,55.4321'
    # Their size is not that of copies.
    cells v/copy.csv engine source destination metric size value value_is |
        grep -qx 'sm,node\*,cuda:1,load-latency,2097152,742.25,mean'
    cells v/copy.csv source destination direction op value | grep -qx 'cuda:1,cuda:0,one-way,read,391.25'
    [[ $output == *" 2 results, "*"both"* ]]
    [[ $output == *" 1 result, "*" multinode_device_to_device_memcpy_read_ce"* ]]
    # The machine is not this one.
    python3 -c 'import json; r = json.load(open("v/run.json")); assert r["machine"] is None and not r["limits"]
assert r["imported"][0]["program"] == "nvbandwidth" and r["imported"][0]["version"] == "0.8"'
}

@test "it pairs with the one case that agrees; several files are launches; the mark is shown" {
    iperf 1.json 8e9
    iperf 2.json 8.08e9
    iperf 3.json 8.16e9
    run -0 plumb import 1.json 2.json 3.json --out v
    [ "$(cells v/net.csv case repeat)" = $'1,1\n1,2\n1,3' ]
    here "131072 16.2 16.2" "131072 16.3 16.3" "131072 16 16"
    plumb compare v here --csv all.csv >out
    [ "$(cells all.csv pipe state verdict)" = Network,compared,better ]
    awk -F, -v x="$(cells all.csv ratio)" 'BEGIN { exit !(x > 1.9 && x < 2.1) }'
    told 0 imported plumb report v
    grep -q ": 3 of 3 .*<b>net</b>" v/report.html
}

@test "what is refused: another program, cut off, another version, the same twice; no folder is made" {
    echo hello >other.txt
    told 5 "'other.txt': *: nvbandwidth, " plumb import other.txt --out r
    head -c 900 "$w/nvbandwidth-0.8.json" >cut.json
    told 5 "'cut.json'" plumb import "$w/iperf3-3.12.json" cut.json --out r
    sed 's/"v0.8"/"v0.99"/' "$w/nvbandwidth-0.8.json" >new.json
    told 5 '0.99*0.4*0.10*--any-version' plumb import new.json --out r
    run -0 plumb import new.json --any-version --out any
    cp "$w/iperf3-3.12.json" again.json
    told 2 again.json plumb import "$w/iperf3-3.12.json" again.json --out r
    told 2 ' 131072, *--set* 64K' plumb import "$w/iperf3-3.12.json" --set size=64K --out r
    told 2 "'colour'" plumb import "$w/iperf3-3.12.json" --set colour=red --out r
    run -2 plumb import
    run -2 plumb import "$w/iperf3-3.12.json" --out any
    [ ! -e r ]
}

@test "every recorded output is read or refused with a sentence" {
    for f in "$w"/*-*.txt "$w"/*-*.json; do
        status=0
        plumb import "$f" --out "all-${f##*/}" >out 2>err || status=$?
        [ "$status" -eq 0 ] || { [ "$status" -eq 5 ] && grep -q "^plumb import: '" err; } || {
            echo "$f: $status"
            cat out err
            false
        }
        awk 'length > 80 && !/^'"${f##*/}"'/' out | grep . && false
        true
    done
    # in units that the benchmarks' own rows have
    python3 - all-* <<'END'
import csv, glob, json, sys
for folder in sys.argv[1:]:
    for path in set(glob.glob(folder + "/*.csv")) - {folder + "/plan.csv"}:
        metrics = json.load(open(folder + "/run.json"))["benchmarks"][path.split("/")[-1][:-4]]["metrics"]
        units = {(m["name"], unit) for m in metrics for unit in m.get("units", "").split()}
        for row in csv.DictReader(open(path)):
            assert (row["metric"], row["unit"]) in units, (path, row["metric"], row["unit"])
END
}
