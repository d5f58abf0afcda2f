#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb import: run folders out of what other programs printed, and what report and compare say of them.

load common
load ../sim/env
load import

# One program, two formats: only one of them tells whether buffers were registered.
@test "what is stated by hand is checked, kept and shown; two imported sides say which file to state it of" {
    run -0 plumb import "$w/nccl-allreduce-2.19.6.json" --out json
    run -0 plumb import "$w/nccl-allreduce-2.19.6.txt" --out text
    run -4 plumb compare json text
    said=$(tr -s ' \n' ' ' <<<"$output")
    [[ $said == *"'register'"*"plumb import FILE --set register=none"* ]]
    [[ $said != *"plumb run SUITE"* ]]

    run -0 plumb import "$w/nccl-allreduce-2.19.6.txt" --set register=none --out stated
    python3 -c 'import json, sys
words = json.load(open("stated/run.json"))["command"]
assert words == ["plumb", "import", sys.argv[1], "--set", "register=none", "--out", "stated"], words' \
        "$w/nccl-allreduce-2.19.6.txt"
    [[ $(cells stated/allreduce.csv evidence | sort -u) == *"nccl-allreduce-2.19.6.txt; NCCL 2.27.3; "*"--set: register none" ]]
    # Means on both sides, by one definition: said once, and of no side alone.
    run -3 plumb compare json stated
    [ "$(tr -s ' \n' ' ' <<<"$output" | grep -o 'mean over' | wc -l)" = 1 ]

    # No row could ever agree with it.
    for wrong in register=maybe register=none,local ranks=many; do
        run -2 plumb import "$w/nccl-allreduce-2.19.6.txt" --set $wrong --out wrong
        [[ $output == "plumb import: "*"${wrong#*=}"* ]]
        [ ! -e wrong ]
    done
    # An import does not go on.
    told 2 "'text'*--out" plumb import "$w/nccl-allreduce-2.19.6.txt" --out text
}

@test "nccl-tests: queued, aggregated and graphs are of the case; another number of nodes is another quantity" {
    local t=$w/nccl-allreduce-2.19.6.txt
    run -0 plumb import "$t" --out here
    cells here/allreduce.csv size metric nodes pipelined aggregate graph register in_place |
        grep -qx '65536,time,1,20,1,0,\*,'
    measured here
    sed 's/16384     float     sum      -1    18.64    3.52/16384     float     sum      -1    18.66    3.51/' "$t" >same.txt
    run -0 plumb import same.txt --out same
    run plumb compare same here --csv c.csv
    [ "$(cells c.csv state | sort -u)" = compared ]
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"mean over"* ]]
    sed 's/agg iters: 1/agg iters: 8/; s/graph: 0/graph: 20/' "$t" >graphs.txt
    run -0 plumb import graphs.txt --out graphs
    cells graphs/allreduce.csv size metric pipelined aggregate graph | grep -qx '65536,time,20,8,20'
    run plumb compare graphs here --csv c.csv
    [ -z "$(cells c.csv verdict | tr -d '\n')" ]
    sed 's/node7 device  [23]/node8 &/; s/node8 node7/node8/' "$t" >two.txt
    run -0 plumb import two.txt --out two
    run plumb compare two here
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"nodes 2 "*" 1"* ]]
    # A barrier in the time is no case of ours.
    sed 's/^# Using devices/# Blocking Enabled: wait and barrier after each inner iteration (-m)\n&/' "$t" >barrier.txt
    told 5 '-z 1' plumb import barrier.txt --out barrier
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
    told 5 'all-gather*hypercube' plumb import hypercube.txt --out hypercube
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
    [[ $said == *" 5 results, "*" multinode_device_to_device_memcpy_read_ce: "* ]]
    [[ $said == *" 2 results, "*" tomorrows_test_ce: "* ]]
    told 5 "'nodes.json'* multinode_device_to_device_memcpy_read_ce" plumb import nodes.json --out n
    [ ! -e n ]
    # The same figures of another thing.
    sed 's/"target_bitrate":	0/"target_bitrate":	1000000000/' "$w/iperf3-3.12.json" >paced.json
    told 5 "'paced.json'" plumb import paced.json --out n
    [ ! -e n ]
    sed 's|OSU MPI Latency|OSU MPI Allgatherv Latency|' "$w/osu-latency-7.4.txt" >v.txt
    run -5 plumb import v.txt --out n
    # Each of these would get the name of another case.
    left()
    {
        sed "$2" "$w/$1" >left
        run -5 plumb import left --out n
        [[ $output == *"$3"* ]] || { echo "$1 $2: $output"; false; }
    }
    left iperf3-3.12.json 's/"reverse":	0/"reverse": 0, "bidir": 1/' --bidir
    left iperf3-3.12.json 's/"TCP"/"UDP"/' protocol
    left ib_write_bw-6.06.txt 's/RDMA_Write BW/RDMA_Write Bidirectional BW/' -b
    left ib_write_bw-6.06.txt 's/RDMA_Write BW/RDMA_Write Post List BW/' "Post List"
    left ib_write_bw-6.06.txt 's/Dual-port       : OFF/Dual-port       : ON/' Dual-port
    left ib_write_bw-6.06.txt 's/RDMA_Write BW/Atomic FETCH_AND_ADD BW/' atomics
    left ib_write_bw-6.06.txt 's/: RC/: UC/' RC
    left nccl-allreduce-2.19.6.txt 's/all_reduce_perf/alltoallv_perf/' 'alltoallv'
    left nccl-allreduce-2.19.6.txt 's/NVIDIA H200/AMD Instinct MI300X/' RCCL
    left osu-allreduce-7.4.txt 's/Latency(us).*Iter.*/Latency(us)/; s/^\([0-9]* *[0-9.]*\) .*/\1/' -f
    [ ! -e n ]
}

@test "of a text without its head the user says of what it is; another run in the file is refused" {
    local t=$w/nccl-allreduce-2.19.6.txt
    sed '/Collective test starting/d' "$t" >old.txt
    told 5 '--set collective=' plumb import old.txt --out r
    [ ! -e r ]
    run -0 plumb import "$t" --out named
    cp old.txt all_reduce.txt
    for how in 'old.txt --set collective=all_reduce' 'old.txt --set op=allreduce' all_reduce.txt; do
        # shellcheck disable=SC2086 # several words
        run -0 plumb import $how --out "r $how"
        [ "$(cells "r $how/allreduce.csv" op redop size metric value)" = \
            "$(cells named/allreduce.csv op redop size metric value)" ]
        [[ $(cells "r $how/allreduce.csv" evidence) == *"; collective by "* ]]
    done
    cat "$t" "$t" >twice.txt
    told 5 ' 2 * 40 ' plumb import twice.txt --out r
    sed 's/RDMA_Write BW Test//' "$w/ib_write_bw-6.06.txt" >head.txt
    told 5 ' verb, test, direction' plumb import head.txt --out r
    run -0 plumb import head.txt --set verb=write --set test=bandwidth --set direction=forward --out r
    [ "$(cells r/net.csv verb direction metric)" = write,forward,average_bandwidth ]
    sed '/Running device_to_host_memcpy_ce/,$d' "$w/nvbandwidth-0.8.txt" >wrong.txt
    printf '%s\n' 'Running device_to_host_memcpy_ce.' ' Invalid value when checking the pattern at 0x71' >>wrong.txt
    run -0 plumb import wrong.txt --out wrong
    [[ $(cells wrong/copy.csv source destination status value) == *"cuda:*,node*,wrong,"* ]]
}
