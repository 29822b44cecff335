"""All methods, by the names that spec files give them."""

from reticent.policy.heuristics import BASELINES
from reticent.problem.mechanisms import MECHANISMS
from reticent.solve.actor_critic import PPO
from reticent.study.baselines import Baseline, Comparator, OneStep, Unprotected
from reticent.study.choices import USUAL_CHOICES
from reticent.study.method import Method
from reticent.study.trained import Agent, Iterated, LowerBound, paper_agent

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Agent("ppo", PPO),
        paper_agent(USUAL_CHOICES),
        Iterated("value-iteration", "label"),
        Iterated("value-kernels", "value"),
        *(OneStep() if name == OneStep.name else Baseline(name) for name in BASELINES),
        *(Comparator(name) for name in MECHANISMS),
        Unprotected(),
        LowerBound(),
    )
}
