#!/usr/bin/env python3
"""One name, one type: two definitions of a type in one namespace break the one-definition rule, and no linker says so.

Anonymous namespaces are a file's own. Ends with 1 and the places when a name stands twice.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src"
OPEN = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{")
CLOSE = re.compile(r"^\}\s*// namespace")
TYPE = re.compile(r"^(?:template ?<.*> ?)?(?:struct|class|enum class|enum) (\w+)(?: final)?(?: ?:[^:;].*)? ?\{")

places = collections.defaultdict(list)
for path in sorted(ROOT.glob("*/*.h")) + sorted(ROOT.glob("*/*.cc")):
    spaces = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := OPEN.match(line):
            spaces.append(found.group(1))
        elif CLOSE.match(line) and spaces:
            spaces.pop()
        elif (found := TYPE.match(line)) and spaces and "" not in spaces:
            places["::".join(spaces + [found.group(1)])].append(f"src/{path.relative_to(ROOT)}:{number}")
twice = {name: where for name, where in places.items() if len(where) > 1}
for name, where in twice.items():
    print(f"{name} is defined in {' and in '.join(where)}")
if len(places) < 100:
    print(f"only {len(places)} types were found: the reading of the sources is broken")
    sys.exit(1)
sys.exit(1 if twice else 0)
