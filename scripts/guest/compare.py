#!/usr/bin/env python3
"""compare.py OUT: what topotune said in the guest against what scripts/guest/topology.args makes the guest be."""
import json
import os
import sys

OUT = sys.argv[1]
BAD = []

NIC = {0: "0000:23:00.0", 1: "0000:29:00.0", 2: "0000:63:00.0", 3: "0000:a1:00.0"}
GPU = {0: "0000:24:00.0", 1: "0000:27:00.0", 2: "0000:64:00.0", 3: "0000:a2:00.0"}
NODE_OF = {0: 0, 1: 0, 2: 1, 3: 1}
GPU_NODE = {0: 0, 1: 0, 2: 1, 3: 1}
# (nic, gpu) -> class: PIX one switch, PXB nested switches, PHB one host bridge, NODE two host bridges of a node.
PATHS = {(0, 0): "PIX", (0, 1): "PXB", (1, 0): "PHB", (1, 1): "PHB", (2, 2): "PIX", (2, 3): "NODE", (3, 2): "NODE",
         (3, 3): "PHB", (0, 2): "SYS", (1, 3): "SYS", (3, 0): "SYS", (2, 1): "SYS"}


def text(name):
    with open(os.path.join(OUT, name), encoding="utf-8", errors="replace") as f:
        return f.read()


def document(name):
    try:
        return json.loads(text(name + ".out"))
    except (OSError, ValueError) as e:
        BAD.append("%s: no JSON (%s): %s" % (name, e, text(name + ".err")[:300]))
        return {}


def same(what, expected, got):
    if expected != got:
        BAD.append("%s: expected %r, got %r" % (what, expected, got))


def check_topology(show):
    numa = {n["id"]: n for n in show.get("numa", [])}
    same("NUMA nodes", [0, 1], sorted(numa))
    for node, cpus, distances in ((0, "0-1", {"0": 10, "1": 21}), (1, "2-3", {"0": 21, "1": 10})):
        same("cpus of node %d" % node, cpus, numa.get(node, {}).get("cpus"))
        same("distances of node %d" % node, distances, numa.get(node, {}).get("distances"))
    gpus = {g["bdf"]: g for g in show.get("gpus", [])}
    nics = {n["name"]: n for n in show.get("nics", [])}
    same("GPUs", sorted(GPU.values()), sorted(gpus))
    same("RDMA NICs", ["mlx5_%d" % k for k in NIC], sorted(n for n in nics if n and n.startswith("mlx5_")))
    for k, bdf in NIC.items():
        nic = nics.get("mlx5_%d" % k, {})
        same("PCI address of mlx5_%d" % k, bdf, nic.get("bdf"))
        same("node of mlx5_%d" % k, NODE_OF[k], nic.get("numa"))
        same("link layer of mlx5_%d" % k, "Ethernet", nic.get("link_layer"))
    for k, bdf in GPU.items():
        same("node of the GPU at %s" % bdf, GPU_NODE[k], gpus.get(bdf, {}).get("numa"))
    paths = {frozenset((p["a"], p["b"])): p["type"] for p in show.get("paths", [])}
    for (n, g), expected in PATHS.items():
        pair = frozenset((nics.get("mlx5_%d" % n, {}).get("id"), gpus.get(GPU[g], {}).get("id")))
        same("path nic%d-gpu%d" % (n, g), expected, paths.get(pair))


def rules(findings):
    return {f["rule"] for f in findings.get("findings", [])}


