#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb import: run folders out of what other programs printed, and what report and compare say of them.

bats_require_minimum_version 1.5.0
load rows
load ../sim/env

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    PATH=$PWD/build/bin:$PATH
    w=$PWD/tests/witness
    cd "$BATS_TEST_TMPDIR" || exit
}

# cells FILE COLUMN...: the cells of these columns, a line for each row.
cells()
{
    python3 -c 'import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    print(*(r[c] for c in sys.argv[2:]), sep=",")' "$@"
}

# iperf NAME BITS: an output of iperf3 with this rate.
iperf()
{
    sed "s/19394252218.366222/$2/" "$w/iperf3-3.12.json" >"$1"
}

# here ROW...: a run folder `here` of net over TCP: "SIZE VALUE MEAN", a launch for each.
here()
{
    mkdir here
    {
        echo "state,rows,order,case,repeat,bench,arguments,timeout_s"
        for i in $(seq $#); do echo "done,0001,$i,1,$i,net,,60"; done
    } >here/plan.csv
    {
        echo "transport,pattern,direction,size,streams,threads,device,metric,unit,value,mean,origin,status,case,repeat,ci_low,ci_high,confidence,samples,limit,stop,reason,run,host,time_utc"
        i=0
        for row; do
            i=$((i + 1))
            read -r size value mean <<<"$row"
            echo "tcp,bandwidth,forward,$size,1,1,,average_bandwidth,GB/s,$value,$mean,measured,ok,1,$i,,,,10,,time,,here,here,"
        done
    } >here/net.csv
    cat >here/run.json <<'END'
{"schema": 2, "run": "here", "suite": "s", "state": "complete", "started_utc": "2026-01-01T00:00:00Z"}
END
}

@test "a line becomes the row of its case, by the definition of its figure" {
    run -0 plumb import "$w/iperf3-3.12.json" --out r
    [[ $output == *"iperf3-3.12.json: iperf3 3.12, 1 row of net"* ]]
    [[ $output == *"run folder: r"* ]]
    # 19394252218.366222 bits a second
    [ "$(cells r/net.csv transport pattern direction size streams threads metric unit value value_is origin status)" = \
        'tcp,bandwidth,forward,131072,1,*,average_bandwidth,GB/s,2.42428153,,imported,ok' ]
    run -0 plumb import "$w/qperf-tcp_lat-0.4.11.txt" --out q
    [ "$(cells q/net.csv metric unit value value_is mean p50 size)" = 'latency,us,27.7970813,mean,27.7970813,,*' ]
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
    [[ $output == *"left out: 2 results, such as test"*"it adds the rates of both"* ]]
    [[ $output == *"left out: 1 result, such as test multinode_device_to_device_memcpy_read_ce"* ]]
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
    here "131072 2.02 2.02" "131072 2.04 2.04" "131072 2 2"
    run plumb compare v here
    [[ $output == *"not known: imported"* ]]
    [[ $output == *"better: B (here) against A (v): better in Network (2 times A"* ]]
    [[ $output != *"no such case"* ]]
    run -0 plumb report v
    [[ $output == *"imported"* ]]
    grep -q "Not measured here: 3 of 3 rows of <b>net</b> in v, simulated, modelled or imported" v/report.html
}

@test "one file is undecided, whatever the ratio is: never equal, never worse" {
    iperf 1.json 8e9
    run -0 plumb import 1.json --out v
    here "131072 1 1" "131072 1.001 1.001" "131072 0.999 0.999"
    run plumb compare v here
    [[ $output == *"(no interval)"*"undecided"* ]]
    sed -i 's/,1\.001,/,0.1001,/; s/,0\.999,/,0.0999,/; s/,1,1,measured/,0.1,0.1,measured/' here/net.csv
    run plumb compare v here
    [[ $output == *"undecided"* ]]
    [[ $output != *"Verdict   worse"* ]]
}

@test "what may be several cases is compared with none, and they are named" {
    run -0 plumb import "$w/qperf-tcp_bw-0.4.11.txt" --out v
    here "131072 1 1" "65536 1 1"
    run plumb compare v here
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"several that it may be, 2 cases: size 64K or 128K"* || \
        $(tr -s ' \n' ' ' <<<"$output") == *"several that it may be, 2 cases: size 128K or 64K"* ]]
    run -0 plumb import "$w/qperf-tcp_bw-0.4.11.txt" --set size=64K --out w
    run plumb compare w here
    [[ $output != *"several that it may be"* ]]
    [[ $output == *"1.521 GB/s"* ]]
}

