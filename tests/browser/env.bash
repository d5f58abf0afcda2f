# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the tests in a browser.

setup() {
    command -v chromium || command -v chromium-browser || command -v google-chrome || skip "chromium is not installed"
}
