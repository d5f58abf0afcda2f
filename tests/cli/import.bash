# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # tests read what setup sets
# What the files of tests of this name share: import.bats, import-long.bats.

setup()
{
    cd "$BATS_TEST_DIRNAME/../.." || exit
    PATH=${PLUMB_BIN:-$PWD/build/bin}:$PATH
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
            echo "tcp,bandwidth,forward,$size,1,1,,average_bandwidth,Gb/s,$value,$mean,measured,ok,1,$i,,,,10,,time,,here,here,"
        done
    } >here/net.csv
    cat >here/run.json <<'END'
{"schema": 3, "run": "here", "suite": "s", "state": "complete", "started_utc": "2026-01-01T00:00:00Z"}
END
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
