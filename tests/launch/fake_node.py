"""A machine below a folder: two NUMA nodes, two GPUs on each, a NIC beside the first; its CPUs are real ones."""
import os


def put(root, path, text):
    path = root + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def link(root, path, target):
    path = root + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(target, path)


def function(root, host, chain, address, class_code, vendor, node, cpus):
    folder = "/sys/devices/pci%s/%s" % (host, "/".join(chain + [address]))
    for name, text in (("class", class_code), ("vendor", vendor), ("device", "0x2330"), ("numa_node", str(node)), ("local_cpulist", cpus)):
        put(root, folder + "/" + name, text + "\n")
    link(root, "/sys/bus/pci/devices/" + address, "../../.." + folder[len("/sys"):])


def make(root, cpus):
    """`cpus`: [CPU list of node 0, of node 1]."""
    for node in (0, 1):
        put(root, "/sys/devices/system/node/node%d/cpulist" % node, cpus[node] + "\n")
        put(root, "/sys/devices/system/node/node%d/distance" % node, "10 21\n" if node == 0 else "21 10\n")
    put(root, "/sys/devices/system/cpu/online", ",".join(cpus) + "\n")
    function(root, "0000:10", ["0000:10:01.0", "0000:11:00.0", "0000:12:00.0"], "0000:13:00.0", "0x030200", "0x10de", 0, cpus[0])
    function(root, "0000:10", ["0000:10:01.0", "0000:11:00.0", "0000:12:01.0"], "0000:14:00.0", "0x020000", "0x15b3", 0, cpus[0])
    function(root, "0000:20", ["0000:20:01.0"], "0000:21:00.0", "0x030200", "0x10de", 0, cpus[0])
    function(root, "0000:80", ["0000:80:01.0"], "0000:81:00.0", "0x030200", "0x10de", 1, cpus[1])
    function(root, "0000:90", ["0000:90:01.0"], "0000:91:00.0", "0x030200", "0x10de", 1, cpus[1])
    function(root, "0000:00", [], "0000:00:02.0", "0x030000", "0x1234", 0, cpus[0])  # a display, no GPU of interest
    link(root, "/sys/class/infiniband/mlx5_0", "../../devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0/infiniband/mlx5_0")
    link(root, "/sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0/infiniband/mlx5_0/device", "../../../0000:14:00.0")
    put(root, "/proc/sys/kernel/numa_balancing", "1\n")


if __name__ == "__main__":
    import sys
    usable = sorted(os.sched_getaffinity(0))
    make(sys.argv[1], [str(usable[0]), str(usable[-1])])