# One program, two formats: only one of them tells whether buffers were registered.
@test "what is stated by hand is checked, kept and shown; two imported sides say which file to state it of" {
    run -0 plumb import "$w/nccl-allreduce-2.19.6.json" --out json
    run -0 plumb import "$w/nccl-allreduce-2.19.6.txt" --out text
    run -4 plumb compare json text
    said=$(tr -s ' \n' ' ' <<<"$output")
    [[ $said == *"A has one that it may be, and it is not sure. What B was imported from does not tell 'register', and the other side has register none. If it was the same: plumb import FILE --set register=none"* ]]
    [[ $said == *"B has no such case. What B was imported from does not tell 'register'"* ]]
    [[ $said != *"plumb run SUITE"* ]]

    run -0 plumb import "$w/nccl-allreduce-2.19.6.txt" --set register=none --out stated
    python3 -c 'import json, sys
words = json.load(open("stated/run.json"))["command"]
assert words == ["plumb", "import", sys.argv[1], "--set", "register=none", "--out", "stated"], words' \
        "$w/nccl-allreduce-2.19.6.txt"
    [ "$(cells stated/allreduce.csv evidence | sort -u)" = \
        'by nccl-tests 2.19.6, file nccl-allreduce-2.19.6.txt; NCCL 2.27.3; not by the file, by --set: register none' ]
    # Means on both sides, by one definition: said once, and of no side alone.
    run -3 plumb compare json stated
    said=$(tr -s ' \n' ' ' <<<"$output")
    [[ $said == *"all 8 cases differ in this: of both: its time is the mean over processes, unless -a was given; ours is that of the slowest rank, means are compared, not medians"* ]]
    [ "$(grep -o 'mean over' <<<"$said" | wc -l)" = 1 ]

    # No row could ever agree with it.
    for wrong in register=maybe register=none,local ranks=many; do
        run -2 plumb import "$w/nccl-allreduce-2.19.6.txt" --set $wrong --out wrong
        [[ $output == "plumb import: "*"${wrong#*=}"* ]]
        [ ! -e wrong ]
    done
    # An import does not go on.
    run -2 plumb import "$w/nccl-allreduce-2.19.6.txt" --out text
    [ "$output" = "plumb import: 'text' is there already: name another folder with --out" ]
}

@test "a mean is held against the mean, not against the median" {
    run -0 plumb import "$w/qperf-tcp_lat-0.4.11.txt" --out v
    here "64 20 30" "64 20 30"
    sed -i 's/tcp,bandwidth,forward,64,1,1,,average_bandwidth,GB.s/tcp,latency,,64,,,,latency,us/' here/net.csv
    run plumb compare v here
    [[ $output == *"27.80 us"*"30.00 us"* ]]
    [[ $output == *"means are"* ]]
}

# measured FOLDER: makes a folder of imported rows one of measured rows, with nothing left open.
measured()
{
    python3 - "$1" <<'END'
import csv, glob, sys
for path in glob.glob(sys.argv[1] + "/*.csv"):
    rows = list(csv.DictReader(open(path)))
    if path.endswith("plan.csv") or not rows:
        continue
    for r in rows:
        r.update({k: {"register": "none"}.get(k, "") for k, v in r.items() if v == "*"})
        r.update(origin="measured", differs="", value_is="", mean=r["mean"] or r["value"])
    with open(path, "w") as f:
        w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        w.writeheader()
        w.writerows(rows)
END
}

