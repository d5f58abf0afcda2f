#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # of variables that the files of this name share
# plumb report: what it writes, what it says, and with which exit code, on made-up run folders.

load common
load made
load report

page() {
    "$plumb" report "$@"
}

@test "a run becomes a page beside its rows, and the page's path ends stdout" {
    "$plumb" report r > out 2> err
    [ "$(tail -n 1 out)" = "r/report.html" ]
    grep -q '</html>' r/report.html
    [ -z "$(find r -name '.*' -type f)" ]
}

@test "the page asks for nothing from outside, marks simulated rows, and is the same each time" {
    page r
    run grep -Eo "(src|href|xlink:href|action|data)=['\"]?[^'\"# >][^'\" >]*" r/report.html
    for link in "${lines[@]}"; do
        case "$link" in
        "href='data:,") ;;
        *) echo "$link" && return 1 ;;
        esac
    done
    # simulated rows are marked
    grep -q ": 20 of 20 .*<b>null</b>" r/report.html
    grep -q "<span class='badge'>simulated</span>" r/report.html
    page r --out again
    cmp r/report.html again/report.html
    # the source of a price is text
    ! grep -Eq "@import|url\(|https?://" <(sed -E 's/\([^()]*https?:[^)]*\)//g' r/report.html) || return 1
}

@test "several runs need a folder, and stand side by side in it" {
    make_run a
    make_run b --seed 2 --factor 0.8
    told 2 '--out DIR' page a b
    page a b --out both
    grep -qE '^  [^ ].* [0-9.]+ [A-Za-z/]+ +[0-9.]+ [A-Za-z/]+$' <("$plumb" report a b --out both) # a column each
    grep -A1 "<th[^>]*>a</th>" both/report.html | grep -q "<th[^>]*>b</th>"
    [ ! -e a/report.html ]
}

@test "a folder's name may hold anything" {
    name="it's \"a\" \$(touch pwned) \`touch pwned\` ; folder"
    mv r "$name"
    "$plumb" report "$name"
    [ -s "$name/report.html" ]
    [ ! -e pwned ]
    [ -s "$name/plots/memory-bandwidth.svg" ]
}

