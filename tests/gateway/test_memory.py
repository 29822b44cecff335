"""Memory is bounded: subjects that are forgotten are restored from the ledger."""

import gc
import tracemalloc

import numpy as np
import pytest

from reticent.gateway import view
from reticent.gateway.messages import Message
from tests.gateway.parts import Place


def test_memory_holds_so_many_subjects_and_the_ledger_brings_back_the_others(tmp_path):
    place = Place(tmp_path, subjects=3)
    names = [f"subject {i}" for i in range(10)]
    for name in names:
        place.tick(name)
    assert place.gateway.snapshot()["in_memory"] == 3
    assert [place.tick(name)[0].step for name in names] == [1] * 10
    place.ledger.close()


@pytest.mark.slow
def test_memory_does_not_grow_with_all_who_ever_came(tmp_path, monkeypatch):
    """Eight times as many subjects as fit in: what is kept stays the same, where ten of them take some 20 KB."""
    monkeypatch.setattr(view, "SHOWN_SUBJECTS", 10)
    place, kept, rng = Place(tmp_path, subjects=10), [], np.random.default_rng(0)
    sensor = place.asked()
    tracemalloc.start()
    for crowd in range(8):
        place.clock.now += 1
        codes = rng.choice(place.runtime.task.model.symbols[15:35], 10)
        crowded = [Message(f"{crowd} {i}", sensor, symbol=str(code)) for i, code in enumerate(codes)]
        place.gateway.delivered(place.gateway.handle(crowded))
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert place.gateway.counters["released"] == 80
    assert max(kept[4:]) - kept[3] < 15_000
    place.ledger.close()