@test "nccl-tests: queued, aggregated and graphs are of the case; another number of nodes is another quantity" {
    local t=$w/nccl-allreduce-2.19.6.txt
    run -0 plumb import "$t" --out here
    cells here/allreduce.csv size metric nodes pipelined aggregate graph register in_place |
        grep -qx '65536,time,1,20,1,0,\*,'
    measured here
    sed 's/16384     float     sum      -1    18.64    3.52/16384     float     sum      -1    18.66    3.51/' "$t" >same.txt
    run -0 plumb import same.txt --out same
    run plumb compare same here
    [[ $output != *"no such case"* ]]
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"mean over processes"*"slowest rank"* ]]
    sed 's/agg iters: 1/agg iters: 8/; s/graph: 0/graph: 20/' "$t" >graphs.txt
    run -0 plumb import graphs.txt --out graphs
    cells graphs/allreduce.csv size metric pipelined aggregate graph | grep -qx '65536,time,20,8,20'
    run plumb compare graphs here
    [[ $output == *"no such case"* ]]
    [[ $output != *"worse"* && $output != *"better"* ]]
    sed 's/node7 device  [23]/node8 &/; s/node8 node7/node8/' "$t" >two.txt
    run -0 plumb import two.txt --out two
    run plumb compare two here
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"another quantity: nodes 2 against 1"* ]]
    # A barrier in the time is no case of ours.
    sed 's/^# Using devices/# Blocking Enabled: wait and barrier after each inner iteration (-m)\n&/' "$t" >barrier.txt
    run -5 plumb import barrier.txt --out barrier
    [[ $output == *"no benchmark has a case like"* ]]
}

@test "nvbandwidth: every test of the table in docs/copy.md is a case that its command measures" {
    cd "$BATS_TEST_DIRNAME/../.." || exit
    local dir=$BATS_TEST_TMPDIR
    printf 'include = %s/tests/sim/machines/two.conf\n[machine]\ngpus = 3\n' "$PWD" >"$dir/three.conf"
    simulate "$dir/three.conf"
    # One file, and one command line, a test: as the table says, for copy engines and for kernels.
    python3 - "$dir" <<'END'
import json, re, sys
cells = lambda rows, at: [["N/A" if at(i, k) is None else str(at(i, k)) for k in range(3)] for i in range(rows)]
cases, commands = [], []
for line in open("docs/copy.md"):
    found = re.match(r"\| `(\w+\*?)` \| (?:the same, )?`([^`]*)` \|", line)
    if not found:
        continue
    name, options = found.groups()
    if not options.startswith("--source"):
        options = before + " " + options
    before = " ".join(options.split()[:4])
    for engine in ("ce", "sm") if name.endswith("*") else ("",):
        pairs, both = "device_to_device" in name, "device_bidirectional" in name and "host" not in name
        rows = (9 if both else 3) if pairs else 1
        at = lambda i, k: None if pairs and i % 3 == k else 10 + 3 * i + k
        matrix = cells(rows, at)
        last = matrix[6:] if both else matrix
        cases.append({"name": name.replace("*", engine), "status": "Passed", "bandwidth_matrix": matrix,
                      "sum": sum(float(c) for r in last for c in r if c != "N/A")})
        options_ = options.replace("--source N", "--source nodes").replace("--destination N", "--destination nodes")
        options_ = options_.replace(" G", " gpus")
        if "latency" in name:
            options_ += " --size 2M"
        else:
            options_ += " --size 64K" + (f" --engine {engine}" if engine else "")
        commands += [options_.replace("cuda:0", f"cuda:{i}") for i in range(3 if "cuda:0" in options_ else 1)]
json.dump({"nvbandwidth": {"version": "v0.8", "testcases": cases}}, open(sys.argv[1] + "/all.json", "w"))
open(sys.argv[1] + "/commands", "w").write("".join(c + " --csv --budget 2ms --warmup 0s --min-samples 1 --max-samples 2\n" for c in commands))
END
    [ "$(wc -l <"$dir/commands")" -ge 31 ]
    plumb-copy --commands /dev/null <"$dir/commands" >"$dir/ours.csv"
    plumb import "$dir/all.json" --set size=64K --out "$dir/run" >"$dir/said"
    python3 - "$dir" <<'END'
import csv, fnmatch, sys
keys = "engine source destination direction memory op access handle together load size metric".split()
ours, left = {}, set()
for r in csv.reader(open(sys.argv[1] + "/ours.csv")):
    if r[0] == "engine":
        head = r
    elif dict(zip(head, r))["status"] in ("ok", "noisy"):
        row = dict(zip(head, r))
        ours[tuple(row[k] for k in keys)] = row
theirs = list(csv.DictReader(open(sys.argv[1] + "/run/copy.csv")))
for r in theirs:
    wanted = tuple(r[k] for k in keys)
    found = [o for o in ours if all(fnmatch.fnmatchcase(a, b) for a, b in zip(o, wanted))]
    if len(found) != 1:
        print(len(found), wanted)
        left.add(wanted)
assert not left
# 4 x 3 with the host, 2 x 3 of both ways by copy engines, as many beside others; 2 x 2 x 6 and 4 x 6 x 2 between GPUs; 6 x 3 with all
assert len(theirs) == 12 + 6 + 12 + 6 + 24 + 48 + 18 + 3 + 3 + 6, len(theirs)
END
}

