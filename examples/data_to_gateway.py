"""From a data frame to a model, a policy, and a gateway that decides reading by reading (here offline)."""

import numpy as np
import polars as pl

import reticent as rt
from reticent.gateway.runtime import Runtime
from reticent.problem.codebook import Codebook

rng = np.random.default_rng(0)
who, sits, smokes = (np.repeat(labels, 100) for labels in np.indices((3, 2, 2)).reshape(3, -1))
table = pl.DataFrame({"who": who, "t": np.arange(1200.0), "sits": sits, "smokes": smokes})
table = table.with_columns(arm=rng.normal(2 * sits + smokes), leg=rng.normal(sits + 2 * smokes))
# In the table labels change, from one task of a protocol to the next; during an episode they stay.
model = rt.fit(table, "who", "t", ["arm", "leg"], useful="sits", secret="smokes", codes=6, static=True)
print(f"Calibration error on people left out: {model.fitted['tempering']['calibration_error']:.3f}")
task = rt.Task(model, rt.Confidence(0.7), enforcement=rt.Coarsen(), horizon=20)
rt.solve(task, "ppo", steps=200_000).save("wearable.safetensors")

gateway, codebook = Runtime.load("wearable.safetensors"), Codebook.of(model)
known = gateway.first()
for row in table.filter(sits=1, smokes=1).select("arm", "leg").to_numpy()[:10]:
    if (sensor := (decision := gateway.decide(known, rng)).sensor) is not None:
        sent, known = gateway.release(known, decision, int(codebook.codes_of(sensor, row[None, sensor, None])[0]), rng)
        print(f"{gateway.sensors[sensor]} sends {gateway.symbols[sent.symbol]}: {gateway.confidence(known):.2f} < 0.7")
