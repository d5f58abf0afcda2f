#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/house: what it counts, on a small tree counted by hand; exported functions, held against the object files;
# docs/architecture.md, held against the sources.

setup()
{
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    tree=$BATS_TEST_TMPDIR/tree
    mkdir -p "$tree"/{benches,core/net,core/gpu,harness/run,tests/unit,docs}
    cd "$tree" || exit
}

# file PATH: of what stdin says.
file() { cat >"$1"; }

# small: one benchmark, two folders of core that include each other, a chain of three, and harness beside.
small()
{
    file benches/a.c <<<$'#include "core/core.h"\nstatic int inner(void)\n{\n    return core_used();\n}\n'
    file core/core.h <<<$'int core_used(void);\nint core_spoken(void);\n'
    file core/core.c <<<$'#include "core/net/net.h"\n\nint core_used(void)\n{\n    return net_both();\n}\n'
    file core/net/net.h <<<$'int net_both(void);\nint net_test(void);\n'
    file core/net/near.h <<<$'#define NEAR 1\n'
    file core/net/net.c <<'END'
#include "core/gpu/gpu.h"
#include "near.h"

/* core_used() is spoken of, and so it is not used. */
__attribute__((noinline)) int net_both(void)
{
    const char *text = "core_used() { core_lost(";
    return text[0] + '{' + gpu_lost();
}

int net_test(void)
{
    return NEAR;
}
END
    file core/gpu/gpu.h <<<$'#include "core/core.h"\nint gpu_lost(void);\nint gpu_alone(void);\n'
    file core/gpu/gpu.c <<<$'#include "gpu.h"\n\nint gpu_lost(void)\n{\n    return net_both();\n}\n\nint\ngpu_alone(void)\n{\n    return 0;\n}\n'
    file harness/run/run.c <<<$'#include "core/core.h"\n\nint main(void)\n{\n    return core_used() + net_both();\n}\n'
    file tests/unit/test_net.c <<<$'#include "core/net/net.h"\nint test(void)\n{\n    return net_test();\n}\n'
}

# house ARGUMENTS...
house() { run "$root/scripts/house" "$tree" "$@"; }

# are "KEY NUMBER"...: figures of --json.
are()
{
    local want
    house --json
    for want; do
        grep -qE "^    \"${want% *}\": ${want#* },?$" <<<"$output" || { echo "not $want:" && echo "$output" && false; }
    done
}

# is_narrow: no line of the output has more than 80 columns.
is_narrow()
{
    [ -z "$(awk 'length > 80' <<<"$output" | tee /dev/stderr)" ]
}

# listed FIGURE NAME...: these are its names, and no others.
listed()
{
    house --list "$1"
    [ "$status" -eq 0 ]
    shift
    [ "$output" = "$(printf '%s\n' "$@")" ] || { echo "$output" && false; }
}

@test "lines, files and headers" {
    small
    are "lines $(cat {benches,core,harness}/{,*/}*.[ch] | wc -l)" 'lines_benches 6' 'lines_tests 6' 'sources 5' 'headers 4'
    listed headers core/core.h core/gpu/gpu.h core/net/near.h core/net/net.h
    listed headers_few core/gpu/gpu.h core/net/near.h core/net/net.h
    listed headers_home core/net/near.h
    listed files_tests tests/unit/test_net.c
    echo '#include "near.h"' | tee core/net/one.c core/net/two.c >core/net/three.c
    listed headers_few core/gpu/gpu.h core/net/net.h
    echo '#include "../net/near.h"' >core/gpu/away.c
    listed headers_home
}

@test "exported functions, and who uses them: not static ones, no main, no words of comments and texts" {
    small
    listed exported 'core_used core/core.c' 'gpu_alone core/gpu/gpu.c' 'gpu_lost core/gpu/gpu.c' \
        'net_both core/net/net.c' 'net_test core/net/net.c'
    listed exported_one_user 'gpu_lost core/gpu/gpu.c'
    listed exported_tests 'net_test core/net/net.c'
    listed exported_unused 'gpu_alone core/gpu/gpu.c'
}

@test "a function that two files define, one of which is built, is one, and neither uses it" {
    small
    cp core/gpu/gpu.c core/gpu/none.c
    are 'exported 5'
    listed exported_one_user 'gpu_lost core/gpu/gpu.c core/gpu/none.c'
}

