"""`python -m tests.gateway.make_demo`: trains the policy that `reticent serve --demo` plays, and ships it."""

from dataclasses import asdict, replace

from reticent import Confidence, Process, Task, train
from reticent.gateway.demo import POLICY, demo_model
from reticent.policy.saved import policy_file
from reticent.problem.enforcement import Coarsen
from reticent.provenance import provenance
from reticent.solve.a2c import RECIPES

STEPS = 150_000


def main() -> None:
    task = Task(demo_model(), Confidence(0.8), enforcement=Coarsen(), horizon=30)
    # Narrow, so that the file is small.
    recipe = replace(RECIPES["default"], width=16)
    policy = train(Process.of(task), STEPS, seed=0, recipe=recipe)
    made = {name: value for name, value in provenance().items() if name != "command"}
    policy_file(policy, task, asdict(recipe), made).save(POLICY)
    POLICY.chmod(0o644)


if __name__ == "__main__":
    main()