@test "nccl-tests: every operation with an equal one here is its row, with its root; hypercube_perf is left out" {
    local t=$w/nccl-alltoall-2.17.1.txt of op
    for of in reduce:sum:2:reduce,sum,2 'gather:none:3:gather,,3' 'scatter:none:0:scatter,,0' 'broadcast:none:1:broadcast,,1' \
        'sendrecv:sum:-1:send-receive,,' 'alltoall:none:-1:all-to-all,,'; do
        IFS=: read -r op redop root wanted <<<"$of"
        sed "s/alltoall_perf/${op}_perf/; s/none      -1/$redop  $root/" "$t" >"$op.txt"
        run -0 plumb import "$op.txt" --out "$op"
        cells "$op/allreduce.csv" op redop root size in_place metric value >"$op.rows"
        grep -qx "$wanted,67108864,,time,341.5" "$op.rows"
        grep -qx "$wanted,67108864,yes,busbw,148.8" "$op.rows"
        [ "$(wc -l <"$op.rows")" -eq 18 ]
    done
    sed 's/alltoall_perf/hypercube_perf/; s/none      -1/          -1/' "$t" >hypercube.txt
    run -5 plumb import hypercube.txt --out hypercube
    [[ $output == *"no benchmark has a case like"*hypercube* ]]
}

@test "what is no case of ours is left out: OSU's mean over ranks, IMB's Bcast; what differs is told" {
    run -0 plumb import "$w/osu-allreduce-7.4.txt" --out o
    [ "$(cells o/allreduce.csv size metric value differs | sed -n 2p)" = \
        '65536,time,54.9,each operation follows a barrier; its slowest rank is that of the largest mean, ours that of each sample' ]
    awk '/^# Size/ {print "# Size       Avg Latency(us)"; next} /^[0-9]/ {print $1, $2; next} 1' \
        "$w/osu-allreduce-7.4.txt" >mean.txt
    run -5 plumb import mean.txt --out m
    [[ $output == *"no benchmark has a case like test Allreduce-Latency-Test"* ]]
    run -0 plumb import "$w/imb-allreduce-2021.11.txt" --out i
    [ "$(cells i/allreduce.csv metric differs)" = 'time,' ]
    sed 's/ -sync off//' "$w/imb-allreduce-2021.11.txt" >sync.txt
    run -0 plumb import sync.txt --out s
    [[ $(cells s/allreduce.csv metric differs) == 'time,each operation follows a barrier; its slowest rank is that of the largest mean'* ]]
    sed 's/Benchmarking Allreduce/Benchmarking Bcast/' "$w/imb-allreduce-2021.11.txt" >bcast.txt
    run -5 plumb import bcast.txt --out b
    [[ $output == *"no benchmark has a case like test Bcast"* ]]
    sed 's/Send Latency Test/&\n Test with events. Using rxe0_comp0/' "$w/ib_send_lat-6.06.txt" >events.txt
    run -0 plumb import events.txt --out e
    [ "$(cells e/net.csv verb completion)" = 'send,event' ]
    run -0 plumb import "$w/ib_send_lat-6.06.txt" --out p
    [ "$(cells p/net.csv verb completion)" = 'send,poll' ]
}

