"""Hosts made of namespaces: each has its own network, name, processes, shared memory and sysfs (by `ip netns exec`), joined by a bridge.

`with Hosts(4) as hosts:` gives h1 to h4 with addresses 10.77.0.1 to .4 on the interface e0; hosts.agent is a program
that is called as AGENT HOST COMMAND. Raises NotPermitted where the kernel does not let us.
"""
import os
import shutil
import signal
import subprocess
import tempfile
import time


class NotPermitted(Exception):
    pass


def sh(*command, check=True):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if check and done.returncode != 0:
        raise NotPermitted("%s: %s" % (" ".join(command), done.stdout.strip()))
    return done.stdout


class Hosts:
    def __init__(self, count):
        self.names = ["h%d" % (i + 1) for i in range(count)]
        self.prefix = "tt%d" % os.getpid()
        self.sleepers, self.pids = [], {}

    def __enter__(self):
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare") or not shutil.which("nsenter"):
            raise NotPermitted("namespaces need root, ip, unshare and nsenter")
        self.folder = tempfile.mkdtemp()
        os.chmod(self.folder, 0o755)
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def space(self, name):
        return "%s-%s" % (self.prefix, name)

    def build(self):
        hosts_file = os.path.join(self.folder, "hosts")
        with open(hosts_file, "w", encoding="utf-8") as f:
            f.write("127.0.0.1 localhost\n")
            f.writelines("10.77.0.%d %s\n" % (i + 1, n) for i, n in enumerate(self.names))
        bridge = self.space("br")
        sh("ip", "netns", "add", bridge)
        sh("ip", "-n", bridge, "link", "add", "br0", "type", "bridge")
        sh("ip", "-n", bridge, "link", "set", "br0", "up")
        for i, name in enumerate(self.names):
            space = self.space(name)
            sh("ip", "netns", "add", space)
            sh("ip", "-n", space, "link", "add", "e0", "type", "veth", "peer", "name", "v%d" % i, "netns", bridge)
            sh("ip", "-n", bridge, "link", "set", "v%d" % i, "master", "br0", "up")
            sh("ip", "-n", space, "addr", "add", "10.77.0.%d/24" % (i + 1), "dev", "e0")
            sh("ip", "-n", space, "link", "set", "e0", "up")
            sh("ip", "-n", space, "link", "set", "lo", "up")
            inside = "hostname %s; mount --bind %s /etc/hosts; mount -t tmpfs t /dev/shm; touch %s/%s.up; exec sleep 3600" % (name, hosts_file, self.folder, name)
            self.sleepers.append(subprocess.Popen(["ip", "netns", "exec", space, "unshare", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sh", "-c", inside]))
        self.wait()
        self.agent = os.path.join(self.folder, "agent")
        with open(self.agent, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\ncase $1 in\n")
            f.writelines("%s) pid=%d ;;\n" % (n, p) for n, p in self.pids.items())
            f.write("*) echo \"agent: no host $1\" >&2; exit 1 ;;\nesac\nexec nsenter -t $pid -n -u -i -p -m -- sh -c \"$2\"\n")
        os.chmod(self.agent, 0o755)

    def wait(self):
        """Until each host's own process is there; its number is that of the child of `unshare`."""
        end = time.time() + 10
        for name, sleeper in zip(self.names, self.sleepers):
            while name not in self.pids:
                up = os.path.exists(os.path.join(self.folder, name + ".up"))
                children = sh("ps", "-o", "pid=", "--ppid", str(sleeper.pid), check=False).split()
                if up and children:
                    self.pids[name] = int(children[0])
                elif sleeper.poll() is not None or time.time() > end:
                    raise NotPermitted("host %s did not come up" % name)
                else:
                    time.sleep(0.02)

    def limit(self, name, rate):
        sh("ip", "netns", "exec", self.space(name), "tc", "qdisc", "add", "dev", "e0", "root", "tbf", "rate", rate, "burst", "64kb", "latency", "50ms")

    def down(self, name):
        sh("ip", "-n", self.space(name), "link", "set", "e0", "down")

    def up(self, name):
        sh("ip", "-n", self.space(name), "link", "set", "e0", "up")

    def __exit__(self, *_):
        for sleeper in self.sleepers:
            sleeper.send_signal(signal.SIGKILL)
            sleeper.wait()
        for name in [*self.names, "br"]:
            sh("ip", "netns", "del", self.space(name), check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
