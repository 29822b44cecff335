"""A secret that moves: what the guard promises, checked by code of its own, and what it costs."""

import sys
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from benchmarks.catalogue import Measured
from benchmarks.record import interval
from reticent.belief.bayes import update
from reticent.errors import InputError
from reticent.evaluate.monitoring import Monitored, monitor
from reticent.guard.chain import chain_of
from reticent.policy.ongoing import CheapestStep
from reticent.policy.policy import NEVER, RandomSensor
from reticent.problem.bound import Confidence, Unbounded
from reticent.problem.enforcement import Coarsen, Penalty
from reticent.problem.model import Model
from reticent.problem.monitoring import Monitoring
from reticent.problem.task import Task
from reticent.process.days import play_days
from reticent.process.ongoing import OngoingProcess
from reticent.process.process import Process
from reticent.process.source import draw
from reticent.solve.actor_critic import LONG_RUN, train

# A million steps. Future rows and slots of one size, so that all chains share one compiled program.
CHAINS, DAYS, STEPS, AHEAD, SLOTS = 40, 50, 500, 24, 96
# Sessions of today's guarantee begin anew after so many steps.
SESSION = 10
# At so many times somebody looks back at all moments before.
LOOKS = 10
RANDOM = RandomSensor(jnp.asarray(NEVER))


def promise() -> Measured:
    rows = [_promised(seed) for seed in _seeds()]
    summary = []
    for guard in ("present, past and future", "per session"):
        found = [row[guard] for row in rows]
        summary.append(
            {
                "guard": guard,
                "chains": len(rows),
                "steps": CHAINS * DAYS * STEPS,
                "moments_at_or_over_the_bound": int(sum(each["over"] for each in found)),
                "chains_broken": int(sum(each["over"] > 0 for each in found)),
                "days_broken_share": float(np.mean([each["days"] for each in found])),
                "largest_posterior_over_bound": float(max(each["largest"] for each in found)),
                "releases_per_step": float(np.mean([each["sent"] for each in found])),
            }
        )
    notes = [
        f"{CHAINS} random chains (2 secrets, 2 useful values, 2 sensors, 4 symbols), each with a bound of its own that "
        f"it allows, {DAYS} days of {STEPS} steps, a random sensor whenever one is allowed. Posteriors are computed "
        "from what was sent by matrix products written in this benchmark: of every moment as it passes, of all moments "
        f"before at {LOOKS} times of the day, and of {AHEAD} steps ahead of each of those times.",
        f"Per session: the guarantee for a pair that stands still, begun anew every {SESSION} steps, under which any "
        "moment counts that somebody who knows how the pair moves is too sure of.",
    ]
    return summary, notes


def _seeds() -> list[int]:
    """Of chains whose own dynamics leave their bound some room, and that need no more rows than are set aside."""
    found, seed = [], 0
    while len(found) < CHAINS:
        try:
            if len(chain_of(*_chain(seed)).ahead) <= AHEAD:
                found.append(seed)
        except InputError:
            pass
        seed += 1
    return found


def _chain(seed: int) -> tuple[Model, Float[np.ndarray, " S"]]:
    """A random chain, and a bound."""
    rng = np.random.default_rng(seed)
    stays = rng.uniform(0.3, 0.95)
    moves = stays * np.eye(4) + (1 - stays) * rng.dirichlet(np.ones(4), 4)
    model = Model(
        prior=rng.dirichlet(np.full(4, 4.0)).reshape(2, 2),
        channel=rng.dirichlet(np.ones(4), (2, 2, 2)),
        secrets=["s0", "s1"],
        useful=["u0", "u1"],
        sensors=["a0", "a1"],
        transition=moves.reshape(2, 2, 2, 2),
    )
    return model, np.full(2, rng.uniform(0.6, 0.95))


def _promised(seed: int) -> dict[str, dict[str, float]]:
    model, limits = _chain(seed)
    task = Monitoring(model, Confidence(float(limits[0])), horizon=STEPS)
    process = OngoingProcess(task, _padded(model, limits), SLOTS)
    ours = play_days(process, RANDOM.act, DAYS, seed)
    told, sent = _sessions(model, limits[0], seed)
    print(f"chain {seed}", file=sys.stderr, flush=True)
    return {
        "present, past and future": _known(model, limits[0], ours.likelihood, ours.sent),
        "per session": _known(model, limits[0], told, sent),
    }


def _padded(model: Model, limits: Float[np.ndarray, " S"]):
    """The chain with AHEAD future rows, whether it needs them all or not."""
    chain = chain_of(model, limits)
    ahead = [*chain.ahead]
    while len(ahead) < AHEAD:
        ahead.append(ahead[-1] @ chain.transition.T)
    return chain._replace(ahead=np.array(ahead))


