#!/usr/bin/env python3
"""apply, verify and undo on real interfaces: a veth pair in a network namespace of its own.

    veth.py TOPOTUNE

The MTU is changed through the kernel and read back from the kernel (ip link); a refused value, a plan that interrupts
without --disruptive, and kills at random moments leave it as it was. Status 77 where namespaces are not permitted.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def enter():
    """Into new network and mount namespaces, with their own /sys and /var/lib."""
    if os.environ.get("TOPOTUNE_IN_NAMESPACE") == "1":
        return
    if not shutil.which("unshare") or not shutil.which("ip"):
        skip("unshare or ip is not installed")
    probe = "mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /var/lib && ip link add p0 type veth peer name p1"
    if subprocess.run(["unshare", "-n", "-m", "sh", "-c", probe], capture_output=True).returncode != 0:
        skip("network namespaces are not permitted")
    os.environ["TOPOTUNE_IN_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", "-n", "-m", sys.executable, os.path.abspath(__file__)] + sys.argv[1:])


def check(good, text):
    if not good:
        sys.exit("FAILED: " + text)
    print("ok:", text)


def mtu(name):
    out = subprocess.run(["ip", "-j", "link", "show", name], capture_output=True, check=True).stdout
    return json.loads(out)[0]["mtu"]


def action(name, value, observed):
    path = "/sys/class/net/%s/mtu" % name
    return {"id": "mtu-" + name, "kind": "sysfs", "target": path, "value": str(value), "observed": str(observed),
            "reason": "r", "rule": None, "precondition": "%s reads %d" % (path, observed),
            "read_back": "%s reads %d" % (path, value), "undo": "write back", "scope": "boot", "risk": "disruptive",
            "basis": "documented", "automatic": True}


def write_plan(actions):
    with open("plan.json", "w", encoding="utf-8") as f:
        json.dump({"schema": "topotune.plan/1", "source": {"kind": "live", "name": "live"}, "actions": actions,
                   "bindings": []}, f)


def main():
    enter()
    tool = os.path.abspath(sys.argv[1])
    subprocess.run("mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /var/lib && "
                   "ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up", shell=True, check=True)
    os.chdir(tempfile.mkdtemp())

    def run(*words):
        return subprocess.run([tool, *words], capture_output=True, text=True)

    check(mtu("v0") == 1500 and mtu("v1") == 1500, "a veth pair starts at 1500")
    write_plan([action("v0", 9000, 1500), action("v1", 9000, 1500)])
    done = run("apply", "plan.json", "--yes")
    check(mtu("v0") == 1500 and mtu("v1") == 1500, "without --disruptive nothing is interrupted (status %d)" % done.returncode)
    check(run("verify", "plan.json").returncode == 2, "verify says that the plan does not hold")
    done = run("apply", "plan.json", "--yes", "--disruptive")
    check(done.returncode == 0 and mtu("v0") == 9000 and mtu("v1") == 9000, "apply changes both ends: " + done.stderr)
    check(run("verify", "plan.json").returncode == 0, "verify says that it holds")
    done = run("undo")
    check(done.returncode == 0 and mtu("v0") == 1500 and mtu("v1") == 1500, "undo restores both: " + done.stderr)

    # The kernel refuses 100000: the first change is made, the second fails, undo takes the first back.
    write_plan([action("v0", 9000, 1500), action("v1", 100000, 1500)])
    done = run("apply", "plan.json", "--yes", "--disruptive")
    check(done.returncode == 3 and "mtu-v1" in done.stdout + done.stderr, "a value that the kernel refuses: " + done.stderr)
    check(run("undo").returncode == 0 and mtu("v0") == 1500 and mtu("v1") == 1500, "undo takes back what was done")

    # Another hand has changed it since: undo leaves it, --force restores it.
    write_plan([action("v0", 9000, 1500)])
    run("apply", "plan.json", "--yes", "--disruptive")
    subprocess.run(["ip", "link", "set", "v0", "mtu", "4000"], check=True)
    check(run("undo").returncode == 3 and mtu("v0") == 4000, "a value of another hand is left")
    check(run("undo", "--force").returncode == 0 and mtu("v0") == 1500, "--force restores it")

    # Killed at any moment: undo finds the way back.
    rnd, changed = random.Random(1), 0
    write_plan([action("v0", 9000, 1500), action("v1", 9000, 1500)])
    for _ in range(40):
        child = subprocess.Popen([tool, "apply", "plan.json", "--yes", "--disruptive"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        time.sleep(rnd.uniform(0.001, 0.015))
        child.kill()
        child.wait()
        changed += mtu("v0") == 9000
        undone = run("undo")
        if undone.returncode != 0 or mtu("v0") != 1500 or mtu("v1") != 1500:
            sys.exit("FAILED: after a kill: %d %s%s" % (undone.returncode, undone.stdout, undone.stderr))
    check(True, "40 kills, %d of them after the first change" % changed)


main()