@test "a figure that nccl-tests took with several GPUs in a process is that of such processes; other makers' GPUs are no cuda" {
    local t=$w/nccl-alltoall-2.17.1.txt
    run -0 plumb import "$t" --out four
    [ "$(cells four/allreduce.csv ranks per_process | sort -u)" = "$(sed -n 's/.* nGpus \([0-9]*\) .*/4,\1/p' "$t")" ]
    sed 's/nThread 1 nGpus 4 /nThread 4 nGpus 1 /' "$t" >threads.txt
    run -0 plumb import threads.txt --out threads
    [ "$(cells threads/allreduce.csv per_process | sort -u)" = '*' ]
    run -0 plumb import "$w/nccl-allreduce-2.19.6.json" --out json
    [ "$(cells json/allreduce.csv ranks per_process | sort -u)" = 4,4 ]
    sed 's/MPI-CUDA/MPI-ROCM/' "$w/osu-bw-5.9.txt" >rocm.txt
    run -0 plumb import rocm.txt --out rocm
    [[ $(cells rocm/net.csv memory peer_memory) != *cuda* ]]
    run -0 plumb import "$w/osu-bw-5.9.txt" --out cuda
    [ "$(cells cuda/net.csv memory peer_memory | sort -u)" = 'cuda:*,cuda:*' ]
}

@test "what is refused: another program, cut off, another version, the same twice; no folder is made" {
    echo hello >other.txt
    run -5 plumb import other.txt --out r
    [[ $output == *"'other.txt': it is no output of a program that is known here: nvbandwidth, "* ]]
    head -c 900 "$w/nvbandwidth-0.8.json" >cut.json
    run -5 plumb import "$w/iperf3-3.12.json" cut.json --out r
    [[ $output == *"cut off"* ]]
    sed 's/"v0.8"/"v0.99"/' "$w/nvbandwidth-0.8.json" >new.json
    run -5 plumb import new.json --out r
    [[ $output == *"nvbandwidth 0.99, and its format is known of versions 0.4 to 0.8; --any-version"* ]]
    run -0 plumb import new.json --any-version --out any
    cp "$w/iperf3-3.12.json" again.json
    run -2 plumb import "$w/iperf3-3.12.json" again.json --out r
    [[ $output == *"is the same as"* ]]
    run -2 plumb import "$w/iperf3-3.12.json" --set size=64K --out r
    [[ $output == *"it says size 131072, and --set says 65536"* ]]
    run -2 plumb import "$w/iperf3-3.12.json" --set colour=red --out r
    [[ $output == *"no benchmark of these files has a column 'colour'"* ]]
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
}

