#!/usr/bin/env python3
"""Writes a capture of an invented eight-GPU machine: eight switches with a GPU and a 400 Gb/s NIC each.

    bench/make_capture.py FILE [--seed N]

Same seed, same bytes. The seed moves what differs by node: addresses of counters and one GID.
"""
import argparse
import json
import struct

GPUS = 8


def entry(out, call, name, text):
    out.append((call, name, text))


def config(device, vendor, port_type):
    """Configuration space with a PCI Express capability (port type) and an ACS capability without redirection."""
    space = bytearray(4096)
    struct.pack_into("<HH", space, 0, vendor, device)
    space[6] = 0x10  # capabilities
    space[0x34] = 0x40
    struct.pack_into("<BBH", space, 0x40, 0x10, 0, 2 | port_type << 4)
    struct.pack_into("<H", space, 0x48, 5 << 12 | 1 << 5)  # DevCtl: MaxReadReq 4096
    struct.pack_into("<IHH", space, 0x100, 0x000D | 1 << 16, 0x1F, 0)
    return bytes(space)


def pci(out, bdf, cls, vendor, device, path, port_type, node, gen, width):
    base = "/sys/bus/pci/devices/" + bdf
    entry(out, "link", base, "../../../devices/" + path)
    for name, text in (("class", cls), ("vendor", "0x%04x" % vendor), ("device", "0x%04x" % device),
                       ("numa_node", str(node)), ("current_link_speed", gen), ("max_link_speed", gen),
                       ("current_link_width", str(width)), ("max_link_width", str(width)),
                       ("local_cpulist", "0-55" if node == 0 else "56-111"), ("subsystem_vendor", "0x%04x" % vendor),
                       ("subsystem_device", "0x0001"), ("power_state", "D0"),
                       ("aer_dev_correctable", "RxErr 0\nTOTAL_ERR_COR 0"),
                       ("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 0"), ("aer_dev_fatal", "TOTAL_ERR_FATAL 0")):
        entry(out, "read", base + "/" + name, text + "\n")
    entry(out, "read", base + "/config", config(device, vendor, port_type))


def nvml():
    links = [{"link": i, "active": True, "version": 7, "gbytes_per_s": 26.562, "remote_type": "switch",
              "remote_bus_id": "00000000:C%d:00.0" % (i % 4),
              "errors": {"replay": 0, "recovery": 0, "crc_flit": 0, "crc_data": 0}} for i in range(18)]
    gpus = [{"index": g, "name": "NVIDIA H200", "uuid": "GPU-0000-%d" % g, "minor": g, "vbios": "96.00.A5.00.01",
             "pci": {"bus_id": "00000000:%02X:00.0" % (0x10 * (g + 1) + 3), "vendor": 0x10DE, "device": 0x2335},
             "architecture": 9, "compute_capability": [9, 0], "mig": {"current": False, "pending": False},
             "pcie": {"gen": 5, "gen_max": 5, "gen_device_max": 5, "width": 16, "width_max": 16, "replays": 0},
             "fabric": {"state": 3, "status": 0, "clique_id": 0, "health_mask": 0,
                        "cluster_uuid": "00000000-0000-0000-0000-000000000000"},
             "utilisation": 0, "clock_event_reasons": 1, "persistence": "on", "nvlink_count": 18, "nvlinks": links}
            for g in range(GPUS)]
    pairs = [{"from": a, "to": b, "read": "OK", "write": "OK", "nvlink": "OK", "atomics": "OK", "prop": "NS"}
             for a in range(GPUS) for b in range(GPUS) if a != b]
    return json.dumps({"schema": "topotune.probe.nvml/1", "driver_version": "580.65.06", "nvml_version": "13.580.65.06",
                       "cuda_driver_version": "13.0", "gpu_count": GPUS, "gpus": gpus, "p2p": pairs})


def rdma(out, g, bdf, seed):
    device, net = "mlx5_%d" % g, "eth%d" % g
    base = "/sys/class/infiniband/" + device
    entry(out, "link", base + "/device", "../../../" + bdf)
    entry(out, "list", base + "/ports", "1\n")
    for name, text in (("board_id", "MT_0000000838"), ("fw_ver", "28.39.1002"), ("hca_type", "MT4129"),
                       ("sys_image_guid", "0000:0000:0000:%04x" % g)):
        entry(out, "read", base + "/" + name, text + "\n")
    port = base + "/ports/1/"
    for name, text in (("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"), ("link_layer", "Ethernet"),
                       ("rate", "400 Gb/sec (4X NDR)"), ("lid", "0x0"), ("sm_lid", "0x0"),
                       ("gids/0", "fe80:0000:0000:0000:0000:0000:0000:%04x" % (g + 1)),
                       ("gids/3", "0000:0000:0000:0000:0000:ffff:0a%02x:%04x" % (g, seed + 1)),
                       ("gid_attrs/types/0", "IB/RoCE v1"), ("gid_attrs/types/3", "RoCE v2"),
                       ("gid_attrs/ndevs/0", net), ("gid_attrs/ndevs/3", net)):
        entry(out, "read", port + name, text + "\n")
    for name in ("link_downed", "symbol_error", "port_rcv_errors", "port_xmit_discards", "port_xmit_wait"):
        entry(out, "read", port + "counters/" + name, "%d\n" % (seed % 7))
    entry(out, "read", "/sys/class/net/%s/mtu" % net, "9000\n")


