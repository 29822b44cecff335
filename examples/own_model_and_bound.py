"""Your own model, and a bound of your own, one limit per secret, kept by construction."""

from dataclasses import dataclass

import jax.numpy as jnp

import reticent as rt


@dataclass(frozen=True)
class PerSecret(rt.PosteriorBound):
    name = "per secret"
    home: float
    away: float

    def secret_limits(self, secrets):
        return jnp.stack([jnp.asarray(self.home), jnp.asarray(self.away)])


meter = [[[0.2, 0.8], [0.6, 0.4]], [[0.4, 0.6], [0.9, 0.1]]]
model = rt.Model(channel=[meter], secrets=["home", "away"], useful=["heating", "idle"], sensors=["meter"])
task = rt.Task(model, PerSecret(home=0.9, away=0.6), enforcement=rt.Coarsen(), horizon=20)
found = rt.solve(task, "value-iteration", rounds=50).evaluate(episodes=20_000)
print(f"Cost {found.cost}, bound crossed in {found.violation_rate} of episodes: {task.enforcement.promised}.")
