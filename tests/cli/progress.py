#!/usr/bin/env python3
"""The bar of `bench` on a real terminal: a pseudo terminal of 100 columns.

    progress.py TOPOTUNE [STEP WORDS...]

STEP is in the name of a step that the bar shows, WORDS are the command line; without them `bench numa`.
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios


def run(tool, *words, terminal):
    """(status, stdout, what stderr got); stderr is a pseudo terminal, or a pipe."""
    if not terminal:
        done = subprocess.run([tool, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    child = subprocess.Popen([tool, *words], stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        said += piece
    out = child.stdout.read()
    return child.wait(), out, said.decode()


def check(good, text):
    if not good:
        sys.exit("FAILED: " + text)
    print("ok:", text)


def main():
    tool = os.path.abspath(sys.argv[1])
    named, *words = sys.argv[2:] or ["numa.latency", "bench", "numa", "--time", "0.05"]
    status, out, said = run(tool, *words, terminal=True)
    check(status in (0, 1, 3), "%s ends with %d" % (" ".join(words), status))
    lines = said.split("\r")[1:]
    bars = [re.fullmatch(r"\x1b\[K\[(#*)(\.*)\] +(\d+) % +[0-9.]+ s  (.*)", line) for line in lines]
    bars = [bar for bar in bars if bar]
    check(len(bars) >= 4, "%d bars were drawn" % len(bars))
    percents = [int(bar[3]) for bar in bars]
    check(percents == sorted(percents), "the percentage never falls: %s" % percents)
    check(percents[-1] == 100 and any(0 < p < 100 for p in percents), "it ends with 100 after steps between")
    check(all(len(bar[1]) + len(bar[2]) == 24 and len(bar[1]) == 24 * int(bar[3]) // 100 for bar in bars), "the bar is as long as it says")
    check(any(named in bar[4] for bar in bars), "the step is named")
    check(all(len(line.replace("\x1b[K", "")) < 100 for line in lines), "no line is longer than the terminal")
    check(said.endswith("\r\x1b[K"), "the bar is wiped at the end")
    check("\r" not in out and "\x1b" not in out and named.split(".")[-1] in out, "the table is clean")
    status, out, said = run(tool, *words, terminal=False)
    check("\x1b" not in said and "%" not in said, "no bar where stderr is no terminal: " + said)
    status, out, said = run(tool, *words, "-q", terminal=True)
    check(said == "", "no bar with -q")


main()
