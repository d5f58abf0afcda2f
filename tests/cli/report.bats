#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plumb report: what it writes, what it says, and with which exit code, on made-up run folders.

setup() {
    top="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
    plumb="${PLUMB_BIN:-$top/build/bin}/plumb"
    work="$(mktemp -d)"
    cd "$work" || return 1
}

teardown() {
    cd / || return 1
    rm -rf "$work"
}

make_run() { # make_run DIR [options of make-run.py]
    python3 "$top/tests/tools/make-run.py" "$@"
}

@test "a run becomes a page beside its rows, and the page's path ends stdout" {
    make_run r
    "$plumb" report r > out 2> err
    [ "$(tail -n 1 out)" = "r/report.html" ]
    grep -q '</html>' r/report.html
    [ -z "$(find r -name '.*' -type f)" ]
}

@test "a gnuplot beside the program draws, however the program is started and whatever PATH holds" {
    make_run r
    mkdir bundle
    cp "$plumb" bundle/
    # shellcheck disable=SC2016 # the fake expands it
    printf '#!/bin/sh\necho "$0" >> "%s/drew"\n' "$work" > bundle/gnuplot
    chmod +x bundle/gnuplot
    bundle/plumb report r || true # it draws nothing
    grep -qx "$(realpath "$work")/bundle/gnuplot" drew
    rm drew
    (cd bundle && PATH=.:/usr/bin:/bin plumb report ../r || true)
    grep -qx "$(realpath "$work")/bundle/gnuplot" drew
}

@test "every plot is on disk as SVG and PNG, and the script draws them again" {
    command -v gnuplot || skip "no gnuplot"
    make_run r
    "$plumb" report r
    figures="$(grep -c '<figure' r/report.html)"
    [ "$figures" -ge 6 ]
    [ "$(find r/plots -name '*.svg' | wc -l)" -eq "$figures" ]
    [ "$(find r/plots -name '*.png' | wc -l)" -eq "$figures" ]
    rm r/plots/*.svg r/plots/*.png
    (cd r/plots && gnuplot -d plots.gp)
    [ "$(find r/plots -name '*.svg' | wc -l)" -eq "$figures" ]
}

@test "the page asks for nothing from outside" {
    make_run r
    "$plumb" report r
    run grep -Eo "(src|href|xlink:href|action|data)=['\"]?[^'\"# >][^'\" >]*" r/report.html
    for link in "${lines[@]}"; do
        case "$link" in
        "href='plots/"* | "href='data:,") ;;
        *) echo "$link" && return 1 ;;
        esac
    done
    # the source of a price is text
    run grep -Ec "@import|url\(|https?://" <(sed -E 's/\((measured on another machine|one report)[^)]*\)//g' r/report.html)
    [ "$output" -eq 0 ]
}

@test "colour marks only what is low, worse, wrong or failed" {
    make_run r
    "$plumb" report r
    # The rules that take one of the colours that ask for an action: what they are for.
    sed -n '/<style>/,/<\/style>/p' r/report.html | tr '\n' ' ' | tr '}' '\n' |
        grep -E 'var\(--(warn|bad|d-low|d-bad)\)' | grep -oE '[^{};/]*\{[^{]*$' | sed 's/ *{.*//; s/^ *//' | sort > marked
    cat marked
    diff marked - <<'END'
.d-bad
.d-low
.d-plot .cell.d-bad
.d-plot .cell.d-low
.d-plot :is(.mark, .bar, .fill).d-bad
.d-plot :is(.mark, .bar, .fill).d-low
.d-plot text.d-bad
.d-plot text.d-low
.failed, .wrong
.findings .warn
.matrix .slow
END
    # And no other colour is named than those of the lists at the top, and of links.
    run grep -cE 'var\(--(good|open)\)' r/report.html
    [ "$output" -eq 0 ]
}

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
words = {re.sub(r"<sup>.*|<[^>]*>", "", cell).strip() for cell in cells}
assert words and terms
for word in words:
    assert any(word.startswith(term) for term in terms.values()), word
    assert any(f"href='#{id}'" in page for id, term in terms.items() if word.startswith(term)), word
END
    done
}

@test "the same run gives the same page" {
    make_run r
    "$plumb" report r --out a
    "$plumb" report r --out b
    cmp a/report.html b/report.html
}

