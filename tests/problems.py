"""Random small models for property tests."""

import numpy as np

from reticent.problem.model import Model


def random_model(seed: int, sensors=2, secrets=2, useful=2, symbols=2, sparse=False) -> Model:
    """Dirichlet prior and channel; `sparse` plants zeros in the channel."""
    rng = np.random.default_rng(seed)
    channel = rng.dirichlet(np.ones(symbols), (sensors, secrets, useful))
    if sparse:
        channel = np.where(rng.random(channel.shape) < 0.3, 0.0, channel)
        channel[..., 0] += 1e-3
        channel /= channel.sum(-1, keepdims=True)
    return Model(
        prior=rng.dirichlet(np.ones(secrets * useful)).reshape(secrets, useful),
        channel=channel,
        secrets=tuple(f"s{i}" for i in range(secrets)),
        useful=tuple(f"u{i}" for i in range(useful)),
        sensors=tuple(f"a{i}" for i in range(sensors)),
        symbols=tuple(f"z{i}" for i in range(symbols)),
    )


def random_chain(seed: int, stays: float = 0.7, **sizes) -> Model:
    """The same with a pair that moves: it stays with about this probability, else it goes anywhere."""
    model = random_model(seed, **sizes)
    pairs = model.prior.size
    elsewhere = np.random.default_rng([seed, 1]).dirichlet(np.ones(pairs), pairs)
    moves = stays * np.eye(pairs) + (1 - stays) * elsewhere
    return model.moving(moves.reshape(model.prior.shape * 2))
