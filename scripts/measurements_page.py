#!/usr/bin/env python3
"""Writes docs/measurements.md from the raw results under measurements/.

Usage: measurements_page.py [FOLDER...]   (default: every folder of measurements/ that has a bench.txt)
A folder holds what scripts/device/bench_two_gpus.sh wrote: bench.txt (each command, its output, its status and wall
time), JSON results (*.json, *.json.gz), tune.csv and versions.txt. --check: fails when the page is not up to date.
"""
import gzip
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "measurements.md"

SMALLEST = " -b 1 -i 1"  # ends the peer's command that shows what its start costs

# Result of topotune -> the peer's test (nvbandwidth) and whether its SUM is meant.
PEER = [
    ("p2p.write.ce", "device_to_device_memcpy_write_ce", False),
    ("p2p.read.ce", "device_to_device_memcpy_read_ce", False),
    ("p2p.write.sm", "device_to_device_memcpy_write_sm", False),
    ("p2p.read.sm", "device_to_device_memcpy_read_sm", False),
    ("p2p.both.write.ce", "device_to_device_bidirectional_memcpy_write_ce", False),
    ("p2p.both.read.ce", "device_to_device_bidirectional_memcpy_read_ce", False),
    ("p2p.both.write.sm", "device_to_device_bidirectional_memcpy_write_sm", False),
    ("p2p.both.read.sm", "device_to_device_bidirectional_memcpy_read_sm", False),
    ("host.h2d", "host_to_device_memcpy_ce", False),
    ("host.d2h", "device_to_host_memcpy_ce", False),
    ("host.both.h2d", "host_to_device_bidirectional_memcpy_ce", False),
    ("host.both.d2h", "device_to_host_bidirectional_memcpy_ce", False),
    ("host.all.h2d", "host_to_all_memcpy_ce", True),
    ("host.all.d2h", "all_to_host_memcpy_ce", True),
    ("p2p.latency.load", "device_to_device_latency_sm", False),
]


def blocks(text):
    """[(command, output, status, seconds)] of bench.txt."""
    out, command, lines = [], None, []
    for line in text.splitlines():
        end = re.match(r"-- status (\d+), ([\d.]+) s", line)
        if line.startswith("$ "):
            command, lines = line[2:], []
        elif end and command is not None:
            out.append((command, "\n".join(lines), int(end[1]), float(end[2])))
            command = None
        else:
            lines.append(line)
    return out


def peer_cells(runs):
    """Test -> (mean of its cells, sum), of nvbandwidth's matrices; totals of both directions left out."""
    cells = {}
    for command, output, _, _ in runs:
        if "nvbandwidth" not in command or command.endswith(SMALLEST):
            continue
        test, total = None, False
        for line in output.splitlines():
            if m := re.match(r"Running (\w+)\.", line):
                test, total = m[1], False
            elif "(row)" in line:
                total = "Total" in line
            elif test and not total and (m := re.match(r"\s*\d+((?:\s+(?:N/A|[\d.]+))+)\s*$", line)):
                if "." in m[1]:
                    cells.setdefault(test, []).extend(float(v) for v in m[1].split() if v != "N/A")
    return {test: (statistics.mean(v), sum(v)) for test, v in cells.items()}


def load_json(folder):
    runs = []
    for path in sorted(folder.glob("*.json*")):
        opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
        with opened as file:
            try:
                document = json.load(file)
            except ValueError:
                continue
        if isinstance(document, dict) and str(document.get("schema", "")).startswith("topotune.measurement/"):
            runs.append((path.name, document))
    return runs


def value(median, unit):
    if median is None:
        return "-"
    if unit == "gbytes_per_s":
        return f"{median:.1f} GB/s" if median >= 10 else f"{median:.3g} GB/s"
    if unit != "seconds":
        return f"{median:.4g}"
    return f"{median * 1e9:.1f} ns" if median < 1e-6 else f"{median * 1e6:.3f} us"


def half(result):
    ci = result.get("ci95")
    return (ci[1] - ci[0]) / 2 / result["median"] * 100 if ci and result.get("median") else None


def by_name(document):
    out = {}
    for result in document["results"]:
        if result.get("median") is not None:
            out.setdefault(result["name"], []).append(result)
    return out


def peer_table(document, peers):
    rows = ["| result | topotune | 95 % interval, widest | nvbandwidth | difference | expected | status |", "|---|---|---|---|---|---|---|"]
    found = by_name(document)
    for name, test, total in PEER:
        ours = found.get(name)
        if not ours:
            continue
        unit = ours[0]["unit"]
        mine = statistics.mean(r["median"] for r in ours)
        widest = max((half(r) or 0) for r in ours)
        other, diff = "-", "-"
        if test in peers:
            theirs = peers[test][1 if total else 0] * (1e-9 if unit == "seconds" else 1)
            other, diff = value(theirs, unit), f"{(mine / theirs - 1) * 100:+.1f} %"
        e = ours[0].get("expected")
        expected = f"{e['low']:.1f}-{e['high']:.1f}" if e else "-"
        status = ", ".join(sorted({r["status"] for r in ours}))
        rows.append(f"| `{name}` | {value(mine, unit)} | +- {widest:.2f} % | {other} | {diff} | {expected} | {status} |")
    return rows


