"""munged, slurmctld and slurmd of this one node, for tests."""
import os
import shutil
import signal
import subprocess
import time


def run(command, env, **more):
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60, **more)


def why_not():
    """Why Slurm cannot be started here; None: it can."""
    if not all(shutil.which(n) for n in ("srun", "sinfo", "sbatch")):
        return "Slurm is not installed"
    if not all(shutil.which(n) or os.path.exists("/usr/sbin/" + n) for n in ("munged", "slurmctld", "slurmd")):
        return "Slurm's daemons are not installed"
    return None if os.geteuid() == 0 else "Slurm's daemons need root here"


SLURM_CONF = """ClusterName=test
SlurmctldHost={host}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldPort={port}
SlurmdPort={port1}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName={host} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


class Slurm:
    """munged, slurmctld and slurmd of this one node, below a folder of their own."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        for name in ("state", "spool"):
            os.makedirs(os.path.join(folder, name))
        os.chmod(folder, 0o755)
        host = subprocess.run(["hostname", "-s"], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout.strip()
        port = 20000 + os.getpid() % 20000
        self.conf = os.path.join(folder, "slurm.conf")
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(SLURM_CONF.format(host=host, folder=folder, port=port, port1=port + 1, cpus=os.cpu_count()))
        key = os.path.join(folder, "munge.key")
        with open(key, "wb") as f:
            f.write(os.urandom(1024))
        os.chmod(key, 0o400)
        self.start(["munged", "--foreground", "--force", "--key-file=" + key, "--socket=" + folder + "/munge.socket", "--pid-file=" + folder + "/munged.pid",
                    "--log-file=" + folder + "/munged.log", "--seed-file=" + folder + "/munge.seed"])
        self.start(["slurmctld", "-D", "-i", "-f", self.conf])
        self.start(["slurmd", "-D", "-f", self.conf])

    def start(self, command):
        command[0] = shutil.which(command[0]) or "/usr/sbin/" + command[0]
        env = dict(os.environ, SLURM_CONF=getattr(self, "conf", ""))
        with open(os.path.join(self.folder, os.path.basename(command[0]) + ".out"), "wb") as out:
            self.processes.append(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out))
        time.sleep(0.3)

    def wait_until_idle(self, limit):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            state = run(["sinfo", "-h", "-o", "%t"], dict(os.environ, SLURM_CONF=self.conf)).stdout.strip()
            if state == "idle":
                return True
            time.sleep(0.2)
        return False

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
