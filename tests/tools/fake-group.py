#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A benchmark that needs a group, for tests of the harness: its ranks meet over TCP, and rank 0 then prints the rows of plumb-null.

Copied as plumb-gather into a folder of the test. What a rank is to do wrong stands in the file act-RANK beside it: `late` (never connects), `quiet` (rank 0
does not notice when it is gone), `talk` (says two lines on stderr). $FAKE_NULL is plumb-null, $FAKE_WAIT for how many
seconds rank 0 waits after the last one that came, or, for the first, after it listens ten times as many, $FAKE_SIZE how many ranks one under mpirun believes in.
"""
import ctypes
import json
import os
import select
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(sys.argv[0]))
NULL = os.environ.get("FAKE_NULL", "plumb-null")
OWN = {"np": "2", "ranks": None, "rank": None, "listen": None, "leader": None, "port": None, "secret-file": None}


def say(text, notice=""):
    """To people; with a fact for who launched this, as core/group/notice.h has them."""
    if os.environ.get("FAKE_NONSENSE"):
        text = "".join("z" if c.isalnum() else c for c in text)
    front = f"plumb-notice {notice} " if notice and "PLUMB_LAUNCHED" in os.environ else ""
    print(f"{front}plumb-gather:", text, file=sys.stderr, flush=True)


def parse(words):
    """Our own options, and the words that are plumb-null's."""
    own, rest, words = dict(OWN), [], list(words)
    while words:
        word = words.pop(0)
        name, _, value = word[2:].partition("=")
        if name == "who":
            own["who"] = True
        elif name in OWN:
            own[name] = value if "=" in word else words.pop(0)
        else:
            rest.append(word)
    return own, rest


def describe():
    said = json.loads(subprocess.run([NULL, "--describe"], check=True, capture_output=True, text=True).stdout)
    said.update(bench="gather", needs="group")
    of = {"owner": "own", "type": "integer", "min": 1, "max": 1024}
    said["options"][:0] = [{"name": "np", "default": ["2"], "help": "ranks on this machine", **of},
                           {"name": "ranks", "list": True, "default": ["1", "2"], "help": "communicators", **of}]
    json.dump(said, sys.stdout)


def act(rank):
    try:
        with open(f"{HERE}/act-{rank}", encoding="utf-8") as f:
            return f.read().strip()
    except FileNotFoundError:
        return ""


def me(rank):
    host = subprocess.run(["uname", "-n"], check=True, capture_output=True, text=True).stdout.strip()
    return {"rank": rank, "host": host, "pid": os.getpid()}


def receive(connection):
    text = b""
    while not text.endswith(b"\n"):
        more = connection.recv(4096)
        if not more:
            raise ConnectionError("gone")
        text += more
    return json.loads(text)


def gather(own, secret):
    """The others, by rank: their connections and what they said."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind((own["listen"], int(own["port"])))
        s.listen(64)
    except OSError:
        say(f"cannot listen on {own['listen']} port {own['port']}: the port is taken", "port-taken")
        sys.exit(2)
    say(f"listening on {own['listen']} port {own['port']}", "listening")
    others, wait = {}, float(os.environ.get("FAKE_WAIT", "200"))
    # On a busy machine ranks start one after another: who is late is told from the others' coming, not from the clock alone.
    while len(others) < int(own["np"]) - 1:
        s.settimeout(wait if others else 10 * wait)
        try:
            c, _ = s.accept()
        except socket.timeout:
            missing = [str(r) for r in range(1, int(own["np"])) if r not in others]
            say(f"ranks {', '.join(missing)} of {own['np']} have not come")
            sys.exit(5)
        c.settimeout(10 * wait)
        said = receive(c)
        c.settimeout(None)
        if said.pop("secret") != secret or said["rank"] in others:
            say("a stranger")
            continue
        others[said["rank"]] = (c, said)
    return others


def lead(own, rest, others):
    """Prints who is there, or runs plumb-null, and looks after the others meanwhile."""
    members = [me(0)] + [others[r][1] for r in sorted(others)]
    if "who" in own:
        print("rank,node,host,pid,cpus,build")
        for m in members:
            print(f"{m['rank']},0,{m['host']},{m['pid']},1,x")
        return 0
    say(f"{len(members)} ranks are here")
    # It dies with us: PR_SET_PDEATHSIG.
    with subprocess.Popen([NULL] + rest, close_fds=False, preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9)) as child:
        while child.poll() is None:
            ready, _, _ = select.select([c for c, _ in others.values()], [], [], 0.05)
            for rank, (c, m) in others.items():
                if c in ready and not c.recv(1) and act(rank) != "quiet":
                    child.kill()
                    say(f"rank {rank} ({m['host']}) is gone")
                    return 5
        return child.returncode


def join(own, secret):
    rank = int(own["rank"])
    what = act(rank)
    if what == "late":
        time.sleep(600)
    if what == "talk":
        say("one")
        say("two")
    c = socket.create_connection((own["leader"], int(own["port"])), timeout=10)
    c.settimeout(None)
    c.sendall((json.dumps(dict(me(rank), secret=secret)) + "\n").encode())
    c.recv(1)
    return 0


def main():
    if "--describe" in sys.argv:
        return describe() or 0
    if "--version" in sys.argv:
        text = subprocess.run([NULL, "--version"], check=True, capture_output=True, text=True).stdout
        print(text.replace("plumb-null", "plumb-gather"), end="")
        return 0
    own, rest = parse(sys.argv[1:])
    secret = sys.stdin.readline() if own["secret-file"] == "-" else ""
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        size, rank = int(os.environ["OMPI_COMM_WORLD_SIZE"]), int(os.environ["OMPI_COMM_WORLD_RANK"])
        size = int(os.environ.get("FAKE_SIZE", size))
        return lead(own, rest, {r: (None, dict(me(0), rank=r)) for r in range(1, size)} if "who" in own else {}) if rank == 0 else 0
    if own["leader"]:
        return join(own, secret)
    return lead(own, rest, gather(own, secret) if own["listen"] else {r: (None, me(r)) for r in range(1, int(own["np"]))} if "who" in own else {})


sys.exit(main())
