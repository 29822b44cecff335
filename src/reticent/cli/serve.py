"""`reticent serve`."""

import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from reticent.cli.broker import BrokerOptions
from reticent.cli.configuration import CONFIG, policy_of
from reticent.cli.ledger import LEDGER_ENDING
from reticent.cli.terminal import say_what_is_assumed
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.gateway.mqtt import Broker
    from reticent.gateway.service import Gateway
    from reticent.gateway.share import Share

PAGE_TOKEN = "RETICENT_PAGE_TOKEN"


@dataclass(frozen=True)
class Serve:
    """Run the gateway: readings in, releases out, each in the ledger before it leaves (see `reticent docs gateway`)."""

    policy: Annotated[Positional[Path | None], arg(metavar="POLICY")] = None
    """A policy file whose bound holds by construction: --enforce withhold or coarsen, or --information."""
    ledger: str | None = None
    """The ledger: a file, or postgresql://user@host/database; by default beside the policy."""
    on: Literal["stdio", "mqtt"] = "stdio"
    """JSON lines on standard input and output, or an MQTT broker."""
    mqtt: Annotated[BrokerOptions, arg(name="")] = field(default_factory=BrokerOptions)
    home_assistant: bool = False
    """Announce subjects to Home Assistant, by MQTT discovery."""
    rest: float = 60.0
    """Seconds between a stop and the next session of the same subject."""
    step: float | None = None
    """Seconds of a step of time, for a policy of a problem that goes on whose model does not say it."""
    stale: float = 30.0
    """Drop readings that are older than this many seconds."""
    subjects: int = 10_000
    """Subjects kept in memory; others are restored from the ledger."""
    workers: int = 1
    """Processes that share the subjects, each on a core of its own; needs --on mqtt."""
    plain: bool = False
    """For small devices: numpy only. Starts at once in little memory; decisions that merge readings take longer."""
    no_drift_check: bool = False
    """Keep releasing readings of subjects that the model does not fit."""
    page: Annotated[tuple[int, ...] | None, arg(metavar="[PORT]")] = None
    """Serve a page that shows the gateway live, on port 8470 or this one."""
    page_host: str = "127.0.0.1"
    """Address to serve the page on. Any other than this machine's own needs the token that is printed."""
    metrics: Annotated[tuple[int, ...] | None, arg(metavar="[PORT]")] = None
    """Serve /metrics for Prometheus, /healthz and /readyz, on port 9470 or this one."""
    metrics_host: str = "127.0.0.1"
    """Address to serve the metrics on."""
    log_format: Literal["text", "json"] = "text"
    """Logs on standard error as lines for people, or as one JSON object per line."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Log from this level on."""
    config: Path | None = None
    """A TOML file with any of these options, by their names; what the command line says wins."""
    check: bool = False
    """Check policy, ledger and options, and end."""
    demo: bool = False
    """Run a made-up problem with simulated visitors and a temporary ledger."""

    @classmethod
    def options(cls) -> frozenset[str]:
        """The names of all options that a configuration may set."""
        names = [each.name for kind in (cls, BrokerOptions) for each in fields(kind)]
        return frozenset(name.replace("_", "-") for name in names) - {"policy", "mqtt", CONFIG}

    def run(self) -> None:
        """Serve until the input ends, the page's stop button, SIGTERM or Ctrl-C."""
        if self.policy is None and self.config is not None and not self.demo:
            return replace(self, policy=policy_of(self.config, self.options()), config=None).run()
        from reticent.gateway.logs import log_to_stderr
        from reticent.gateway.systemd import Systemd

        self._check()
        if self.plain:
            from reticent.guard.program import PLAIN

            # Read once the solver is first used, here and by workers.
            os.environ[PLAIN] = "1"
        broker = self.mqtt.settings() if self.on == "mqtt" else None
        log_to_stderr(self.log_format, self.log_level)
        with self._gateway() as gateway, contextlib.ExitStack() as open_things:
            if self.check:
                print(f"reticent: ready to serve policy {gateway.runtime.digest[:12]}.", file=sys.stderr)
                return
            systemd = Systemd()
            ending = open_things.enter_context(Ending(systemd.turned))
            systemd.ready(f"Serves policy {gateway.runtime.digest[:12]}")
            if self.workers > 1:
                from reticent.gateway.workers import work_together

                work_together(partial(_work, self, os.getpid()), self.workers, ending)
                return systemd.stopping()
            self._show(gateway, open_things)
            self._serve(gateway, ending, broker)
            systemd.stopping()
            counters = ", ".join(f"{name} {count:,}" for name, count in gateway.counters.items() if count)
            print(f"reticent: ended; {counters or 'nothing came'}.", file=sys.stderr)

    def _check(self) -> None:
        if (self.policy is None) != self.demo:
            raise InputError("Give either a policy file or --demo.")
        if self.demo and (self.ledger or self.on == "mqtt"):
            raise InputError("--demo has its own ledger and sensors: leave out --ledger and --on.")
        if self.workers < 1:
            raise InputError(f"--workers must be at least 1; it is {self.workers}.")
        if self.workers > 1 and (self.on != "mqtt" or self.page is not None):
            raise InputError("--workers needs --on mqtt, and has no page: leave out --page, and look at --metrics.")
        if self.workers > 1 and self.mqtt.share is not None:
            raise InputError("--share divides readings, of which each worker must hear all: leave out --workers.")
        if self.workers > 1 and self.metrics == ():
            raise InputError("Say where the first worker's metrics are, such as --metrics 9470: the others follow.")
        for name, ports in (("page", self.page), ("metrics", self.metrics)):
            if ports is not None and len(ports) > 1:
                raise InputError(f"--{name} takes one port.")
        if self.home_assistant and self.on != "mqtt":
            raise InputError("--home-assistant needs --on mqtt.")

    @contextlib.contextmanager
    def _gateway(self, share: "Share | None" = None) -> "Iterator[Gateway]":
        """The gateway on its ledger, which is closed afterwards; or a worker's, with its share of the subjects."""
        from reticent.gateway.demo import POLICY, REST_SECONDS
        from reticent.gateway.ledger import LedgerTrouble
        from reticent.gateway.loading import load_runtime
        from reticent.gateway.moving_service import gateway_of
        from reticent.gateway.opening import open_ledger
        from reticent.gateway.settings import Settings
        from reticent.gateway.share import EVERYTHING

        policy = self.policy or POLICY
        rest = REST_SECONDS if self.demo else self.rest
        settings = Settings(policy, rest, self.stale, self.subjects, not self.no_drift_check, share or EVERYTHING)
        runtime = load_runtime(policy, self.step)
        if share is None:
            say_what_is_assumed(runtime.task.model)
        with tempfile.TemporaryDirectory() if self.demo else contextlib.nullcontext() as folder:
            beside = policy.with_suffix(LEDGER_ENDING) if folder is None else Path(folder) / "demo.ledger.db"
            where = self.ledger or str(beside)
            try:
                ledger = open_ledger(where, worker=share is not None)
            except LedgerTrouble as trouble:
                raise InputError(str(trouble)) from trouble
            with ledger:
                if share is None:
                    print(
                        f"reticent: the ledger is {where}\nreticent: {runtime.assumption}", file=sys.stderr, flush=True
                    )
                yield gateway_of(runtime)(runtime, ledger, settings)

    def _show(self, gateway: "Gateway", open_things: contextlib.ExitStack) -> None:
        """Serve the page and the metrics, where they are asked for, until `open_things` are closed."""
        if self.page is not None:
            from reticent.gateway.page import Page

            page = Page(gateway, self.page_host, *self.page, token=os.environ.get(PAGE_TOKEN))
            open_things.callback(page.close)
            print(f"reticent: look at {page.address}", file=sys.stderr, flush=True)
        if self.metrics is not None:
            try:
                from reticent.gateway.health import Health
            except ImportError as error:
                raise InputError("--metrics needs a package: pip install 'reticent[metrics]'.") from error

            health = Health(gateway, self.metrics_host, *self.metrics)
            open_things.callback(health.close)
            print(f"reticent: metrics are on {self.metrics_host}:{health.port}/metrics", file=sys.stderr, flush=True)

    def _serve(self, gateway: "Gateway", ending: Callable[[], bool], broker: "Broker | None") -> None:
        if broker is not None:
            import asyncio

            from reticent.gateway.mqtt import MqttService

            service = MqttService(gateway, broker, self.home_assistant)
            return asyncio.run(service.serve(ending))
        from reticent.gateway.stdio import serve_stdio

        if not self.demo:
            return serve_stdio(gateway, sys.stdin.fileno(), sys.stdout.fileno(), ending)
        from reticent.gateway.demo import Visitors

        # Takes about a second: in a thread, so that the demo starts at once.
        threading.Thread(target=_tell_of_visitors, name="forecast", daemon=True).start()
        with contextlib.closing(Visitors(gateway)) as visitors:
            return serve_stdio(gateway, visitors.readings, sys.stdout.fileno(), ending)


