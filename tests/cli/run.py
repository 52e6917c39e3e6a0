#!/usr/bin/env python3
"""Runs the blocks of one command-line test file.

    NAME: what is shown
    RUN: topotune show "$DATA/x.txt" --json | head -c 100
    STATUS: 0                  (default 0)
    EXPECT: text               in stdout, in this order (repeatable)
    STDERR: text               in stderr (repeatable)
    NOT: text                  neither in stdout nor in stderr (repeatable)
    GOLDEN: path/in/tests      stdout equals this file (UPDATE_GOLDENS=1 rewrites it)
    SAME: command              its stdout equals RUN's

`topotune` is the binary under test, $DATA the tests folder, $TMP an empty folder of the block.
Exit status: 0 all blocks as expected, 1 not.
"""
import os
import subprocess
import sys
import tempfile


def blocks(path):
    block = None
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            key, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if key == "NAME":
                if block:
                    yield block
                block = {"NAME": value, "line": number, "STATUS": "0"}
            elif block is None or key not in ("RUN", "STATUS", "EXPECT", "STDERR", "NOT", "GOLDEN", "SAME"):
                sys.exit("%s:%d: not a line of a test block: %s" % (path, number, line))
            elif key in ("EXPECT", "STDERR", "NOT"):
                block.setdefault(key, []).append(value)
            else:
                block[key] = value
    if block:
        yield block


def run(command, env, cwd):
    return subprocess.run(["bash", "-c", command], env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)


def judge(block, data, binary):
    with tempfile.TemporaryDirectory() as tmp:
        bin_dir = os.path.join(tmp, ".bin")
        os.mkdir(bin_dir)
        os.symlink(binary, os.path.join(bin_dir, "topotune"))
        work = os.path.join(tmp, "work")
        os.mkdir(work)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "UCX_", "TOPOTUNE_"))}
        env.update(PATH=bin_dir + ":" + env["PATH"], DATA=data, TMP=work, NO_COLOR="1", LC_ALL="C.UTF-8")
        got = run(block["RUN"], env, work)
        out, err = got.stdout.decode("utf-8", "replace"), got.stderr.decode("utf-8", "replace")
        bad = []
        if str(got.returncode) not in block["STATUS"].split():
            bad.append("status %d, expected %s" % (got.returncode, block["STATUS"]))
        at = 0
        for text in block.get("EXPECT", []):
            found = out.find(text, at)
            if found < 0:
                bad.append("stdout lacks (in this order): %s" % text)
            else:
                at = found + len(text)
        bad += ["stderr lacks: %s" % t for t in block.get("STDERR", []) if t not in err]
        bad += ["must not be said: %s" % t for t in block.get("NOT", []) if t in out or t in err]
        if "SAME" in block:
            other = run(block["SAME"], env, work).stdout
            if other != got.stdout:
                bad.append("differs from: %s" % block["SAME"])
        if "GOLDEN" in block:
            golden = os.path.join(data, block["GOLDEN"])
            if os.environ.get("UPDATE_GOLDENS"):
                with open(golden, "wb") as f:
                    f.write(got.stdout)
            elif not os.path.exists(golden) or open(golden, "rb").read() != got.stdout:
                bad.append("differs from the golden file %s (UPDATE_GOLDENS=1 rewrites it)" % block["GOLDEN"])
        if bad:
            bad += ["stdout: " + out[:1500], "stderr: " + err[:800]]
        return bad


def main():
    path, data, binary = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
    failed = 0
    for block in blocks(path):
        bad = judge(block, data, binary)
        print("%s %s" % ("FAIL" if bad else "ok  ", block["NAME"]))
        if bad:
            failed += 1
            print("  %s:%d: %s" % (path, block["line"], block["RUN"]))
            print("\n".join("  " + b for b in bad))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
