# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the tests in a browser.

missing() { # is a program not here that these tests need?
    local browser
    browser="$(command -v chromium || command -v chromium-browser || command -v google-chrome)"
    [ -z "$browser" ] || ! command -v gnuplot > /dev/null
}

setup() {
    if missing; then
        skip "chromium or gnuplot is not installed"
    fi
}
