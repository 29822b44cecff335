"""The shape legend.

S secrets, U useful values, A sensors, Z symbols (what one reading can be), T steps, N parallel episodes.
An action is an index into the sensors; the index A, one past the last sensor, means stop.
O options of what to send for a reading: 0 sends it as it is, m >= 1 sends the merged symbol m. Y symbols that can be
sent: the Z readings, then the merged symbols.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    from jax import Array
else:
    # Any array with a dtype and a shape passes at run time, so that code without JAX can use the legend too.
    Array = Any

Scalar: TypeAlias = Float[Array, ""]
Index: TypeAlias = Int[Array, ""]
Flag: TypeAlias = Bool[Array, ""]
PRNGKey: TypeAlias = Any
# Of numpy or of JAX.
Belief: TypeAlias = Float[Any, "S U"]
Channel: TypeAlias = Float[Any, "A S U Z"]
Kernels: TypeAlias = Float[Any, "*N A O Z"]
PerSensor: TypeAlias = Float[Any, " A"]
Allowed: TypeAlias = Bool[Any, " A_plus_stop"]
