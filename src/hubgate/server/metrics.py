"""Prometheus metrics. Off by default: the client library is then not imported, and recording does nothing.

Each process writes its metrics to files in a shared folder (the client library's multiprocess mode). The process that
answers a scrape adds up the values of all files, so the result does not depend on which worker answers.
"""

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

from hubgate.server.errors import StartupError
from hubgate.server.jobs.pool import POOL_METRICS, PoolMetrics

log = logging.getLogger("hubgate.metrics")

EVERY_SECONDS = 10.0
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


# Help texts of the job gauges, by field name of `jobs.pool.PoolMetrics`.
_JOBS = {
    "running": "Jobs that are running in threads.",
    "queued": "Jobs that wait for a thread.",
    "abandoned": "Jobs dropped since the process started because their client disconnected.",
    "expired": "Jobs dropped since the process started because their deadline passed.",
}


# Help texts of the gauges about deliveries. The values are those of the whole hub, so the most recent ones are shown.
DELIVERY_GAUGES = {
    "hubgate_deliveries_waiting": "Deliveries that wait, for their first attempt or for a retry.",
    "hubgate_deliveries_retrying": "Deliveries that wait for a retry.",
    "hubgate_events_waiting": "Events whose webhooks have not been determined yet.",
    "hubgate_deliveries_oldest_waiting_seconds": "How long the oldest event or due delivery has waited.",
    "hubgate_delivery_attempts_per_minute": "Attempts in the last minute, of all processes.",
    "hubgate_delivery_processes": "Processes that send deliveries.",
    "hubgate_webhooks_failing": "Webhooks whose recent attempts all failed.",
    "hubgate_webhooks_failing_hosts": "Hosts to which these webhooks send.",
}


# Help texts of the gauges about Spaces, on hubs that run them.
SPACE_GAUGES = {
    "hubgate_spaces_running": "Spaces whose app serves requests.",
    "hubgate_spaces_starting": "Spaces that are built or started and do not serve yet.",
    "hubgate_spaces_sleeping": "Spaces that start with the next request.",
    "hubgate_spaces_failed": "Spaces whose build or app has failed.",
    "hubgate_spaces_memory_bytes": "Memory that all running Spaces use.",
    "hubgate_spaces_requests_waiting": "Requests that wait for a Space's answer.",
}
_GAUGES = DELIVERY_GAUGES | SPACE_GAUGES


class Metrics(Protocol):
    def request(self, route: str, method: str, status: int, seconds: float) -> None: ...

    def set_gauges(self, values: Mapping[str, float]) -> None:
        """Set all of `DELIVERY_GAUGES` or of `SPACE_GAUGES`."""


class NoMetrics:
    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        pass

    def set_gauges(self, values: Mapping[str, float]) -> None:
        pass


class PrometheusMetrics:
    def __init__(self) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        self._requests = Counter("hubgate_requests_total", "Requests answered.", ["route", "method", "status"])
        self._seconds = Histogram(
            "hubgate_request_seconds",
            "Time until the response was sent.",
            ["route"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        )
        self._jobs = {
            name: Gauge(f"hubgate_jobs_{name}", meaning, ["pool"], multiprocess_mode="livesum")
            for name, meaning in _JOBS.items()
        }
        self._gauges: dict[str, Gauge] = {}
        # The library looks up the series of labels under a lock, which takes longer than to count.
        self._requests_of = cache(self._requests.labels)
        self._seconds_of = cache(self._seconds.labels)
        for each in POOL_METRICS:
            each.on_change = self._jobs_changed
            self._jobs_changed(each)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests_of(route, method, status).inc()
        self._seconds_of(route).observe(seconds)

    def set_gauges(self, values: Mapping[str, float]) -> None:
        from prometheus_client import Gauge

        for name, value in values.items():
            if name not in self._gauges:
                # Only in processes that set it.
                self._gauges[name] = Gauge(name, _GAUGES[name], multiprocess_mode="livemostrecent")
            self._gauges[name].set(value)

    def _jobs_changed(self, jobs: PoolMetrics) -> None:
        for name, gauge in self._jobs.items():
            gauge.labels(jobs.pool).set(getattr(jobs, name))


async def set_regularly(
    metrics: Metrics, read: Callable[[], Awaitable[Mapping[str, float]]], stop: asyncio.Event
) -> None:
    """Set gauges from what `read` returns, every few seconds until `stop` is set."""
    while not stop.is_set():
        try:
            metrics.set_gauges(await read())
        except Exception:
            log.exception("metrics could not be read, which will be retried")
        try:
            async with asyncio.timeout(EVERY_SECONDS):
                await stop.wait()
        except TimeoutError:
            continue


def for_this_process() -> Metrics:
    """Prometheus metrics if the supervisor set the metrics folder in the environment, otherwise a no-op."""
    return _prometheus_metrics() if os.environ.get(FOLDER_VARIABLE) else NoMetrics()


@cache
def _prometheus_metrics() -> PrometheusMetrics:
    """Created once: the client library rejects a second metric with the same name."""
    return PrometheusMetrics()


def exposition() -> bytes:
    """The metrics of all processes, in the Prometheus text format."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


class _MetricsHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_metrics = self.path == "/metrics"
        body = exposition() if is_metrics else b"The metrics are at /metrics.\n"
        self.send_response(200 if is_metrics else 404)
        self.send_header("content-type", CONTENT_TYPE)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log scrapes: there is one every few seconds."""


def listen(address: str) -> ThreadingHTTPServer:
    """Serve `GET /metrics` on a separate address, in a thread of the supervisor."""
    host, _, port = address.rpartition(":")

    class Listener(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    try:
        server = Listener((host.strip("[]"), int(port)), _MetricsHandler)
    except OSError as error:
        raise StartupError(f"Cannot listen for metrics on {address}: {error.strerror}.") from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