@test "circles: a pair of folders, a chain of three, and files" {
    small
    are 'folders 5' 'folder_pairs 0' 'files_in_circles 0'
    listed folders_in_circles 'core of core core/gpu core/net' 'core/gpu of core core/gpu core/net' \
        'core/net of core core/gpu core/net'
    echo '#include "core/gpu/gpu.h"' >>core/core.h
    listed folder_pairs 'core <-> core/gpu'
    listed files_in_circles core/core.h core/gpu/gpu.h
    sed -i '/include/d' core/*/*.[ch]
    are 'folders_in_circles 0'
}

@test "functions over 80 lines, lines over 100 columns, repeated lines" {
    small
    { echo 'static void long_one(void)' && echo '{' && seq -f '    int a%g;' 79 && echo '}'; } >core/long.c
    listed functions_long 'long_one core/long.c 81'
    sed -i 3d core/long.c
    are 'functions_long 0' 'lines_repeated 0'
    { echo && sed -n 5,12p core/long.c; } >core/net/again.c
    are 'lines_repeated 16'
    sed -i 2d core/net/again.c
    are 'lines_repeated 0'
    printf '// %97s\n// %98s\n' . . >>core/net/again.c
    listed long_lines_c core/net/again.c:10
    printf '%0101d\n' 1 >docs/page.md
    listed long_lines_docs docs/page.md:1
}

@test "--against: a revision beside what is there now; files that git ignores do not count" {
    small
    git init -q . && echo ignored.c >.gitignore && git add . &&
        git -c user.name=a -c user.email=a@b commit -qm one
    cp core/core.c core/ignored.c
    file core/new.c <<<$'int core_new(void)\n{\n    return 0;\n}\n'
    house --against HEAD
    [ "$status" -eq 0 ]
    grep -qE '^\.c files +5 +6 +\+1$' <<<"$output"
    grep -qE '^exported functions +5 +6 +\+1$' <<<"$output"
    grep -qE '^headers +4 +4 +\+0$' <<<"$output"
    is_narrow
    house --against HEAD --json
    [ "$(grep -c '"exported": [56]' <<<"$output")" -eq 2 ]
    house --against nowhere
    [ "$status" -eq 1 ]
    [[ $output == "house: no files of 'nowhere': "* ]]
}

@test "--short is a few lines of 80 columns, with the times that were given" {
    small
    house --short --make-seconds 61.6 --test-seconds 1500
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 8 ]
    is_narrow
    grep -qE ' make, seconds +62$' <<<"$output"
    grep -qE ' make test, seconds +1,500$' <<<"$output"
}

@test "an empty tree, a folder that is none, a figure that has no names, --help" {
    rm -r "${tree:?}"/*
    house
    [ "$status" -eq 0 ]
    grep -qE '^exported functions +0$' <<<"$output"
    run "$root/scripts/house" "$tree/none"
    [ "$status" -eq 2 ]
    house --list lines
    [ "$status" -eq 1 ]
    house --help
    [ "$status" -eq 0 ]
    is_narrow
}

@test "the picture: a box of those in a circle, and no arrow that a longer way makes, too" {
    small
    house --picture
    [ "$(grep -c subgraph <<<"$output")" -eq 1 ]
    [ "$(grep -- '-->' <<<"$output" | sort)" = $'    benches --> core_circle\n    harness_run --> core_circle' ]
    echo '#include "harness/run/run.h"' >>benches/a.c
    : >harness/run/run.h
    house --picture
    [ "$(grep -- '-->' <<<"$output" | sort)" = $'    benches --> harness_run\n    harness_run --> core_circle' ]
    printf '%s\n' before '```mermaid' old '```' after >docs/page.md
    house --draw docs/page.md
    [ "$status" -eq 0 ]
    [ "$(<docs/page.md)" = "before"$'\n'"$("$root/scripts/house" "$tree" --picture)"$'\n'"after" ]
}

@test "exported functions are those that the object files export" {
    cd "$root" || exit
    [ -e build/obj/core/sampler.o ] || skip "nothing is built: make"
    scripts/house --list exported | while read -r name files; do
        for one in $files; do
            [ ! -e "build/obj/${one%.c}.o" ] || echo "${one%.c}.o $name"
        done
    done | LC_ALL=C sort >"$BATS_TEST_TMPDIR/ours"
    scripts/house --list sources | sed -n 's|\(.*\)\.c$|build/obj/\1.o|p' | while read -r object; do
        [ ! -e "$object" ] || echo "$object"
    done | xargs nm -gA --defined-only | sed 's|^build/obj/||; s/:/ /' |
        awk 'NF == 4 && $3 == "T" && $4 != "main" { print $1, $4 }' | LC_ALL=C sort >"$BATS_TEST_TMPDIR/theirs"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/theirs")" -gt 500 ]
    diff "$BATS_TEST_TMPDIR/theirs" "$BATS_TEST_TMPDIR/ours"
}

@test "docs/architecture.md: its picture is that of the sources, and what it names is there" {
    cd "$root" || exit
    # shellcheck disable=SC2016 # the page's own marks
    scripts/house --picture | diff <(sed -n '/^```mermaid$/,/^```$/p' docs/architecture.md) - ||
        { echo "it is old: scripts/house --draw docs/architecture.md" && false; }
    # shellcheck disable=SC2016
    grep -oE '`(benches|core|harness|configs|tests|scripts)/[a-z0-9_/.]*`' docs/architecture.md | tr -d '`' | sort -u >"$BATS_TEST_TMPDIR/named"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/named")" -gt 30 ]
    while read -r path; do
        [ -e "$path" ] || { echo "no $path" && false; }
    done <"$BATS_TEST_TMPDIR/named"
}
