"""The policy of a file as a gateway serves it, whether its secret moves or not."""

from pathlib import Path

from reticent.errors import InputError
from reticent.gateway.moving_runtime import MovingRuntime
from reticent.gateway.runtime import Runtime, check_promise, file_and_digest
from reticent.problem.monitoring import Monitoring


def load_runtime(
    path: str | Path, seconds: float | None = None, allow_unbounded: bool = False
) -> Runtime | MovingRuntime:
    """The policy of this file, if its bound holds by construction; one without a bound only where allowed.

    `seconds` is the length of a step of a problem that goes on, where its model does not say it.
    """
    file, digest = file_and_digest(path)
    check_promise(file.made_for, allow_unbounded)
    if isinstance(file.made_for, Monitoring):
        return MovingRuntime(file, digest, step_seconds(file.made_for, seconds))
    if seconds is not None:
        raise InputError("--step is for policies of problems that go on, and this one has a stop. Leave it out.")
    return Runtime(file, digest)


def step_seconds(task: Monitoring, given: float | None) -> float:
    """The length of a step, as the model was fitted or as given."""
    fitted = (task.model.fitted or {}).get("step")
    if fitted is not None and given is not None and given != fitted:
        raise InputError(f"--step is {given:g} seconds, but the chain was fitted to steps of {fitted:g}. Leave it out.")
    seconds = given if fitted is None else float(fitted)
    if seconds is None:
        raise InputError("The model does not say how long a step of time is. Give --step SECONDS.")
    if not 0 < seconds < 1e9:
        raise InputError(f"A step lasts more than 0 seconds, not {seconds:g}.")
    return seconds
