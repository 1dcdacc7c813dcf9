"""A standalone Spark cluster and a Spark Connect server on this machine, of processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 180


class Processes:
    """Processes of Spark's whose logs are in a folder; they end with the `with`."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        from viewproof.refinement.spark.java import find_java

        self.folder = folder
        self.home = Path(pyspark.__file__).parent
        self._environment = os.environ | {
            "SPARK_HOME": str(self.home), "JAVA_HOME": find_java().home, "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable, "SPARK_LOG_DIR": str(folder), "SPARK_NO_DAEMONIZE": "1",
        }  # fmt: skip
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(60)

    def start(self, name: str, program: str, *words: str) -> Path:
        """Start a program of Spark's; its log."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            command = [str(self.home / program), *words]
            self._processes.append(
                subprocess.Popen(command, env=self._environment, stdout=out, stderr=out, cwd=self.folder)
            )
        return log

    def wait_for(self, log: Path, pattern: str, count: int = 1) -> re.Match[str]:
        """Wait until a log has the pattern so many times; the last of them."""
        end = time.monotonic() + START_SECONDS
        while len(found := list(re.finditer(pattern, log.read_text(encoding="utf-8", errors="replace")))) < count:
            ended = time.monotonic() > end or any(process.poll() is not None for process in self._processes)
            if ended:
                raise RuntimeError(f"it did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
            time.sleep(0.1)
        return found[-1]


@contextmanager
def standalone_cluster(folder: Path, workers: int) -> Iterator[str]:
    """A master and workers of one core each; its address, once all have joined. Their logs are in the folder."""
    with Processes(folder) as here:
        host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = here.start("master", "bin/spark-class", "org.apache.spark.deploy.master.Master", *host)
        address = here.wait_for(master, r"Starting Spark master at (spark://\S+)")[1]
        for number in range(workers):
            words = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / f"w{number}"))
            worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", *words, address)
            here.start(f"worker-{number}", "bin/spark-class", *worker)
        here.wait_for(master, "Registering worker", workers)
        yield address


@contextmanager
def connect_server(folder: Path, conf: Sequence[str] = ()) -> Iterator[str]:
    """A Spark Connect server with two cores; its address."""
    settings = ("spark.connect.grpc.binding.port=0", "spark.connect.grpc.binding.address=127.0.0.1",
                "spark.ui.enabled=false", f"spark.sql.warehouse.dir={folder}/warehouse", *conf)  # fmt: skip
    words = [word for setting in settings for word in ("--conf", setting)]
    with Processes(folder) as here:
        # what sbin/start-connect-server.sh runs; that script would stay between, and leave its Java behind when it ends
        server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
        log = here.start("connect", "bin/spark-submit", "--master", "local[2]", *words, *server)
        port = here.wait_for(log, r"Spark Connect server started at: 127\.0\.0\.1:(\d+)")[1]
        yield f"sc://127.0.0.1:{port}"
