# SPDX-License-Identifier: Apache-2.0
"""What benchmarks say of their rows, for the run.json of a made-up run."""
import json
import os
import subprocess

BIN = os.environ.get("PLUMB_BIN") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin")


def told(names):
    """The member "benchmarks" of run.json; names that are no benchmark's have no entry."""
    programs = {name: os.path.join(BIN, "plumb-" + name) for name in names}
    return {name: json.loads(subprocess.run([program, "--describe"], check=True, capture_output=True).stdout)["rows"]
            for name, program in programs.items() if os.access(program, os.X_OK)}
