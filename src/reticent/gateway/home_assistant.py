"""Home Assistant's view of subjects: by MQTT discovery, three sensors each.

All of it follows from what was released: the last symbol, what the provider believes of the useful value, and how much
of the bound is left. Which secret is the likeliest is not among it.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from reticent.gateway.messages import Outgoing
from reticent.gateway.service import Gateway

DISCOVERY = "homeassistant"


class HomeAssistant:
    """Messages for Home Assistant. The announcements of a subject come with its first news."""

    def __init__(self, gateway: Gateway, topic: str) -> None:
        self._gateway, self._topic = gateway, topic
        self._announced: set[str] = set()

    def announce_again(self) -> None:
        """The broker may have forgotten what it was told."""
        self._announced.clear()

    def news(self, sent: Sequence[Outgoing]) -> Iterator[tuple[str, bytes]]:
        """Topics and payloads, all to be retained."""
        for subject in dict.fromkeys(out.subject for out in sent):
            line = self._gateway.look(subject)
            last = [out for out in sent if out.subject == subject and out.symbol is not None]
            if line is None or not last:
                continue
            if subject not in self._announced:
                if len(self._announced) >= self._gateway.settings.subjects:
                    self.announce_again()
                self._announced.add(subject)
                yield from self._announcements(subject)
            yield self._state_topic(subject), self._state(last[-1], line)

    def _state_topic(self, subject: str) -> str:
        return f"{self._topic}/{subject}"

    def _state(self, last: Outgoing, line: dict[str, Any]) -> bytes:
        names = self._gateway.runtime.task.model.useful
        chances = {name: round(100 * chance, 1) for name, chance in zip(names, line["useful"], strict=True)}
        likeliest = max(chances, key=lambda name: chances[name])
        state = {"symbol": last.symbol, "sensor": last.sensor, "likeliest": likeliest, "chances": chances}
        return json.dumps({**state, "left": round(100 * line["left"], 1)}, ensure_ascii=False).encode()

    def _announcements(self, subject: str) -> Iterator[tuple[str, bytes]]:
        node = f"reticent_{_identifier(subject)}"
        device = {"identifiers": [node], "name": f"reticent {subject}", "manufacturer": "reticent"}
        sensors: dict[str, dict[str, Any]] = {
            "symbol": {"name": "Last sent", "value_template": "{{ value_json.symbol }}"},
            "useful": {
                "name": "Provider believes",
                "value_template": "{{ value_json.likeliest }}",
                "json_attributes_topic": self._state_topic(subject),
                "json_attributes_template": "{{ value_json.chances | tojson }}",
            },
            "left": {"name": "Budget left", "value_template": "{{ value_json.left }}", "unit_of_measurement": "%"},
        }
        for what, sensor in sensors.items():
            told = {"unique_id": f"{node}_{what}", "state_topic": self._state_topic(subject), "device": device}
            yield f"{DISCOVERY}/sensor/{node}/{what}/config", json.dumps({**sensor, **told}).encode()


def _identifier(subject: str) -> str:
    """The name in the letters that Home Assistant allows, and never the same for two subjects."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", subject)
    return f"{plain[:40]}_{hashlib.sha256(subject.encode()).hexdigest()[:8]}"
