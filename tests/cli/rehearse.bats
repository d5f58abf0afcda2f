#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tier: long
# scripts/rehearse: a month of nights that are made up, and what plumb check says of them.

bats_require_minimum_version 1.5.0

@test "thirty nights with reboots, a kernel, busy weekends and losses: no false alarm, and a loss of 10 % is named" {
    run -0 "$BATS_TEST_DIRNAME/../../scripts/rehearse" --nights 30
    [[ "${lines[-1]}" == "false alarms: 0 in 30 nights; "*" 10 % "*" 1"* ]]
}
