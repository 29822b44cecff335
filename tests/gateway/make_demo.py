"""`python -m tests.gateway.make_demo`: trains the policy that `reticent serve --demo` plays, and ships it."""

from dataclasses import replace

from reticent import Confidence, Process, Task
from reticent.gateway.demo import POLICY, demo_model
from reticent.policy.saved import policy_file
from reticent.problem.enforcement import Coarsen
from reticent.solve.actor_critic import PPO, train
from reticent.study.provenance import provenance

STEPS = 150_000


def main() -> None:
    task = Task(demo_model(), Confidence(0.8), enforcement=Coarsen(), horizon=30)
    # Narrow, so that the file is small.
    recipe = replace(PPO, width=16)
    policy = train(Process.of(task), STEPS, seed=0, recipe=recipe)
    made = {name: value for name, value in provenance().items() if name != "command"}
    policy_file(policy, task, made).save(POLICY)
    POLICY.chmod(0o644)


if __name__ == "__main__":
    main()
