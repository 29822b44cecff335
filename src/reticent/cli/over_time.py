"""What commands say about problems that go on."""

from dataclasses import replace
from typing import TYPE_CHECKING

from reticent.cli.terminal import say, stages
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.evaluate.monitoring import Monitored
    from reticent.problem.monitoring import Monitoring

ESTIMATES = (
    "cost",
    "accuracy_useful",
    "accuracy_secret",
    "accuracy_secret_hindsight",
    "releases",
    "locked",
    "spent_bits",
    "directed_bits",
)


def with_kernels(task: "Monitoring", name: str) -> "Monitoring":
    """The task under these kernels."""
    from reticent.policy.ongoing_settings import KERNELS

    if task.enforcement.replaces:
        return replace(task, enforcement=task.enforcement.with_rule(KERNELS[name]()))
    if name != "label":
        raise InputError(f"--kernels {name} needs --enforce withhold or coarsen.")
    return task


def warn_of_lock_up(task: "Monitoring") -> None:
    """Say it where the chain is too slow for the bound; a chain that itself exceeds it is refused."""
    from reticent.evaluate.lock_up import lock_up
    from reticent.process.compile_cache import use_compile_cache
    from reticent.process.ongoing import OngoingProcess

    use_compile_cache()
    with stages("simulating a few days, to see whether they lock"):
        sentence = lock_up(OngoingProcess(task))
    if sentence is not None:
        say(sentence)


def print_days(found: "Monitored") -> None:
    """What a policy does over a day, as tables."""
    from rich.console import Console
    from rich.table import Table

    title = f"{found.days:,} days of {found.steps:,} steps, seed {found.seed}: estimates with 95 % intervals, per step"
    means = Table("", "value", "from", "to", title=title)
    for name in ESTIMATES:
        if (number := getattr(found, name)) is not None:
            means.add_row(name.replace("_", " "), *(f"{x:.4f}" for x in (number.value, number.low, number.high)))
    course = Table("from step", "silent", "locked", "useful right", "bits", title="By time of the day")
    for part in found.course:
        shares = (f"{100 * part[name]:.1f} %" for name in ("silent", "locked", "accuracy_useful"))
        course.add_row(str(part["step"]), *shares, f"{part['bits']:.4f}")
    for table in (means, course):
        for column in table.columns[1:]:
            column.justify = "right"
        Console().print(table)
    print(found.silence)
    print(
        f"The highest posterior of a secret: {found.highest_filter:.6f} of the present, {found.highest_smoother:.6f} "
        f"of any moment at the end of the day, {found.highest_prediction:.6f} of up to 60 steps ahead."
    )
