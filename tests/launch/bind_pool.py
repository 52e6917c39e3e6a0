#!/usr/bin/env python3
"""topotune_bind.py with pools that fork and spawn, as data loaders do. Arguments: the folder of topotune_bind.py."""
import json
import multiprocessing
import os
import sys
import tempfile

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else os.environ["TOPOTUNE_BIND"])
os.environ["TOPOTUNE_BIND"] = sys.path[0]
import topotune_bind  # noqa: E402


def cpus(_):
    return sorted(os.sched_getaffinity(0))


def check(what, good):
    print("%s %s" % ("ok  " if good else "FAIL", what))
    if not good:
        sys.exit(1)


def raises(kind, call):
    try:
        call()
    except kind:
        return True
    return False


def main():
    all_cpus = sorted(os.sched_getaffinity(0))
    last = all_cpus[-1]
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "plan.json")
        with open(plan, "w", encoding="utf-8") as f:
            json.dump({"schema": "topotune.plan/1", "bindings": [
                {"cpus": ",".join(map(str, all_cpus)), "memory_node": None}, {"cpus": str(last), "memory_node": 0}]}, f)
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            with context.Pool(3, initializer=topotune_bind.bind, initargs=(1, plan)) as pool:
                seen = pool.map(cpus, range(12))
            check("%s: every worker is on the CPUs of its GPU" % method, all(s == [last] for s in seen))
        check("the parent stays where it was", sorted(os.sched_getaffinity(0)) == all_cpus)
        context = multiprocessing.get_context("fork")
        init = topotune_bind.worker_init(1, plan)
        with context.Pool(2, initializer=init, initargs=(0,)) as pool:
            check("worker_init_fn binds as well", all(s == [last] for s in pool.map(cpus, range(4))))
        check("a rank without a GPU", raises(IndexError, lambda: topotune_bind.bind(2, plan)))
        with open(plan, "w", encoding="utf-8") as f:
            f.write('{"schema": "other"}')
        check("another document", raises(ValueError, lambda: topotune_bind.bind(0, plan)))
    check("lists", topotune_bind.cpu_list("0-2,8\n") == {0, 1, 2, 8})
    check("reversed lists", raises(ValueError, lambda: topotune_bind.cpu_list("3-1")))


if __name__ == "__main__":
    main()