def _work(options: Serve, parent: int, share: "Share") -> None:
    """One of several workers: its share of the subjects, until it is asked to end or its parent is gone."""
    from reticent.gateway.logs import log_to_stderr
    from reticent.gateway.workers import orphaned

    log_to_stderr(options.log_format, options.log_level)
    own = replace(options, metrics=options.metrics and tuple(port + share.index for port in options.metrics))
    with own._gateway(share) as gateway, contextlib.ExitStack() as open_things:
        own._show(gateway, open_things)
        ending = open_things.enter_context(Ending(lambda: None))
        own._serve(gateway, lambda: ending() or orphaned(parent), own.mqtt.settings())


def _tell_of_visitors() -> None:
    """Print how often the useful value of visitors stays, and what a provider who knows that would learn."""
    from reticent.gateway.demo import POLICY, SESSIONS
    from reticent.gateway.forecast import forecast
    from reticent.gateway.runtime import Runtime
    from reticent.gateway.sessions import STAYS

    visit = f"visitors come for {SESSIONS} sessions, and after {100 * STAYS:g} % of them continue the same activity"
    expected = forecast(Runtime.load(POLICY), STAYS, most_sessions=SESSIONS)
    print(f"reticent: in this demo {visit}. {expected.informed}", file=sys.stderr, flush=True)


class Ending(contextlib.AbstractContextManager["Ending"]):
    """The first SIGTERM or Ctrl-C asks for an orderly end; the second interrupts at once.

    Services call it in every turn of their loop, which the service manager is told: whether it is time to end.
    """

    def __init__(self, turned: Callable[[], None]) -> None:
        self.asked, self._turned = False, turned
        self._before = {each: signal.signal(each, self._ask) for each in (signal.SIGTERM, signal.SIGINT)}

    def __call__(self) -> bool:
        self._turned()
        return self.asked

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _ask(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
