"""What all who compute the guarantee share: its small numbers, and the names of the symbols that it sends.

`reticent.guard.safety` says what they are for. No JAX here, so that the gateway reads the same numbers.
"""

from collections.abc import Sequence

# Distance of theta from L_B; near the bound, what is left of the way to it after this share.
MARGIN, SHARE = 1e-4, 0.2
# Of a pair that moves: the share of the way to theta that one release may use up, but at least a step, and how near to
# the limit it may lead.
PACE, STEP, CLOSEST = 0.3, 1e-9, 1e-6
# So far below the limit the posteriors of a past moment must be to be forgotten: more than rounding adds up to.
RETIRED = 1e-9
# With the confidence this near to the bound nothing is released: rounding could bridge the rest.
NEAREST = 1e-9
# Share of every reading that is spread over the merged symbols where rounding alone makes one of them unsafe.
BLEND = 1e-6
# Readings are merged only where it helps by more than this share of their probability: whatever is merged without
# need is lost for the steps to come.
RAW_BONUS = 1e-2
# A sensor that moves the belief by less than this, in total variation, is not allowed: a policy could loop on it.
LEAST_MOVE = 1e-6
# Where there are more rows than this, a program starts with those that can be violated most, and goes on with those
# that its solution violates most, so many times.
ROWS, ROUNDS = 16, 3
# How far the columns of a kernel may miss one.
KERNEL_SUM_TOLERANCE = 1e-9

# How often value kernels take tangents anew.
REFINEMENTS = 2
# Below this probability a merged symbol has no posterior worth a tangent.
LEAST_MASS = 1e-9


def label_symbols(declares: bool, useful: Sequence[str]) -> list[str]:
    """Names of the merged symbols: one for each useful value that they declare, or the one that declares nothing."""
    return [f"merged: {name}" for name in useful] if declares else ["withheld"]


def quadratic_symbols(declares: bool, useful: Sequence[str]) -> list[str]:
    """The same with quadratic kernels: one symbol more for readings that are no sign of any useful value."""
    return [*(label_symbols(True, useful) if declares else []), "withheld"]


def value_symbols(declares: bool, useful: Sequence[str]) -> list[str]:
    """The same with value kernels, where a declaration can be final or not."""
    return [f"{what}: {name}" for what in ("declare", "go on") for name in useful] if declares else ["withheld"]
