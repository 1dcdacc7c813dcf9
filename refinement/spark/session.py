"""Spark sessions: one that is quiet and local, whatever the user's shell says of another Spark, or one on a cluster."""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from pyspark import SparkContext
from pyspark.sql import SparkSession

from viewproof.refinement.interrupts import held, reinstall, shielded_children
from viewproof.refinement.spark.java import find_java

Log = Callable[[str], None]
Answer = TypeVar("Answer")

BATCH_ROWS = 8192
_WAIT_SECONDS = 0.2
ANSWER_SECONDS = 5.0
"""How long a master may take to accept a connection."""

OF_ANOTHER_SPARK = (
    *("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE", "SPARK_MASTER"),
    *("SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"),
    *("HADOOP_CONF_DIR", "YARN_CONF_DIR"),
)
"""Variables by which a shell is set up for a Spark; a local session is this package's own and uses none of them."""

_LIGHT_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
"""Here Java only hands out work and sorts: the optimising compiler would cost more seconds than the audit has."""

_QUIET = """status = error
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%notEmpty{ (%ex{short.message})}%n
"""
"""What Spark logs of its own: errors, each on a line, without the stack."""


class SparkStartError(Exception):
    """There is no session: what was tried, what went wrong, and what of the environment may be the cause."""


def start_session(
    master: str = "local[*]", log: Log | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session for an audit, with quiet logs, on the Java that `find_java` names (said to `log`).

    `conf` are settings of the user's, which come last. A local session takes nothing from the environment; one on a
    cluster takes all of it. Raises `JavaError` where there is no usable Java, `SparkStartError` where none starts.
    """
    say = log or (lambda _: None)
    local = master.startswith("local")
    found = [name for name in OF_ANOTHER_SPARK if name in os.environ]
    if local and found:
        say(f"not used by a local session: {', '.join(found)}")
    _require_an_answer(master)
    if master.startswith("sc://"):
        say(f"Spark Connect, {master}")
        return _connect(master, conf or {})
    java = find_java()
    say(f"Spark on {java}, master {master}")
    scratch = Path(tempfile.mkdtemp(prefix="viewproof-spark-"))
    own = {"JAVA_HOME": java.home, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if local:
        own |= {"PYSPARK_PYTHON": sys.executable, "SPARK_CONF_DIR": str(scratch)}
    else:
        own |= {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    with _environment(own, without=OF_ANOTHER_SPARK if local else ()):
        try:
            return _classic(master, scratch, conf or {})
        except Exception as error:
            _end_java()
            because = f"; set in the environment: {', '.join(found)}" if found and not local else ""
            raise SparkStartError(f"no Spark session on {master}: {_first_line(error)}{because}") from error


def _classic(master: str, scratch: Path, conf: Mapping[str, str]) -> SparkSession:
    local = master.startswith("local")
    (scratch / "log4j2.properties").write_text(_QUIET)
    light = _LIGHT_JAVA if local else ""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"{light}-Dlog4j2.configurationFile=file:{scratch}/log4j2.properties",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
        "spark.sql.session.timeZone": "UTC",
    }
    if local:
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    builder = SparkSession.builder.master(master).appName("viewproof audit")
    for name, value in {**settings, **conf}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _connect(master: str, conf: Mapping[str, str]) -> SparkSession:
    try:
        builder = SparkSession.builder.remote(master)
        for name, value in conf.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except (ImportError, SystemExit) as error:  # in `python -c` it takes itself for a doctest, and exits with 0
        said = error if isinstance(error, ImportError) else "the one that is named above"
        install = "pip install 'pyspark[connect]', or 'viewproof[connect]'"
        text = f"Spark Connect needs packages that are not installed ({install}): {said}"
        raise SparkStartError(text) from None
    except Exception as error:
        raise SparkStartError(f"no Spark Connect session on {master}: {_first_line(error)}") from error


def _require_an_answer(master: str) -> None:
    """Refuse a master at whose addresses nothing listens: Spark itself tries for a minute, and then goes on living."""
    if not master.startswith(("spark://", "sc://")):
        return
    scheme, _, rest = master.partition("://")
    addresses = [urlsplit(f"//{part.split('/')[0].split(';')[0]}") for part in rest.split(",")]
    default = 15002 if scheme == "sc" else 7077
    problems = []
    for address in addresses:
        try:
            place = (address.hostname or "", address.port or default)
            with socket.create_connection(place, ANSWER_SECONDS):
                return
        except (OSError, ValueError) as error:
            problems.append(f"{address.netloc}: {getattr(error, 'strerror', None) or error}")
    raise SparkStartError(f"nothing answers at {master} ({'; '.join(problems)})")


@contextmanager
def _environment(own: Mapping[str, str], without: tuple[str, ...]) -> Iterator[None]:
    """The environment for the time of a `with`: Spark's Java gets it when it starts."""
    before = {name: os.environ.get(name) for name in {*own, *without}}
    for name in without:
        os.environ.pop(name, None)
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end_java() -> None:
    """End the Java of a session that did not come about; it would keep this process alive."""
    gateway = SparkContext._gateway
    if gateway is None or SparkContext._active_spark_context is not None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def interruptibly(spark: SparkSession, work: Callable[[], Answer]) -> Answer:
    """What `work` gives; a signal ends the wait for it at once, and its jobs.

    Spark's own way to the answer waits for the job that is interrupted, and hides the interrupt behind an error of it.
    """
    tag = f"viewproof-{uuid.uuid4().hex}"
    answer: list[Answer] = []
    error: list[BaseException] = []

    def run() -> None:
        try:
            spark.addTag(tag)
            answer.append(work())
        except BaseException as problem:
            error.append(problem)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_WAIT_SECONDS)
    except KeyboardInterrupt:
        with held(), suppress(Exception):  # its Java may be gone already
            spark.interruptTag(tag)
        raise
    if error:
        raise error[0]
    return answer[0]


def _no_interrupt(record: logging.LogRecord) -> bool:
    """py4j logs the traceback of each interrupt, to the root."""
    return record.exc_info is None or not isinstance(record.exc_info[1], KeyboardInterrupt)


@contextmanager
def session_for(
    given: SparkSession | None, master: str, log: Log | None, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """The session that was given, one that this process has already, or one for the time of a `with`.

    Only the last is stopped at the end; its start and end are not interrupted.
    """
    there = given or SparkSession.getActiveSession()
    if there is not None:
        if given is None and log:
            log("the Spark session of this process is used")
        yield there
        return
    spark = None
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    root = logging.getLogger()
    root.addFilter(_no_interrupt)
    try:
        with held(), shielded_children():  # Spark sets a handler of its own, which raises at once
            spark = start_session(master, log, conf)
            reinstall()
        yield spark
    finally:
        with held():
            root.removeFilter(_no_interrupt)
            if spark is not None:
                with suppress(Exception):  # nothing depends on it any more; its Java may be gone already
                    spark.stop()
