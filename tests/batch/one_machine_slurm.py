"""Run Slurm on this machine alone, with two fake GPUs: `python one_machine_slurm.py FOLDER start|stop`.

It installs nothing, but needs Debian's packages slurm-wlm and munge, and root. All files are in FOLDER; while
it runs, links in /etc/slurm point to them, as the environment of a job names no other place. It refuses to
run where a Slurm is already configured. munged, unless it runs already, is started in its usual place.
"""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged", "munge", "runuser")
NODE = "here"
USUAL = Path("/etc/slurm")  # where Debian's Slurm looks
FILES = ("slurm.conf", "cgroup.conf", "gres.conf")
_WAIT = 90  # seconds within which a started daemon must answer
_DEVICE_OF_NULL = os.makedev(1, 3)

CONFIGURATION = """\
ClusterName=one
SlurmctldHost={host}
SlurmUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
MinJobAge=300
KillWait=10
ReturnToService=2
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory} \
Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes={node} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Return what this machine lacks to run it, or None."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)}: on Debian apt-get install slurm-wlm munge"
    if os.geteuid() != 0:
        return "only root may start it"
    found = [USUAL / name for name in FILES if (USUAL / name).exists()]
    return f"this machine has a Slurm of its own: {found[0]}" if found else None


def start(folder: Path) -> None:
    """Start munged, slurmctld and slurmd, and wait until they are ready for jobs."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    _write_configuration(folder)
    for name in FILES:
        (USUAL / name).unlink(missing_ok=True)  # left over from a start without a stop
        (USUAL / name).symlink_to(folder / name)
    if not _succeeds(["munge", "--no-input"]):
        _start_munged(folder)
    for daemon in (["slurmctld"], ["slurmd", "-N", NODE]):
        subprocess.run(daemon, check=True)
    resume = ["scontrol", "update", f"NodeName={NODE}", "State=RESUME"]
    end = time.monotonic() + _WAIT
    while "idle" not in _said(["sinfo", "--noheader", "--format=%T"]):
        if time.monotonic() > end:
            stop(folder)
            logs = "".join((folder / f"{name}.log").read_text()[-2000:] for name in ("slurmctld", "slurmd"))
            raise RuntimeError(f"Slurm did not come up:\n{logs}")
        _succeeds(resume)
        time.sleep(1)


def stop(folder: Path) -> None:
    """End the processes that `start` started, by the process ids in their files."""
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(["scancel", "--user", "root"], capture_output=True, timeout=20)
    for name in ("slurmd", "slurmctld", "munged"):
        path = folder / f"{name}.pid"
        with suppress(OSError, ValueError):
            number = int(path.read_text())
            os.kill(number, signal.SIGTERM)
            end = time.monotonic() + 20
            while Path(f"/proc/{number}").exists() and time.monotonic() < end:
                time.sleep(0.2)
            if Path(f"/proc/{number}").exists():
                os.kill(number, signal.SIGKILL)
    for name in FILES:
        if (USUAL / name).is_symlink():
            (USUAL / name).unlink()


def _write_configuration(folder: Path) -> None:
    ports = _free_ports(2)
    kilobytes = int(Path("/proc/meminfo").read_text().split()[1])
    text = CONFIGURATION.format(
        host=socket.gethostname(),
        controller_port=ports[0],
        node_port=ports[1],
        folder=folder,
        node=NODE,
        cores=len(os.sched_getaffinity(0)),
        memory=kilobytes // 1024 - 200,  # in MB; Slurm must not offer more than there is
    )
    (folder / "slurm.conf").write_text(text)
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    for number in range(2):
        os.mknod(folder / f"fake{number}", stat.S_IFCHR | 0o666, _DEVICE_OF_NULL)
    (folder / "gres.conf").write_text(f"NodeName={NODE} Name=gpu File={folder}/fake[0-1]\n")


def _start_munged(folder: Path) -> None:
    place = Path("/run/munge")
    place.mkdir(mode=0o755, exist_ok=True)
    shutil.chown(place, "munge", "munge")
    subprocess.run(["runuser", "-u", "munge", "--", "munged"], check=True)
    end = time.monotonic() + _WAIT
    while not _succeeds(["munge", "--no-input"]):
        if time.monotonic() > end:
            raise RuntimeError("munged did not come up")
        time.sleep(0.5)
    (folder / "munged.pid").write_text((place / "munged.pid").read_text())


def _free_ports(count: int) -> list[int]:
    with suppress(OSError):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        ports = [one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
    return ports


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    if sys.argv[2] == "stop":
        stop(place)
    elif problem := missing():
        sys.exit(problem)
    else:
        start(place)
