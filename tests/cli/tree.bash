# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests that build something more than the tree has.

# copy_of_tree TOP TREE: a copy of the tree, with what was compiled of it.
copy_of_tree() {
    mkdir -p "$2/tests" "$2/build" "$2/benches"
    cp -a "$1/Makefile" "$1/core" "$1/harness" "$1/scripts" "$2/"
    cp -a "$1/tests/sim" "$2/tests/"
    cp -a "$1/build/obj" "$1"/build/config* "$1/build/flags" "$1/build/gen" "$2/build/"
}

# make_in TREE TOP TARGETS...: with the compiler of the tree at TOP.
make_in() {
    make -s -C "$1" CC="$(sed 's/ -std=.*//' "$2/build/flags")" "${@:3}"
}
