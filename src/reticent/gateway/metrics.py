"""Metrics of a gateway for Prometheus. They hold counts only: no name of a subject, no reading, no belief."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from reticent import __version__
from reticent.gateway.census import CONDITIONS
from reticent.gateway.events import Event
from reticent.gateway.guards import KINDS
from reticent.gateway.service import Gateway

# Counters of the gateway that are no outcome of a message.
NO_OUTCOMES = frozenset(("received", "stopped", "sent again", "asked but unusable"))
# Shares of the bound that are left, as quantiles over subjects.
QUANTILES = (0.0, 0.1, 0.5)
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """What Prometheus is told about a gateway, from when it is made until it is closed."""

    def __init__(self, gateway: Gateway) -> None:
        self.registry = CollectorRegistry()
        self._plain = frozenset(gateway.runtime.task.model.symbols)
        self._sent = Counter(
            "reticent_sent", "Releases that have left, as read or merged.", ["form"], registry=self.registry
        )
        for form in ("as read", "merged"):
            self._sent.labels(form)
        self._seconds = Histogram(
            "reticent_batch_seconds",
            "From the receipt of a batch of messages until what it releases is on disk.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.registry.register(_State(gateway))
        self.close = gateway.subscribe(self._notice)

    def text(self) -> bytes:
        """The metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

    def _notice(self, event: Event) -> None:
        if event["kind"] == "release":
            self._sent.labels("as read" if event["symbol"] in self._plain else "merged").inc()
        elif event["kind"] == "batch":
            self._seconds.observe(event["seconds"])


class _State(Collector):
    """Metrics that are read from the gateway when they are asked for."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def describe(self) -> list[Metric]:
        """Nothing: so that registering does not take a census."""
        return []

    def collect(self) -> Iterator[Metric]:
        now = self._gateway.status()
        counted = CounterMetricFamily("reticent_messages", "Messages by what became of them.", labels=["outcome"])
        for name in sorted(now.counters.keys() - NO_OUTCOMES):
            counted.add_metric([name], now.counters[name])
        yield counted
        for name, said in (
            ("received", "Messages received."),
            ("stopped", "Sessions that the policy stopped."),
            ("sent again", "Releases that were sent once more, because nobody confirmed them."),
            ("asked but unusable", "Readings of the asked sensor that could not be released."),
        ):
            yield CounterMetricFamily(f"reticent_{name.replace(' ', '_')}", said, now.counters.get(name, 0))
        subjects = GaugeMetricFamily("reticent_subjects", "Subjects in memory by condition.", labels=["condition"])
        for condition in CONDITIONS:
            subjects.add_metric([condition.replace(" ", "_")], now.census.conditions[condition])
        yield subjects
        left = GaugeMetricFamily(
            "reticent_headroom", "Share of the bound that is left, as quantiles over subjects.", labels=["quantile"]
        )
        for quantile in QUANTILES if now.census.headroom.size else ():
            left.add_metric([str(quantile)], now.census.headroom[int(quantile * (now.census.headroom.size - 1))])
        yield left
        yield GaugeMetricFamily(
            "reticent_undelivered", "Releases on disk that nobody has confirmed yet.", now.undelivered
        )
        trouble = GaugeMetricFamily("reticent_trouble", "1 while this kind of trouble lasts.", labels=["kind"])
        for kind in KINDS:
            trouble.add_metric([kind], kind in now.troubles)
        yield trouble
        about = {"version": __version__, "policy_sha256": self._gateway.runtime.digest}
        yield InfoMetricFamily("reticent", "The version, and the policy that is served.", about)