@test "several runs need a folder, and stand side by side in it" {
    make_run a
    make_run b --seed 2 --factor 0.8
    run "$plumb" report a b
    [ "$status" -eq 2 ]
    [[ "$output" == *"--out DIR"* ]]
    "$plumb" report a b --out both
    grep -q "<th scope='col'>a</th><th scope='col'>b</th>" both/report.html
    [ ! -e a/report.html ]
}

@test "a folder's name may hold anything" {
    name="it's \"a\" \$(touch pwned) \`touch pwned\` ; folder"
    make_run r
    mv r "$name"
    "$plumb" report "$name"
    [ -s "$name/report.html" ]
    [ ! -e pwned ]
    if command -v gnuplot; then
        [ -s "$name/plots/memory-bandwidth.png" ]
    fi
}

@test "hostile texts stay texts" {
    make_run r --hostile
    "$plumb" report r
    [ ! -e pwned ]
    [ ! -e r/plots/pwned ]
    run grep -c "<img" r/report.html
    [ "$output" -eq 0 ]
}

@test "simulated rows are marked" {
    make_run r
    "$plumb" report r
    grep -q "Not measured here: 20 of 20 rows of <b>null</b>" r/report.html
    grep -q "<span class='badge'>simulated</span>" r/report.html
}

@test "no run, a wrong option, or a folder that is none is a usage error" {
    run "$plumb" report
    [ "$status" -eq 2 ]
    [[ "$output" == *"which run?"* ]]
    run "$plumb" report nowhere
    [ "$status" -eq 2 ]
    [[ "$output" == *'there is no run folder "nowhere"'* ]]
    mkdir empty
    run "$plumb" report empty
    [ "$status" -eq 2 ]
    [[ "$output" == *'"empty" is no run folder'* ]]
    run "$plumb" report --uot x empty
    [ "$status" -eq 2 ]
    [[ "$output" == *"out"* ]]
}

@test "a damaged file is named, with exit 5 and no page" {
    make_run r
    sed -i '5s/,[^,]*,/,/' r/memory.csv
    run "$plumb" report r
    [ "$status" -eq 5 ]
    [[ "$output" == *'"r/memory.csv" is damaged at line 5'* ]]
    [ ! -e r/report.html ]
    make_run r
    echo '{' > r/run.json
    run "$plumb" report r
    [ "$status" -eq 5 ]
    [[ "$output" == *'"r/run.json" is damaged'* ]]
    make_run r
    rm r/gemm.csv
    run "$plumb" report r
    [ "$status" -eq 5 ]
    [[ "$output" == *'"r/gemm.csv" is missing'* ]]
}

@test "a run that was cut off is reported as far as it went" {
    make_run r
    sed -i '2s/^done,0.../todo,0000/' r/plan.csv
    printf 'triad,f64,reg' >> r/memory.csv
    "$plumb" report r
    grep -q "incomplete</b>: .*, 260 of 261 .*launches.*<span class='d-more'>to go on: <code>plumb run --resume r</code>" r/report.html
}

@test "launches that failed are counted at the top" {
    make_run r
    sed -i -e '2s/^done/fail/' -e '3s/^done/late/' r/plan.csv
    "$plumb" report r
    grep -q "259 of 261 .*launches.*, 2 .*failed.* (1 over the .*time-out.*)</dd>" r/report.html
    make_run whole
    "$plumb" report whole
    grep -q ", 261 .*launches.*</dd>" whole/report.html
}