def check_plan():
    """apply changed what it says, verify saw it, undo left the machine as it was; each rank was on its GPU's node."""
    plan = document("plan")
    same("bindings", ["0-1", "0-1", "2-3", "2-3"], [b["cpus"] for b in plan.get("bindings", [])])
    same("memory nodes", [0, 0, 1, 1], [b["memory_node"] for b in plan.get("bindings", [])])
    ids = {a["id"] for a in plan.get("actions", [])}
    for wanted in ("numa-balancing-off", "numa-balancing-file"):
        if wanted not in ids:
            BAD.append("plan: %s is missing" % wanted)
    for name in ("apply", "apply_own", "undo"):
        same("%s is complete" % name, True, document(name).get("complete"))
        same("status of %s" % name, "0", text(name + ".status").strip())
    outcomes = {a["id"]: a["outcome"] for a in document("apply").get("actions", []) + document("apply_own").get("actions", [])}
    for wanted in ("numa-balancing-off", "acs", "mtu", "irq"):
        same("outcome of %s" % wanted, "done", outcomes.get(wanted))
    same("verdict of verify", "ok", document("verify").get("verdict"))
    if text("state_applied.txt") == text("state_before.txt"):
        BAD.append("apply changed nothing")
    same("the machine after undo", text("state_before.txt"), text("state_after.txt"))
    masks = sorted(line.split(":")[1].strip() for line in text("run.out").splitlines() if ":" in line)
    same("CPUs of the ranks", ["0-1", "0-1", "2-3", "2-3"], masks)


def check_gdr():
    """Writes and reads of every pair arrived right; a software device has no expected value."""
    gdr = document("gdr")
    results = {(r["name"], r["params"].get("src"), r["params"].get("dst")): r for r in gdr.get("results", [])}
    for src, dst in (("mlx5_0:1", "mlx5_0:1"), ("mlx5_1:1", "mlx5_1:1"), ("mlx5_0:1", "mlx5_1:1")):
        for name in ("gdr.write", "gdr.read", "gdr.latency.write", "gdr.latency.read"):
            r = results.pop((name, src, dst), None)
            if r is None or r["status"] not in ("ok", "noisy") or not r["verified"] or not r["median"] > 0:
                BAD.append("gdr: %s %s -> %s: %r" % (name, src, dst, r))
            elif r["expected"] is not None or r["extra"]["registered_by"] != "address":
                BAD.append("gdr: %s %s -> %s: expected %r, registered by %r" % (name, src, dst, r["expected"], r["extra"]))
    same("other results of gdr", [], sorted(results))
    if text("gdr.status").strip() not in ("0", "1", "3"):  # 1, 3: some or all noisy, as emulated processors are
        BAD.append("gdr: status %s: %s" % (text("gdr.status"), text("gdr.err")[:300]))
    if "verified" not in text("gdr_self.out") or "gdr.read" not in text("gdr_self.out"):
        BAD.append("gdr as text: " + text("gdr_self.out")[:300])
    same("status of gdr without such a device", "3", text("gdr_none.status").strip())
    if "no active RDMA port among those named: mlx5_0:1 ACTIVE" not in text("gdr_none.out"):
        BAD.append("gdr without such a device: " + text("gdr_none.out")[:300])


def main():
    show = document("show")
    check_topology(show)
    replay = document("replay")
    for part in ("numa", "gpus", "nics", "switches", "paths", "islands", "pairs"):
        same("replayed %s" % part, show.get(part), replay.get(part))
    check = document("check")
    for rule in ("RDMA02", "RDMA03", "RDMA09", "NUMA08", "GPU01", "NVL01", "PCIE06"):
        if rule in rules(check):
            BAD.append("check: %s is not true of this guest" % rule)
    if "RDMA11" not in rules(check):
        BAD.append("check: RDMA11 (software RDMA device) is missing")
    for name in ("check", "check_replay", "check_acs"):
        same("status of %s" % name, {"ok": "0", "info": "0", "warn": "1", "error": "2", "unknown": "3"}.get(
            document(name).get("verdict")), text(name + ".status").strip())
    same("rules found in the replay", sorted(rules(check)), sorted(rules(document("check_replay"))))
    acs = open(os.path.join(OUT, "guest.capture.txt"), encoding="utf-8", errors="replace").read()
    if "/sys/class/infiniband" not in acs:
        BAD.append("capture: the RDMA class was not recorded")
    same("status of capture", "0", text("capture.status").strip())
    check_plan()
    check_gdr()
    for line in BAD:
        print("guest: " + line)
    print("guest: %d checks failed" % len(BAD) if BAD else "guest: live show, check, capture, plan, apply, undo, run and gdr agree with the machine")
    return 1 if BAD else 0


sys.exit(main())
