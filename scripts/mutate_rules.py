#!/usr/bin/env python3
"""Turns the outcome of every rule round, one at a time, and shows whether the tests notice.

    scripts/mutate_rules.py BUILD [-o docs/mutation.md] [--rule ID] [--jobs N]

"suppress" loses what a rule finds: a test that expects the finding must fail. "fire" makes the rule find something
wherever it was evaluated and found nothing: a test that expects silence must fail. The seam is
src/checks/mutation.h; only the test programs define it. Exit status: 0 every turn was noticed, 1 not.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys

PROGRAMS = ("checks_tests", "lint_tests")
TEXTS = "--gtest_filter=-Pages.*:Language.*:Docs.*:Catalogue.*"  # these test texts, not conditions
# Measured, not judged from a machine, a text or a log: these have no condition in the program yet.
UNDECIDED = {"NCCL33": "the measured bandwidth decides it; always listed as not checked"}
NO_CONDITION = "no condition in this version: only a measurement decides it"


def catalogue(root):
    with open(os.path.join(root, "data", "rules.tsv"), encoding="utf-8") as f:
        return [line.split("\t")[0:3] for line in f.read().splitlines()[1:]]


def failures(build, mutation):
    """Names of the tests that fail; the exit status of a crash counts as one."""
    out = []
    for program in PROGRAMS:
        path = os.path.join(build, "tests", program)
        run = subprocess.run([path, "--gtest_brief=1", TEXTS], env=dict(os.environ, TOPOTUNE_MUTATE=mutation),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if run.returncode:
            names = [l.split("] ", 1)[1].split(" (")[0].split(",")[0] for l in run.stdout.splitlines()
                     if l.startswith("[  FAILED  ] ") and "." in l and "listed below" not in l]
            out += names or ["%s ended with %d" % (program, run.returncode)]
    return sorted(set(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("-o", "--output")
    parser.add_argument("--rule", action="append")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    before = set(failures(options.build, ""))  # they show nothing
    for name in sorted(before):
        print("fails without a mutation, not counted: " + name)
    rules = [r for r in catalogue(root) if not options.rule or r[0] in options.rule]
    jobs = [(r[0], kind) for r in rules for kind in ("suppress", "fire")]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda j: failures(options.build, "%s:%s" % (j[1], j[0])), jobs)
        results = {job: [name for name in names if name not in before] for job, names in zip(jobs, found)}
    lines = ["# Mutation of the rules", "",
             "Made by `scripts/mutate_rules.py BUILD -o docs/mutation.md`: each rule's outcome is turned round, and the",
             "tests must notice. The numbers are failing tests; one of them is named.", "",
             "| rule | input | finding lost | finding made up | noticed by |", "|---|---|---|---|---|"]
    missed = []
    for rule, severity, kind in rules:
        lost, made = results[(rule, "suppress")], results[(rule, "fire")]
        if not lost and not made and (kind == "measurement" or rule in UNDECIDED):
            lines.append("| %s | %s | – | – | %s |" % (rule, kind, UNDECIDED.get(rule, NO_CONDITION)))
            continue
        if not lost:
            missed.append("%s: a lost finding" % rule)
        if not made:
            missed.append("%s: a made-up finding" % rule)
        lines.append("| %s | %s | %d | %d | %s |" % (rule, kind, len(lost), len(made), (lost or made or ["nobody"])[0]))
    text = "\n".join(lines) + "\n"
    if options.output:
        with open(options.output, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        print(text)
    for line in missed:
        print("not noticed: " + line)
    print("%d rules, %d turns, %d not noticed" % (len(rules), len(jobs), len(missed)))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
