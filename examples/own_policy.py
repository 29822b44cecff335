"""Your own policy: checked, evaluated, certified and audited."""

import jax.numpy as jnp

import reticent as rt
from reticent.problem.synthetic import two_binary_sensors


class FirstAllowed(rt.Policy):
    """The first sensor that may speak, until the provider is fairly sure of U."""

    def act(self, key, public):
        sure = public.belief.sum(0).max() > 0.85
        return jnp.where(sure, public.allowed.size - 1, jnp.argmax(public.allowed))


task = rt.Task(two_binary_sensors(), rt.Confidence(0.8))
solution = rt.Solution.of(task, FirstAllowed())
rt.check_policy(solution.process, solution.policy)
found = solution.evaluate(episodes=20_000)
print(f"Cost {found.cost}, right about U in {found.accuracy_useful}, bound crossed in {found.violation_rate}.")
print(solution.certify().sentence())
print(*solution.audit(episodes=2_000, quick=True).verdict, sep="\n")
