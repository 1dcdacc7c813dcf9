"""A standalone Spark cluster on this machine: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 180


@contextmanager
def standalone_cluster(folder: Path, workers: int) -> Iterator[str]:
    """A master and workers of one core each; its address, once all have joined. Their logs are in the folder."""
    import pyspark

    from viewproof.refinement.java import find_java

    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home), "JAVA_HOME": find_java().home, "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOG_DIR": str(folder),
    }  # fmt: skip
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *words: str) -> Path:
        log = folder / f"{name}.log"
        command = [str(home / "bin" / "spark-class"), *words]
        with log.open("wb") as out:
            processes.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=folder))
        return log

    def wait_for(log: Path, pattern: str, count: int = 1) -> re.Match[str]:
        end = time.monotonic() + START_SECONDS
        while len(found := list(re.finditer(pattern, log.read_text(errors="replace")))) < count:
            ended = time.monotonic() > end or any(process.poll() is not None for process in processes)
            if ended:
                raise RuntimeError(f"the cluster did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        return found[-1]

    try:
        host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = start("master", "org.apache.spark.deploy.master.Master", *host)
        address = wait_for(master, r"Starting Spark master at (spark://\S+)")[1]
        for number in range(workers):
            words = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / f"w{number}"))
            start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", *words, address)
        wait_for(master, "Registering worker", workers)
        yield address
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)