def ping_pongs(runs):
    """Every ping-pong of every JSON document and of every text block."""
    out = {}
    for name, document in runs:
        for r in document["results"]:
            if r["name"].startswith("p2p.pingpong") and r.get("median"):
                key = f"{r['name']} {r['params'].get('bytes', 0)} B"
                out.setdefault(key, []).append((r["median"] * 1e6, r["p99"] * 1e6))
    return out


def text_values(runs, name, unit):
    """Values of one result in the text blocks of topotune, in order."""
    out = []
    pattern = re.compile(rf"^  {re.escape(name)}\s.*?\s([\d.]+) {unit} ", re.M)
    for command, output, _, _ in runs:
        if "topotune bench" in command:
            out.extend(float(v) for v in pattern.findall(output))
    return out


def sm_table(document):
    found = by_name(document)
    names = [n for n in ("p2p.sms.read.tma", "p2p.sms.write.tma", "p2p.sms.read.16-byte", "p2p.sms.write.16-byte") if n in found]
    if not names:
        return []
    counts = sorted({r["params"]["sms"] for n in names for r in found[n]})
    rows = ["| multiprocessors | " + " | ".join(f"`{n}`" for n in names) + " |", "|---|" + "---|" * len(names)]
    for count in counts:
        cells = []
        for n in names:
            cell = [r["median"] for r in found[n] if r["params"]["sms"] == count]
            cells.append(f"{cell[0]:.1f}" if cell else "-")
        rows.append(f"| {count} | " + " | ".join(cells) + " |")
    return rows


def models(document):
    rows = []
    for m in document.get("models", []):
        pieces = "; ".join(
            f"{s['from_bytes']:.0f}..{s['to_bytes']:.0f} B: {s['alpha_seconds'] * 1e6:.2f} us"
            + (f" + bytes / {s['gbytes_per_s']:.1f} GB/s" if s["gbytes_per_s"] else "")
            for s in m["segments"])
        rows.append(f"- `{m['name']}`: mean error {m['mean_error'] * 100:.1f} %; {pieces}")
    return rows


def split_of(output):
    """Part -> seconds, of the last line of `bench`: "ok: 8 results in 1.2 s (driver start 0.700, ...)"."""
    line = re.search(r" results in [\d.]+ s \((.*)\)$", output, re.M)
    return {m[1]: float(m[2]) for m in re.finditer(r"([a-z ]+?) ([\d.]+)(?:, |$)", line[1])} if line else {}


def times(runs):
    ours = [(o, s) for c, o, status, s in runs if "topotune bench p2p 0 1 --only matrix" in c and "--json" not in c and status == 0]
    theirs = [s for c, _, _, s in runs if "nvbandwidth" in c and "memcpy_read_sm" in c and "bidirectional" not in c]
    start = [s for c, _, _, s in runs if "nvbandwidth" in c and c.endswith(SMALLEST)]
    if not ours or not theirs:
        return []
    whole = [s for _, s in ours]
    out = [f"- The four-mode matrix of two GPUs, whole process: {', '.join(f'{s:.2f}' for s in whole)} s; nvbandwidth for the same "
           f"cells: {', '.join(f'{s:.2f}' for s in theirs)} s. Wanted were under 3 s (kept) and a tenth of nvbandwidth's time "
           f"(**not kept** for the process: x {min(whole) / min(theirs):.2f}; most of both is the driver's own start, which no program can leave out)."]
    splits = [split for split in (split_of(o) for o, _ in ours) if split]
    if splits:
        parts = {name: statistics.median(s.get(name, 0) for s in splits) for name in sorted({n for s in splits for n in s})}
        out.append("- Its parts, medians of " + str(len(splits)) + " runs: " + ", ".join(f"{name} {s:.3f} s" for name, s in parts.items()) + ".")
        if start:
            work = sum(parts.get(name, 0) for name in ("allocation", "measuring", "verification"))
            peer = statistics.median(theirs) - statistics.median(start)
            kept = "kept" if work <= 0.1 * peer else "**not kept**"
            out.append(f"- nvbandwidth's smallest run (`{SMALLEST.strip()}`): {statistics.median(start):.2f} s, so the cells themselves take it {peer:.2f} s. "
                       f"Allocation, measuring and verification here: {work:.3f} s, x {work / peer:.2f} (a tenth: {kept}).")
    return out


def matrix_seconds(runs):
    for command, output, _, _ in runs:
        if "topotune bench all" in command and (lines := re.findall(r"^\[\s*([\d.]+) s\] p2p\.(write|both\.write)\.ce .*$", output, re.M)):
            start = [float(t) for t, k in lines if k == "write"]
            end = [float(t) for t, k in lines if k == "both.write"]
            if start and end:
                return [f"- The eight cells themselves, warm-up and verification included: {end[0] - start[0]:.1f} s "
                        "(steps of `bench all -v`)."]
    return []


