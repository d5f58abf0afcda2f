#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plumb-mtu: a benchmark for tests: plumb-net after the MTU of a pair of interfaces was set.

$PLUMB_NET is plumb-net, $PLUMB_MTU_SET a command that takes the MTU and sets it at both ends.
"""
import json
import os
import subprocess
import sys

net, words = os.environ["PLUMB_NET"], sys.argv[1:]
if "--describe" in words:
    told = json.loads(subprocess.run([net, "--describe"], check=True, capture_output=True, text=True).stdout)
    told["bench"] = "mtu"
    told["rows"]["experiments"] = [{
        "check": "planted-mtu", "cause": "an MTU of 1400", "lost": "TCP bandwidth", "with": "--set-mtu 1400",
        "both": "--transport tcp --pattern bandwidth --size 1M --no-cpu", "without": "--set-mtu 9000",
        "metric": "bandwidth", "pipe": "Network"}]
    json.dump(told, sys.stdout)
    sys.exit()
at = words.index("--set-mtu")
subprocess.run([os.environ["PLUMB_MTU_SET"], words[at + 1]], check=True)
os.execv(net, [net] + words[:at] + words[at + 2:])