# What osu_mbw_mr.c prints: the same title, and no line on buffers, with -d cuda as without.
@test "what no benchmark here measures is left out with the reason, not only as unknown" {
    # Of nvbandwidth's own words in one file, and nothing but such in another.
    python3 - "$w/nvbandwidth-0.8.json" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
case = lambda name: {"name": name, "status": "Passed", "bandwidth_matrix": [["N/A", "10.5"], ["11.5", "N/A"]], "sum": 22.0}
more = ["multinode_device_to_device_memcpy_read_ce", "multinode_device_to_device_broadcast_one_to_all_sm", "tomorrows_test_ce"]
r["nvbandwidth"]["testcases"] += [case(name) for name in more]
json.dump(r, open("more.json", "w"))
r["nvbandwidth"]["testcases"] = [case(name) for name in more[:2]]
json.dump(r, open("nodes.json", "w"))
END
    run -0 plumb import more.json --out m
    said=$(tr -s ' \n' ' ' <<<"$output")
    [[ $said == *"left out: 5 results, such as test multinode_device_to_device_memcpy_read_ce: its GPUs are those of ranks"* ]]
    [[ $said == *"left out: 2 results without an equal case here, such as test tomorrows_test_ce"* ]]
    run -5 plumb import nodes.json --out n
    [[ $output == *"'nodes.json': not imported: its GPUs are those of ranks, and it does not tell on which hosts these are (test multinode_device_to_device_memcpy_read_ce)"* ]]
    [ ! -e n ]
    # The same figures of another thing.
    refused()
    {
        run -5 plumb import "$1" --out n
        [[ $output == *"'$1': not imported: $2"* ]]
        [ ! -e n ]
    }
    python3 - "$w/nvbandwidth-0.8.json" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
r["nvbandwidth"]["version"] = "v0.7"
r["nvbandwidth"]["testcases"] = [t for t in r["nvbandwidth"]["testcases"] if t["name"] == "device_to_device_latency_sm"]
json.dump(r, open("chain.json", "w"))
END
    refused chain.json "before 0.8 its chain between GPUs leads through the host's memory"
    sed 's/MPI-1 part/& (GPU)/' "$w/imb-allreduce-2021.11.txt" >gpu.txt
    refused gpu.txt "its buffers are on GPUs"
    sed 's/"target_bitrate":	0/"target_bitrate":	1000000000/' "$w/iperf3-3.12.json" >paced.json
    refused paced.json "it sends at a rate that was asked for"
    sed 's/ReceivedMessages=113150/ReceivedMessages=1131/' "$w/sockperf-3.7.txt" >load.txt
    refused load.txt "its messages do not wait for answers"
    sed 's/"-g","4"/"-g","4","-R","2","-D","1"/' "$w/nccl-allreduce-2.19.6.json" >own.json
    refused own.json "kernels of nccl-tests itself move the data (-D)"
    sed 's/unalign: 0/unalign: 1/' "$w/nccl-allreduce-2.19.6.txt" >unaligned.txt
    refused unaligned.txt "its buffers are not aligned (-u)"
    sed 's/Latency Test/Multi Latency Test/' "$w/osu-latency-7.4.txt" >multi.txt
    run -5 plumb import multi.txt --out n
    [[ $output == *"not imported: it is the latency of several pairs at once, and no benchmark here measures that"* ]]
    for test in "All-to-Allv Personalized Exchange" Allgatherv Gatherv Scatterv; do
        sed "s|OSU MPI Latency|OSU MPI $test Latency|" "$w/osu-latency-7.4.txt" >v.txt
        run -5 plumb import v.txt --out n
        [[ $output == *"not imported: it calls MPI's function for parts of unequal size, and no benchmark here does"* ]]
    done
}

@test "OSU's pairs tell no memory; results of derived types are left out" {
    printf '%s\n' '# OSU MPI Multiple Bandwidth / Message Rate Test v7.4' '# [ pairs: 4 ] [ window size: 64 ]' \
        '# Datatype: MPI_CHAR.' '# Size                  MB/s           Messages/s' \
        '8                      24.00           3000000.00' \
        '65536               40000.00            610351.56' >pairs.txt
    run -0 plumb import pairs.txt --out pairs
    [ "$(cells pairs/net.csv memory peer_memory | sort -u)" = ',' ]
    [ "$(cells pairs/net.csv size streams metric unit value | grep -c '^65536,4,average_bandwidth,GB/s,40$')" = 1 ]
    [ "$(cells pairs/net.csv size streams metric unit value | grep -c '^8,4,message_rate,Mop/s,3$')" = 1 ]
    printf '%s\n' '# OSU MPI Bandwidth Test v7.4' '# Datatype: MPI_CHAR.' \
        '# Size        Bandwidth (MB/s)     Transmit Size' '1048576               9000.00            524288' >types.txt
    run -5 plumb import types.txt --out types
    [[ $output == *"no benchmark has a case like test Bandwidth-Test"* ]]
}