def machine(seed):
    out, names = [], []
    for g in range(GPUS):
        bus, node = 0x10 * (g + 1), g * 2 // GPUS
        root = "0000:%02x:01.0" % bus
        up, down0, down1 = "0000:%02x:00.0" % (bus + 1), "0000:%02x:00.0" % (bus + 2), "0000:%02x:01.0" % (bus + 2)
        gpu, nic = "0000:%02x:00.0" % (bus + 3), "0000:%02x:00.0" % (bus + 4)
        tree = "pci0000:%02x/" % bus
        for bdf, cls, vendor, device, path, kind in (
                (root, "0x060400", 0x8086, 0x352A, tree + root, 4),
                (up, "0x060400", 0x1000, 0xC030, tree + "/".join((root, up)), 5),
                (down0, "0x060400", 0x1000, 0xC030, tree + "/".join((root, up, down0)), 6),
                (down1, "0x060400", 0x1000, 0xC030, tree + "/".join((root, up, down1)), 6),
                (gpu, "0x030200", 0x10DE, 0x2335, tree + "/".join((root, up, down0, gpu)), 0),
                (nic, "0x020000", 0x15B3, 0x1021, tree + "/".join((root, up, down1, nic)), 0)):
            pci(out, bdf, cls, vendor, device, path, kind, node, "32.0 GT/s PCIe", 16)
            names.append(bdf)
        entry(out, "link", "/sys/bus/pci/devices/%s/driver" % gpu, "../../../bus/pci/drivers/nvidia")
        entry(out, "link", "/sys/bus/pci/devices/%s/driver" % nic, "../../../bus/pci/drivers/mlx5_core")
        rdma(out, g, tree + "/".join((root, up, down1, nic)), seed)
    entry(out, "list", "/sys/bus/pci/devices", "".join(n + "\n" for n in sorted(names)))
    entry(out, "list", "/sys/class/infiniband", "".join("mlx5_%d\n" % g for g in range(GPUS)))
    entry(out, "probe", "nvml", nvml())
    entry(out, "read", "/proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n")
    entry(out, "read", "/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro iommu=pt\n")
    entry(out, "read", "/proc/sys/kernel/numa_balancing", "0\n")
    entry(out, "read", "/sys/devices/system/cpu/online", "0-111\n")
    entry(out, "list", "/sys/devices/system/node", "node0\nnode1\n")
    for node, cpus in ((0, "0-55"), (1, "56-111")):
        entry(out, "read", "/sys/devices/system/node/node%d/cpulist" % node, cpus + "\n")
        entry(out, "read", "/sys/devices/system/node/node%d/distance" % node, "10 21\n" if node == 0 else "21 10\n")
    return out


def written(text):
    if isinstance(text, bytes):
        lines = []
        while text:  # bytes in lines of 64, long runs of zeros as their number
            rest = text.lstrip(b"\0")
            if len(text) - len(rest) >= 16:
                lines.append("~%d" % (len(text) - len(rest)))
                text = rest
                continue
            end = text.find(b"\0" * 16)
            end = min(64, end if end > 0 else 64)
            lines.append("*" + text[:end].hex())
            text = text[end:]
        return "\n".join(lines) + "\n"
    lines = text.split("\n")
    last = lines.pop()
    return "".join("|%s\n" % l for l in lines) + ("+%s\n" % last if last else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    order = {"probe": 0, "run": 1, "list": 2, "link": 3, "read": 4}
    entries = sorted(machine(options.seed), key=lambda e: (order[e[0]], e[1]))
    with open(options.file, "w", encoding="utf-8") as f:
        f.write("topotune-capture 1\ntool: topotune 0.1.0\ndate: 2026-01-31T12:00:00Z\nredacted: yes\n")
        for call, name, text in entries:
            f.write("%s %s\n%s" % (call, name, written(text)))
        f.write("end\n")


if __name__ == "__main__":
    main()
