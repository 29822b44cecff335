"""Monitoring: a problem that goes on, of a hidden pair that moves. What is wanted of it, and how the bound is kept."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from reticent.errors import InputError
from reticent.problem.bound import Bound
from reticent.problem.enforcement import USUAL, Coarsen, Enforcement, Promise, default_enforcement
from reticent.problem.model import Model
from reticent.problem.objective import Objective
from reticent.problem.panel import check_panel
from reticent.problem.task import AnyTask

# In place of a sensor's name: time passed and nothing was sent.
SILENT = "silent"


@dataclass(frozen=True, eq=False)
class Monitoring(AnyTask):
    """A problem without a stop: at each step of time one sensor speaks, or the device is silent.

    A step costs C_T if something is sent, and lambda (1 - max_u P(U_t = u | sent)): the provider's error about the
    present. The bound is on the secret of every moment, past, present and future: P(S_j = s | sent up to t) stays below
    it for all j and t. A bound on information is on the sum of I(S_t; Y_t | sent before t) over every window of time.

    Args:
        model: Who could be there, how they move, and what each sensor says.
        bound: What the provider may come to know at most of the secret of any moment.
        objective: The prices.
        enforcement: How the bound is kept: `Coarsen()`, which is the default, or `Withhold()`.
        horizon: So many steps are a day: what simulations report, and how long training plays before it begins anew.
        slots: How many past moments can be kept open at once; by default as many as the chain needs.
        window: Of a bound on information: over so many steps it is counted, whichever they are.

    Example:
        >>> moves = {"secret": [[0.95, 0.05], [0.05, 0.95]], "useful": [[0.8, 0.2], [0.2, 0.8]]}
        >>> from reticent.problem.synthetic import two_binary_sensors
        >>> rt.Monitoring(two_binary_sensors().moving(moves), rt.Confidence(0.8)).enforcement.name
        'coarsen'
    """

    COUNTS: ClassVar[tuple[str, ...]] = ("horizon", "slots", "window")
    model: Model
    bound: Bound
    objective: Objective = field(default_factory=Objective)
    enforcement: Enforcement = USUAL
    horizon: int = 480
    slots: int | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        if SILENT in self.model.sensors:
            raise InputError(f"{SILENT!r} is a reserved sensor name: it stands for a step of silence. Rename it.")
        self.bound.check(self.model.prior)
        if self.enforcement is USUAL:
            guarded = self.bound.crossable and not self.bound.on_spending
            object.__setattr__(self, "enforcement", Coarsen() if guarded else default_enforcement(self.bound))
        self.enforcement.check(self.bound)
        check_panel(self.model, self.bound, self.enforcement)
        self._check_window()
        masks = self.bound.on_spending and self.enforcement.promise is Promise.NEVER
        if self.bound.crossable and not (self.enforcement.replaces or masks):
            raise InputError(
                f"Over time a bound is kept by what is sent in place of readings, not by {self.enforcement.name!r}. "
                "Use Coarsen() or Withhold(); of a bound on information, Mask()."
            )
        if type(self.horizon) is not int or not 1 <= self.horizon < 2**31:
            raise InputError(f"The horizon must be a whole number of steps, at least one, but is {self.horizon!r}.")
        if self.slots is not None and (type(self.slots) is not int or self.slots < 1):
            raise InputError(f"Slots are a whole number of past moments, at least one, but are {self.slots!r}.")

    @classmethod
    def from_json(cls, task: dict[str, Any]) -> "Monitoring":
        """The task that a policy file holds."""
        return cls(**cls.fields(task))

    def _check_window(self) -> None:
        if self.bound.on_spending != (self.window is not None):
            raise InputError(
                f"The bound is on {self.bound.name} and the window is {self.window}. Over time information is counted "
                "within a window of so many steps: give one with a bound on information, and with no other."
            )
        if self.window is not None and (type(self.window) is not int or self.window < 1):
            raise InputError(f"The window is a whole number of steps, at least one, but is {self.window!r}.")
