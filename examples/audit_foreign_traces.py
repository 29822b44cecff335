"""What another system gives away: it sends one of two readings as it is, and a random one in place of the other."""

from pathlib import Path

import numpy as np
import polars as pl

from reticent.audit.audit import audit_traces
from reticent.audit.trace_files import read_traces
from reticent.audit.trial import AuditOptions
from reticent.demo.recorded import people, problem
from reticent.problem.codebook import Codebook

model, rng = problem(), np.random.default_rng(0)
recorded = people(model)
codes, sensors = Codebook.of(model).codes(recorded.values), len(model.sensors)
rows = []
for episode in range(800):
    start = rng.choice(np.flatnonzero(recorded.left >= 5))
    who = {"person": recorded.people[recorded.person[start]], "secret": model.secrets[recorded.secret[start]]}
    for step in range(5):
        sensor, honest = rng.integers(sensors), rng.random() < 0.5
        said = codes[start + step, sensor] if honest else rng.integers(16)
        sent = {"episode": episode, "step": step, "sensor": model.sensors[sensor], "symbol": f"code {said}"}
        rows.append({**sent, **who, "useful": model.useful[recorded.useful[start]]})
pl.DataFrame(rows).write_csv("foreign.csv")

# The same as `reticent audit --traces foreign.csv --quick`, without the page.
audit = audit_traces(read_traces(Path("foreign.csv"), 800).traces, options=AuditOptions(quick=True))
print(*audit.verdict, sep="\n")
for attack in audit.attacks:
    print(f"{attack.attacker:20} U {attack.useful.balanced}, S {attack.secret.balanced}")