def _sessions(model: Model, limit: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same under the guarantee for a pair that stands still: likelihoods of what was sent, and when it was."""
    process = Process.of(Task(model.moving(None), Confidence(float(limit)), enforcement=Coarsen()))
    keys = jax.random.split(jax.random.key(seed), DAYS)
    told, sent = jax.device_get(_session_days(process, jnp.asarray(model.dynamics.reshape(4, 4)), keys))
    return np.asarray(told), np.asarray(sent)


@eqx.filter_jit
def _session_days(process: Process, moves: jax.Array, keys: jax.Array):
    def one(carry, step_and_key):
        belief, pair = carry
        step, key = step_and_key
        act_key, send_key, move_key = jax.random.split(key, 3)
        public = process.public(jnp.where(step % SESSION == 0, process.prior, belief), jnp.zeros(()))
        action = RANDOM.act(act_key, public)
        emissions = process.emissions(public)[jnp.minimum(action, process.sensors - 1)]
        symbol = draw(send_key, emissions.reshape(4, -1)[pair])
        sent = action < process.sensors
        likelihood = jnp.where(sent, emissions[:, :, symbol], 1.0)
        belief, _ = update(public.belief, likelihood)
        return (belief, draw(move_key, moves[pair])), (likelihood, sent)

    def day(key):
        first_key, key = jax.random.split(key)
        start = process.prior, draw(first_key, process.prior.reshape(-1))
        return jax.lax.scan(one, start, (jnp.arange(STEPS), jax.random.split(key, STEPS)))[1]

    return jax.lax.map(day, keys, batch_size=16)


def _known(model: Model, limit: float, told: np.ndarray, sent: np.ndarray) -> dict[str, float]:
    """What is known of the secret, from scratch: [N T S U] -> counts of moments at or over the bound."""
    moves, told = model.dynamics.reshape(4, 4), told.reshape(DAYS, STEPS, 4)
    forward = np.empty((STEPS, DAYS, 4))
    belief = np.broadcast_to(model.prior.reshape(-1), (DAYS, 4))
    for t in range(STEPS):
        belief = belief * told[:, t]
        forward[t] = belief = belief / belief.sum(1, keepdims=True)
        belief = belief @ moves
    highest = _of_secret(forward)
    for end in np.linspace(0, STEPS - 1, LOOKS + 1).astype(int)[1:]:
        backward, later = np.ones((DAYS, 4)), forward[end]
        for j in range(end - 1, -1, -1):
            backward = (told[:, j + 1] * backward) @ moves.T
            backward = backward / backward.max(1, keepdims=True)
            highest[j] = np.maximum(highest[j], _of_secret(forward[j] * backward))
        for _ in range(AHEAD):
            later = later @ moves
            highest[end] = np.maximum(highest[end], _of_secret(later))
    over = highest >= limit
    largest = (highest - limit).max()
    return {"over": over.sum(), "days": over.any(0).mean(), "largest": largest, "sent": sent.mean()}


def _of_secret(weights: Float[np.ndarray, "*N X"]) -> Float[np.ndarray, "*N"]:
    by_secret = weights.reshape(*weights.shape[:-1], 2, 2).sum(-1)
    return by_secret.max(-1) / by_secret.sum(-1)


# Chances that S and U move in a step.
SPEEDS = {"slow": (0.02, 0.05), "medium": (0.05, 0.1), "fast": (0.1, 0.2)}
DAYS_MEASURED, TRAINED_STEPS = 128, 500_000


def price() -> Measured:
    rows = []
    for speed, (secret, useful) in SPEEDS.items():
        for limit in (0.8, 0.9):
            task = Monitoring(toy(secret, useful), Confidence(limit))
            for guard, process in _guards(task).items():
                found = monitor(process, CheapestStep(process), DAYS_MEASURED, seed=1)
                rows.append(_row(speed, limit, guard, "one-step lookahead", found))
                print(rows[-1], file=sys.stderr, flush=True)
            if speed == "slow":
                process = OngoingProcess(task)
                found = monitor(process, train(process, TRAINED_STEPS, 0, LONG_RUN), DAYS_MEASURED, seed=1)
                rows.append(_row(speed, limit, "present, past and future", "long run (PPO)", found))
    notes = [
        "2 secrets, 3 useful values, 3 sensors of 6 symbols (Dirichlet .8, seed 0); the secret and the useful value "
        "move in a step with probability .02 and .05 (slow), .05 and .1 (medium), .1 and .2 (fast). C_T 1, lambda 50, "
        f"{DAYS_MEASURED} days of 480 steps. Accuracy of U is of its present value, by everything sent so far.",
        f"Long run: PPO on the discounted cost, {TRAINED_STEPS:,} steps, discount {LONG_RUN.discount}, seed 0; its "
        "cost per step is shown without discount.",
        "The highest posteriors of the secret are by the filter, the smoother at the end of the day and 60 steps of "
        "prediction, from what was sent alone.",
    ]
    return rows, notes


def toy(secret: float, useful: float) -> Model:
    """Three sensors that say something of both."""
    stay = np.full((3, 3), useful / 2)
    np.fill_diagonal(stay, 1 - useful)
    return Model(
        channel=np.random.default_rng(0).dirichlet(np.full(6, 0.8), (3, 2, 3)),
        secrets=["s0", "s1"],
        useful=["u0", "u1", "u2"],
        sensors=["a0", "a1", "a2"],
        transition={"secret": [[1 - secret, secret], [secret, 1 - secret]], "useful": stay},
    )


def _guards(task: Monitoring) -> dict[str, OngoingProcess]:
    return {
        "none": OngoingProcess(replace(task, bound=Unbounded(), enforcement=Penalty())),
        "present only": OngoingProcess.keeping_the_present_only(task),
        "present, past and future": OngoingProcess(task),
    }


def _row(speed: str, limit: float, guard: str, policy: str, found: Monitored) -> dict[str, object]:
    return {
        "chain": speed,
        "confidence_limit": limit,
        "guard": guard,
        "policy": policy,
        **interval("cost_per_step", found.cost),
        **interval("accuracy_useful", found.accuracy_useful),
        "releases_per_step": found.releases.value,
        "locked_share": found.locked.value,
        "silent_share_first": found.course[0]["silent"],
        "silent_share_last": found.course[-1]["silent"],
        "highest_filter": found.highest_filter,
        "highest_smoother": found.highest_smoother,
        "highest_prediction": found.highest_prediction,
    }