@test "a run that is simulated from end to end says so once" {
    make_run r
    sed -i 's/,measured,/,simulated,/' r/*.csv
    "$plumb" report r
    grep -Eq "Not measured here: all [0-9]+ rows of <b>r</b> are simulated" r/report.html
    [ "$(grep -c "Not measured here: " r/report.html)" -eq 1 ]
}

@test "rows that a loss of power took are missed, not made up" {
    make_run r
    sed -i '$d' r/gemm.csv
    "$plumb" report r > out
    grep -q "^Run .*launches, 1 failed" out
    grep -q "its rows are missing: gemm.csv has 0 of 1; plumb run --resume measures it again" r/report.html
    grep -q "1 row of r never reached the disk" r/report.html
}

@test "where it cannot write it says so and exits 4" {
    make_run r
    touch file
    run "$plumb" report r --out file
    [ "$status" -eq 4 ]
    [[ "$output" == *'cannot write "file"'* ]]
}

@test "without gnuplot the page is whole, and names no file that is not there" {
    make_run r
    PATH=/nowhere run "$plumb" report r
    [ "$status" -eq 0 ]
    [[ "$output" == *"gnuplot-nox"* ]]
    grep -q "gnuplot-nox" r/report.html
    [ "$(grep -c "<svg class='d-plot'" r/report.html)" -ge 6 ]
    [ "$(grep -c "href='plots/" r/report.html)" -eq 0 ]
    [ "$(ls r/plots)" = plots.gp ]
}

@test "the page of the suite quick is printed on at most five sheets" {
    browser="$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)"
    [ -n "$browser" ] || skip "no chromium"
    "$plumb" report "$top/results/reference/epyc-zen5-2vcpu" --out r
    timeout 600 "$browser" --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf=page.pdf \
        "file://$PWD/r/report.html" >/dev/null 2>&1 || skip "chromium does not print here"
    sheets="$(grep -aoE '/Type */Page([^s]|$)' page.pdf | wc -l)"
    echo "$sheets sheets"
    [ "$sheets" -ge 1 ] && [ "$sheets" -le 5 ]
}

@test "what only a pointer can do is not printed" {
    "$plumb" report "$top/results/reference/epyc-zen5-2vcpu" --out r
    grep -q "<span class='on-screen'>Point at a line" r/report.html
    sed -n '/^@media print/,/^}/p' r/report.html | sed -n '/\.on-screen/,/}/p' | grep -q 'display: none'
}

@test "--unfold: the folded sections are printed, but not the rows" {
    make_run r
    "$plumb" report r --out folded
    "$plumb" report r --out open --unfold
    [ "$(grep -c "<details[^>]* open>" folded/report.html)" -eq 0 ]
    for id in quality again reading; do
        grep -A1 "<details class='d-fold' open>" open/report.html | grep -q "<div id='$id'>"
    done
    grep -A1 "<details class='d-fold'>" open/report.html | grep -q "<div id='rows'>"
    grep -q "<details open><summary>The suite as it was run" open/report.html
}

@test "help names the usage and the exit codes" {
    run "$plumb" report --help
    [ "$status" -eq 0 ]
    [[ "$output" == *"usage: plumb report RUN..."* ]]
    [[ "$output" == *"5 a run folder is damaged"* ]]
}

@test "10,000 rows are reported" {
    make_run r --rows 10000
    "$plumb" report r > out 2> err
    cat err
    rows="$(cat r/gemm.csv r/memory.csv r/copy.csv | wc -l)"
    [ "$rows" -gt 10000 ]
    grep -q "<p>$((rows - 3)) rows." r/report.html
}

@test "the recorded reference machines still make a report: columns added since are empty" {
    for run in "$top"/results/reference/*/; do
        "$plumb" report "$run" --out page > out 2> err
        grep -q '</html>' page/report.html
    done
    # What was never without is still asked for.
    cp -r "$top"/results/reference/epyc-zen4-2vcpu r
    sed -i '1s/,metric,/,metrik,/' r/copy.csv
    run "$plumb" report r --out page2
    [ "$status" -eq 5 ]
    [[ "$output" == *'it has no column "metric"'* ]]
}

@test "a limit that schema 1 measured is shown, and judges nothing" {
    # Its limit of triad in L3 leaves the fill read out: the machine would be called low.
    "$plumb" report "$top/results/reference/xeon-amx-2vcpu" --out page > out 2> err
    grep -q 'triad in L3.* ref\. 56\.7 % *not judged' out
    [ "$(grep -cE '  (low|normal|undecided)( \(|$)' out)" -eq 0 ]
}

@test "--markdown: the same answers and table, and a file that cannot be written is an error" {
    "$plumb" report "$top/results/reference/epyc-zen5-2vcpu" --out page --markdown answer.md > out
    grep -q '^- \*\*Trust\*\*: \*\*D\*\*: smallest detectable loss 14 %' answer.md
    # shellcheck disable=SC2016 # these are backquotes of Markdown
    grep -q '`plumb run quick --repeat 10`' answer.md
    grep -q '^| Caches | triad in L1 | 1328 GB/s | +/- 1.7 % | 86.2 % | normal, two levels (2,3,4) |$' answer.md
    grep -q '^(4) alternates between 919.7 GB/s (25.5 %).*, in 3 of 5 launches (22.1 % to 34.4 % at the lower level)' answer.md
    grep -q 'limit: measured: best copy by one core .*, same size. It is not known which' answer.md
    grep -q '58.85 GB/s: the reference is raised to 64.02 GB/s' answer.md
    make_run a
    make_run b
    "$plumb" report a b --out page --markdown both.md
    grep -qx '### b' both.md
    grep -q '^| component | test | run | value ' both.md
    run "$plumb" report a --markdown none/here.md
    [ "$status" -eq 4 ]
    [[ "$output" == *'cannot write "none/here.md": No such file'* ]]
}

@test "a terminal has the answer again after the notes, and then the page" {
    TERM=dumb script -qec "stty cols 160; '$plumb' report '$top/results/reference/epyc-zen5-2vcpu' \
        --out page 2> chatter" /dev/null | tr -d '\r' | sed 's/\x1b[^m]*m//g' | tail -3 > end
    [[ $(sed -n 1p end) == 'Answer  nothing is proven slow: '*' judged tests are normal'* ]]
    [ "$(sed -n 3p end)" = page/report.html ]
    "$plumb" report "$top/results/reference/epyc-zen5-2vcpu" --out page 2> chatter > out
    [ "$(grep -c ^Answer out)" -eq 1 ]
}

@test "the axis of a plot with a limit holds the upper ends of the bars" { # shm: 53.61 GB/s +/- 34 %
    "$plumb" report "$top/results/reference/epyc-zen5-2vcpu" --out page
    reach=$(sed -n "/^set output 'copy-bandwidth.svg'/,/^plot/s/^set yrange \[0:\([0-9]*\).*/\1/p" \
        page/plots/plots.gp)
    [ "$reach" -gt 71 ]
}

