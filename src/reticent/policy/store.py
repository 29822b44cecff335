"""One file per policy: safetensors for the numbers, a JSON header for everything else. Never pickle, never JAX.

The header holds the task (problem, bound, prices, enforcement), how the policy was made, and by what; evaluating a
policy needs nothing but its file.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.problem.array_file import read_arrays, write_arrays
from reticent.problem.monitoring import Monitoring
from reticent.problem.task import Task

FORMAT, OLD_FORMAT = "reticent-policy-2", "reticent-policy-1"
HEADER = "reticent"
# The header's entry that says what the policy is for: a problem with a stop, or one that goes on.
TASK, MONITORING = "task", "monitoring"


@dataclass(frozen=True, eq=False)
class PolicyFile:
    """What a policy file holds: `kind` says how to rebuild the policy from `arrays` and `settings`.

    It was made for a `Task`, or for a `Monitoring` where the hidden pair moves and nothing stops.
    """

    kind: str
    made_for: Task | Monitoring
    settings: dict[str, Any]
    arrays: dict[str, np.ndarray]
    provenance: dict[str, Any]

    @property
    def task(self) -> Task:
        """What it was made for; an `InputError` for a policy of a problem that goes on."""
        if isinstance(self.made_for, Monitoring):
            raise InputError(
                "This policy is for a problem that goes on, and here one for a problem with a stop is needed. "
                "`reticent docs moving` says what can be done with it."
            )
        return self.made_for

    @property
    def monitoring(self) -> Monitoring:
        """What it was made for; an `InputError` for a policy of a problem with a stop."""
        if isinstance(self.made_for, Task):
            raise InputError(
                "This policy is for a problem with a stop, and here one that goes on is needed. Train it on a problem "
                "with a transition: see `reticent docs moving`."
            )
        return self.made_for

    def save(self, path: str | Path) -> None:
        """Write the file whole or not at all; numbers that are not finite are refused."""
        if not all(np.isfinite(array).all() for array in self.arrays.values()):
            raise InputError("The policy holds numbers that are not finite, so it was not saved: training diverged.")
        header = {
            "format": FORMAT,
            "kind": self.kind,
            TASK if isinstance(self.made_for, Task) else MONITORING: self.made_for.to_json(),
            "settings": self.settings,
            "provenance": self.provenance,
        }
        write_arrays(path, self.arrays, {HEADER: json.dumps(header, allow_nan=False)})

    @classmethod
    def load(cls, path: str | Path) -> "PolicyFile":
        """Read a policy file; anything else is refused with a sentence."""
        arrays, metadata = read_arrays(path, "policy file")
        try:
            header = json.loads(metadata.get(HEADER, ""))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{str(path)!r} holds arrays but no reticent header, so it is no policy file.") from error
        if isinstance(header, dict) and header.get("format") == OLD_FORMAT:
            raise InputError(
                f"{str(path)!r} was made by reticent 0.4 or earlier, which named bounds otherwise. Make it "
                "anew with `reticent train`; the header of the file holds the options that it was made with."
            )
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise InputError(f"{str(path)!r} is not of the format {FORMAT!r}.")
        try:
            goes_on = MONITORING in header
            made_for = Monitoring.from_json(header[MONITORING]) if goes_on else Task.from_json(header[TASK])
            return cls(header["kind"], made_for, header["settings"], arrays, header["provenance"])
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"The header of {str(path)!r} is damaged ({type(error).__name__}: {error}).") from error