@test "hostile texts stay texts" {
    make_run r --hostile
    "$plumb" report r
    [ ! -e pwned ]
    [ ! -e r/plots/pwned ]
    ! grep -q "<img" r/report.html r/plots/*.svg || return 1
}

@test "no run, a wrong option, or a folder that is none is a usage error" {
    run -2 "$plumb" report
    [ -n "$output" ]
    told 2 '"nowhere"' "$plumb" report nowhere
    mkdir empty
    told 2 '"empty"' "$plumb" report empty
    told 2 out "$plumb" report --uot x empty
}

@test "a damaged file is named, with exit 5 and no page" {
    sed -i '5s/,[^,]*,/,/' r/memory.csv
    told 5 '"r/memory.csv"* 5' page r
    [ ! -e r/report.html ]
    make_run r
    echo '{' > r/run.json
    told 5 '"r/run.json"' page r
    make_run r
    rm r/gemm.csv
    told 5 '"r/gemm.csv"' page r
}

@test "a run that was cut off is reported as far as it went; rows that a loss of power took are missed, not made up" {
    sed -i '2s/^done,0.../todo,0000/' r/plan.csv
    printf 'triad,f64,reg' >> r/memory.csv
    page r
    grep -q " 260 of 261 .*plumb run --resume r" r/report.html
    make_run r
    sed -i '$d' r/gemm.csv
    page r > out
    grep -q "^Run .* 1 failed" out
    grep -q "gemm.csv .* 0 of 1" r/report.html
}

@test "where it cannot write it says so and exits 4" {
    touch file
    told 4 '"file/report.html"' "$plumb" report r --out file
}

@test "each chart of the page is a file that stands alone" {
    "$plumb" report r
    [ "$(grep -c '<figure' r/report.html)" -ge 6 ]
    [ "$(grep -o "<figure id='plot-[^']*" r/report.html | sed "s/.*plot-//" | sort)" = "$(cd r/plots && printf '%s\n' * | sed 's/.svg$//' | sort)" ]
    python3 - r/plots/*.svg <<'END'
import sys, xml.etree.ElementTree as ET
for path in sys.argv[1:]:
    svg = ET.parse(path).getroot()
    assert svg.tag == "{http://www.w3.org/2000/svg}svg" and svg.findtext("{*}style"), path
    shown = " ".join(t.text for t in svg.findall("{*}text"))
    title = svg.findtext("{*}svg/{*}title")
    assert shown.startswith(title[:20]), (path, shown)
    lines = len(svg.findall("{*}svg/{*}g[@class]/{*}path[@class='curve']"))
    assert lines < 2 or len(svg.findall("{*}g/{*}text")) == lines, path
END
}

@test "a run without a column that was always there is damaged" {
    cp -r "$top"/results/reference/epyc-zen5-2vcpu ref
    sed -i '1s/,metric,/,metrik,/' ref/copy.csv
    told 5 'column "metric"' page ref --out made
}

@test "--markdown: the same answers and table, and a file that cannot be written is an error" {
    page "$top/results/reference/epyc-zen5-2vcpu" --out page --markdown answer.md > out
    grep -q '^| Memory | triad L1 | 1.33 TB/s | 1.7 % | 86.2 % | ' answer.md
    make_run a
    make_run b
    page a b --out page --markdown both.md
    grep -qx '### b' both.md
    grep -q '^| component | case | run | median ' both.md
    told 4 '"none/here.md": No such file' page a --markdown none/here.md
}

@test "summary.csv and summary.json: the same line of each case, with value, interval, limit and word" {
    page "$top/results/reference/xeon-avx512-2vcpu" --out page
    python3 - "$top/results/reference/xeon-avx512-2vcpu" <<'END'
import csv, glob, json, statistics, math, sys
lines = list(csv.DictReader(open("page/summary.csv")))
assert [{k: "" if v is None else v for k, v in one.items()} for one in json.load(open("page/summary.json"))][0].keys() == lines[0].keys()
assert len(json.load(open("page/summary.json"))) == len(lines)
triad, = [x for x in lines if x["label"].startswith("bandwidth: ") and "triad" in x["label"] and ", L1," in x["label"]]
rows = [r for r in csv.DictReader(open(sys.argv[1] + "/memory.csv")) if r["op"] == "triad" and r["level"] == "L1" and r["metric"] == "bandwidth"]
mean = math.exp(statistics.fmean(math.log(float(r["value"])) for r in rows))
assert abs(float(triad["value"]) / mean - 1) < 1e-6, (triad, mean)
assert float(triad["ci_low"]) < mean < float(triad["ci_high"])
assert int(triad["repetitions"]) == len(rows)
assert abs(float(triad["percent_of_limit"]) - 100 * mean / float(triad["limit"])) < 1e-3
assert (triad["benchmark"], triad["component"], triad["machine"], triad["word"]) == ("memory", "Memory", "vm", "normal"), triad
assert {"low", "not measured"} <= {x["word"] for x in lines}
skipped = [x for x in lines if x["status"] == "skipped"]
assert skipped and all(x["value"] == "" for x in skipped)
END
}

@test "README.md shows what its reference run prints" {
    run=$(sed -n 's/^<!-- \(results.*\): its summary -->$/\1/p' "$top/README.md")
    LC_ALL=C page "$top/$run" --out page > out
    sed -n '/^<!-- results/,/^<!-- end/p' "$top/README.md" | grep -v '^<!--\|^```\|^\.\.\.$' > shown
    sed -n '/^Answer/,/^Copies/p' out | sed '$d' > made
    [ "$(wc -l < made)" -ge 20 ]
    diff shown made
}

# beside MODEL: the line on the nearest reference, of the processor with this model, in a run whose memory is at 0.7 of it
beside() {
    rm -rf mine && cp -r "$top/results/reference/xeon-avx512-2vcpu" mine
    sed -i "s/\"run\": \"quick-/\"run\": \"mine-/; s/\"model_number\": [0-9]*/\"model_number\": $1/; s/\"vendor\": \"[A-Z][a-z]*Intel\"/\"vendor\": \"$2\"/" mine/run.json
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        NR > 1 && $at["value"] { $at["value"] *= $at["metric"] == "bandwidth" ? 0.7 : 1 / 0.7 } 1' OFS=, \
        mine/memory.csv > memory.csv && mv memory.csv mine/
    "$plumb" report mine --out page --notes | grep -A2 '^Compared' | tr -s '\n ' ' '
}

@test "a run says how it stands beside the nearest reference" {
    [[ $(beside 207 GenuineIntel) == *"xeon-avx512-2vcpu"*"2026-11-25"*"(same processor)"*"Memory 0.70"*"other pairs 1.00"* ]]
    [[ $(beside 143 GenuineIntel) == *"xeon-avx512-2vcpu"*"(similar: AVX-512, 2 cores)"* ]]
    [ -z "$(beside 207 OtherMaker)" ]
}