@test "what goes to stderr stands after stdout in a log" {
    "$plumb" report "$top/results/reference/epyc-zen5-2vcpu" --out page > log 2>&1
    [[ $(tail -n 1 log) == 'plumb report: made in '* ]]
}

@test "README.md shows what its reference run prints" {
    run=$(sed -n 's/^<!-- \(results.*\): its summary -->$/\1/p' "$top/README.md")
    "$plumb" report "$top/$run" --out page > out
    sed -n '/^<!-- results/,/^<!-- end/p' "$top/README.md" | grep -v '^<!--\|^```\|^\.\.\.$' > shown
    sed -n '/^Answer/,/^Copies/p' out | sed '$d' > made
    [ "$(wc -l < made)" -ge 20 ]
    diff shown made
}

@test "net: what carried it, what it cost in CPU, and metrics of other units in plots of their own" {
    mkdir r
    cat > r/run.json <<'END'
{"schema": 1, "run": "r", "suite": "net", "config": "", "seed": 1, "state": "complete", "machine": {}, "limits": [], "library_settings": {"OPENBLAS_CORETYPE": "Haswell <b>"}}
END
    python3 - "$top" <<'END'
import csv, sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
import importlib
made = importlib.import_module("make-run")
names = [c for c in made.row_columns()]
params = ["transport", "pattern", "direction", "size", "streams", "side", "scope", "rail", "peer_host", "cpus", "detail", "peer_detail"]
base = dict(transport="tcp", pattern="bandwidth", direction="forward", streams="1", peer_host="b", cpus="0>1", detail="eth7 cubic, MSS 1448",
            peer_detail="eth7", status="ok", origin="measured", run="r", case="1", repeat="1", host="a", time_utc="2026-01-01T00:00:00Z", samples="30")
rows = []
for size, gbps in ((65536, 1.1), (1048576, 1.17)):
    rows.append(dict(base, size=size, metric="bandwidth", unit="GB/s", value=gbps, ci_low=gbps, ci_high=gbps, limit=1.25, limit_source="eth7", percent_of_limit=80 * gbps))
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
    grep -q 'over eth7, .*size 1M' r/report.html
    grep -q 'CPU 0.310 s/GB at this end, 0.470 at the peer' r/report.html
    grep -q "data-of='of limit'>93.6 %</td><td class='d-word' data-of='word'>undecided" r/report.html
    grep -q '<code>OPENBLAS_CORETYPE=Haswell &#60;b&#62;</code>' r/report.html
    ls r/plots > plots
    grep -qx 'net-bandwidth.svg' plots
    grep -q '^net-cpu_per_gb.*svg' plots
    grep -qx 'net-rtt.svg' plots
}
