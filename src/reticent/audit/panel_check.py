"""Whether the bound holds for every provider of a panel: their beliefs by Bayes from what was sent, from scratch."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from reticent.audit.findings import Check
from reticent.audit.play import play
from reticent.audit.traces import Traces
from reticent.data.readings import Readings
from reticent.policy.policy import Policy
from reticent.problem.task import Task
from reticent.process.process import Process

EPISODES = 2_048


def panel_checks(
    task: Task, process: Process, policy: Policy, seed: int, recorded: Readings | None = None
) -> list[Check]:
    """One check over the whole panel; none where there is none."""
    limit = task.bound.posterior_limit(len(task.model.secrets))
    if not task.panel or limit is None:
        return []
    found = []
    for member in task.panel:
        # The same episodes each time, and what was sent by this provider's laws.
        _, traces = play(replace(task, model=member), process, policy, EPISODES, seed, recorded)
        found.append(highest_belief(member.prior, traces))
    sentence = (
        f"The beliefs of {len(found)} further providers reached {max(found):.4f} at most, in {EPISODES:,} episodes; "
        f"the bound is {limit:g}."
    )
    return [Check("the bound holds for the panel", max(found) < limit, sentence)]


def highest_belief(prior: Float[np.ndarray, "S U"], traces: Traces) -> float:
    """The largest posterior of a secret at any step of any episode."""
    assert traces.likelihood is not None
    joint, highest = np.broadcast_to(prior, (len(traces), *prior.shape)), float(prior.sum(1).max())
    for step in range(traces.longest):
        joint = joint * traces.likelihood[:, step]
        joint = joint / joint.sum((1, 2), keepdims=True)
        highest = max(highest, float(joint.sum(2).max()))
    return highest
