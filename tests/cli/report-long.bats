#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb report: what it writes, what it says, and with which exit code, on made-up run folders.

load common
load made
load report

@test "the glossary has each word of the table, and the word's first use links to it" {
    make_run wrong
    sed -i 's/,ok,/,wrong,/' wrong/memory.csv
    for run in wrong "$top"/results/reference/*/; do
        "$plumb" report "$run" --out page
        python3 - page/report.html <<'END'
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
terms = dict(re.findall(r"<dt id='(term-\d+)'>([^<]*)</dt>", page))
cells = re.findall(r"<td class='d-word[^>]*>(.*?)</td>", page)
words = {re.sub(r"<sup>.*|<[^>]*>", "", cell).strip() for cell in cells} - {""}
assert words and terms
for word in words:
    assert any(word.startswith(term) for term in terms.values()), word
    assert any(f"href='#{id}'" in page for id, term in terms.items() if word.startswith(term)), word
END
    done
}

@test "the axis of a plot with a limit holds the upper ends of the bars" { # shm: 53.61 GB/s +/- 34 %
    "$plumb" report "$top/results/reference/epyc-zen5-2vcpu" --out page
    reach=$(sed -n "/class='value-ticks'/,/<\/g>/s/.*>\([0-9]*\)<\/text>/\1/p" page/plots/copy-bandwidth.svg | sort -n | tail -1)
    [ "$reach" -gt 71 ]
}

@test "net: what carried it, and metrics of other units in plots of their own" {
    rm -r r
    mkdir r
    cat > r/run.json <<'END'
{"schema": 3, "run": "r", "suite": "net", "config": "", "seed": 1, "state": "complete", "machine": {}, "limits": [], "library_settings": {"OPENBLAS_CORETYPE": "Haswell <b>"}}
END
    python3 - "$top" <<'END'
import csv, json, sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
from run_folder import row_columns, told
meta = json.load(open("r/run.json"))
json.dump(dict(meta, benchmarks=told(["net"])), open("r/run.json", "w"))
names = row_columns()
params = ["transport", "pattern", "direction", "size", "streams", "side", "scope", "rail", "peer_host", "cpus", "detail", "peer_detail"]
base = dict(transport="tcp", pattern="bandwidth", direction="forward", streams="1", peer_host="b", cpus="0>1", detail="eth7 cubic, MSS 1448",
            peer_detail="eth7", carrier="sockets", carrier_device="eth7", status="ok", origin="measured", run="r", case="1", repeat="1", host="a", time_utc="2026-01-01T00:00:00Z", samples="30")
rows = []
for size, gbps in ((65536, 8.8), (1048576, 9.36)):
    rows.append(dict(base, size=size, metric="bandwidth", unit="Gb/s", value=gbps, ci_low=gbps, ci_high=gbps, limit=10, limit_source="eth7", percent_of_limit=10 * gbps))
    for side, cost in (("own", 0.31), ("peer", 0.47)):
        rows.append(dict(base, size=size, side=side, scope="threads", metric="cpu_per_gb", unit="s/GB", value=cost))
    rows.append(dict(base, size=size, side="own", metric="rtt", unit="us", value=90))
with open("r/net.csv", "w") as f:
    w = csv.DictWriter(f, params + names, restval="", lineterminator="\n")
    w.writeheader()
    w.writerows(rows)
open("r/plan.csv", "w").write(f"state,rows,order,case,repeat,bench,arguments,timeout_s\ndone,{len(rows):04},1,1,1,net,x,60\n")
END
    "$plumb" report r
    grep -q 'over eth7, 1 MiB' r/report.html
    grep -q "data-of='of limit'[^>]*>93.6 %</td>" r/report.html
    grep -q 'OPENBLAS_CORETYPE=Haswell &#60;b&#62;' r/report.html
    ls r/plots > plots
    grep -qx 'net-bandwidth.svg' plots
    grep -q '^net-cpu_per_gb.*svg' plots
    grep -qx 'net-rtt.svg' plots
}
