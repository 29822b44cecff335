"""What the provider knows.

Beliefs are kept in 64-bit floats, because a bound on them must not depend on rounding: importing this room
switches JAX's 64-bit mode on. Networks stay in 32-bit floats explicitly.
"""

import jax

jax.config.update("jax_enable_x64", True)