def text_cells(runs, peers):
    """The cells of the text tables beside the peer's mean, where a folder has no JSON; nothing without the peer."""
    lines = ["| result | topotune, least to most | nvbandwidth |", "|---|---|---|"]
    for name, test, total in PEER:
        values = text_values(runs, name, "GB/s")
        if values and test in peers and not total:
            lines.append(f"| `{name}` | {min(values):.1f}-{max(values):.1f} GB/s of {len(values)} | {peers[test][0]:.1f} GB/s |")
    return lines if len(lines) > 2 else []


def page_of(folder):
    runs = blocks((folder / "bench.txt").read_text(errors="replace"))
    documents = load_json(folder)
    peers = peer_cells(runs)
    out = [f"## {folder.name}", ""]
    versions = (folder / "versions.txt").read_text(errors="replace").splitlines()
    out += ["Date, kernel, GPUs and driver (`versions.txt`):", "", "```"] + versions[:6] + ["```", ""]
    out += ["Raw results: " + ", ".join(f"[{p.name}](../measurements/{folder.name}/{p.name})" for p in sorted(folder.iterdir()) if p.is_file()), ""]
    full = next((d for n, d in documents if n.startswith("all")), None)
    if full:
        out += ["### Beside nvbandwidth 0.8, of the same minutes", "", f"`{full['command']}`. Means of both directions of the two GPUs.", ""]
        out += peer_table(full, peers) + [""]
    elif cells := text_cells(runs, peers):
        out += ["### Beside nvbandwidth 0.8, of the same minutes", ""] + cells + [""]
    time = times(runs) + matrix_seconds(runs)
    for command, _, status, seconds in runs:
        if "topotune bench all" in command and "timeout" not in command:
            time.append(f"- `{command.split('/')[-1] if command.startswith('/') else command}`: {seconds:.1f} s, status {status}.")
    if time:
        out += ["### Time", ""] + time + [""]
    pings = ping_pongs(documents)
    if pings or text_values(runs, "p2p.pingpong.flag", "us"):
        out += ["### Round trips made by the GPUs", ""]
        flags = text_values(runs, "p2p.pingpong.flag", "us") + [p for p, _ in pings.get("p2p.pingpong.flag 0 B", [])]
        if len(flags) > 1:
            spread = (max(flags) - min(flags)) * 1000
            kept = "kept" if spread <= 50 else "**not kept**"
            out.append(f"- p50 of the flag alone in {len(flags)} runs: {', '.join(f'{v:.3f}' for v in flags)} us; they differ by "
                       f"{spread:.0f} ns (wanted: 50 ns, {kept}).")
        for key, values in sorted(pings.items()):
            out.append(f"- `{key}`: p50 / p99 {'; '.join(f'{p:.3f} / {q:.3f} us' for p, q in values)}")
        out.append("")
    references = [float(m) for c, o, _, _ in runs if "reference_latency" in c for m in re.findall(r"([\d.]+) ns", o)]
    latencies = text_values(runs, "numa.latency", "ns")
    turns = [(float(m[1]), c) for c, o, _, _ in runs if "latency_turns" in c for m in [re.search(r"ratio ([\d.]+)", o)] if m]
    if latencies:
        out += ["### Memory latency of the CPU", "", f"- `bench numa`: {', '.join(f'{v:.1f}' for v in latencies)} ns."]
        if references:
            off = (statistics.median(latencies) / statistics.median(references) - 1) * 100
            out.append(f"- `bench/reference_latency.cc` in between: {', '.join(f'{v:.1f}' for v in references)} ns; medians differ by {off:+.1f} % (wanted: 3 %).")
        if turns:
            out.append(f"- Both in turns of milliseconds within one process (`bench/latency_turns.cc`): {', '.join(f'{(r - 1) * 100:+.1f} %' for r, _ in turns)}.")
        out.append("")
    if full:
        if table := sm_table(full):
            out += ["### Bandwidth by the number of multiprocessors, GB/s", ""] + table + [""]
        if fits := models(full):
            out += ["### Time by size", ""] + fits + [""]
    failed = [(c, s) for c, _, s, _ in runs if s not in (0,)]
    if failed:
        out += ["### Commands that did not end with status 0", ""] + [f"- `{c}`: {s}" for c, s in failed] + [""]
    if (folder / "notes.md").exists():
        out += ["### Notes", "", (folder / "notes.md").read_text().strip(), ""]
    return out


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    folders = [pathlib.Path(n) for n in names] or sorted(p.parent for p in (ROOT / "measurements").glob("*/bench.txt"))
    lines = ["# Measurements", "",
             "Written by `scripts/measurements_page.py` from the raw results in `measurements/`; not edited by hand.", ""]
    for folder in folders:
        lines += page_of(folder)
    text = "\n".join(lines).rstrip() + "\n"
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.exists() and PAGE.read_text() == text else "docs/measurements.md is not up to date")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
