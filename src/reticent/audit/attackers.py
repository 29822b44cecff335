"""Attackers: what somebody who sees what was released comes to believe about the secret, and about the useful value.

All through one door: `fit` on traces, then `confidence` on others, as they are or cut short (`Traces.until`), which
gives beliefs over time. Exact Bayes needs a model and learns nothing; the others know nothing but the traces that they
are fitted on. Learned attackers see whole episodes and their beginnings, each as a line of numbers or step by step.
"""

import abc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from reticent.audit.traces import NOTHING, Traces, joined
from reticent.belief.learn import Examples, Settings, learn_belief
from reticent.belief.lstm import LstmProvider
from reticent.belief.provider import Provider
from reticent.errors import InputError
from reticent.types import Array, Belief, Index, PRNGKey

# Columns that the steps of an episode may take up in its line of numbers; later steps count in the mean only.
MOST_COLUMNS = 1500
# The boosted trees read symbols as categories, of which they can tell so many apart.
MOST_CATEGORIES = 250
FIRST_STEPS = 10
Label = Literal["secret", "useful"]
LABELS: tuple[Label, ...] = get_args(Label)
# Episodes that a recurrent network looks at in one go.
EPISODES_AT_ONCE = 1024
# Of longer episodes a recurrent network reads the beginning only.
MOST_STEPS = 200
LEARNING = Settings(updates=1000, between=50, patience=4, held_out_episodes=2048)


@dataclass(frozen=True, eq=False)
class Confidence:
    """Beliefs over the secret and over the useful value, one line per episode; and those before anything was seen."""

    secret: Float[np.ndarray, "N S"]
    useful: Float[np.ndarray, "N U"]
    secret_before: Float[np.ndarray, "N S"]
    useful_before: Float[np.ndarray, "N U"]

    def fair_guess(self, label: Label) -> Int[np.ndarray, " N"]:
        """The class whose belief has grown most: what is right most often on average over classes, rare or not."""
        return fair_guess(getattr(self, label), getattr(self, f"{label}_before"))


def fair_guess(belief: Float[np.ndarray, "N C"], before: Float[np.ndarray, "#N C"]) -> Int[np.ndarray, " N"]:
    """argmax belief / prior = argmax P(what was seen | class)."""
    return np.where(before > 0, belief / np.where(before > 0, before, 1.0), -1.0).argmax(1)


def confidence_of(belief: Float[np.ndarray, "N S U"], before: Float[np.ndarray, "S U"]) -> Confidence:
    """From beliefs over pairs, and the one that they started from."""
    return _confidence(belief.sum(2), belief.sum(1), before)


def _confidence(
    secret: Float[np.ndarray, "N S"], useful: Float[np.ndarray, "N U"], before: Float[np.ndarray, "S U"]
) -> Confidence:
    starts = np.broadcast_to(before.sum(1), secret.shape), np.broadcast_to(before.sum(0), useful.shape)
    return Confidence(secret, useful, *starts)


def together(parts: list[Confidence]) -> Confidence:
    """Beliefs on parts of the episodes, one part after the other."""
    return Confidence(*(np.concatenate(each) for each in zip(*(vars(part).values() for part in parts), strict=True)))


def frequencies(traces: Traces) -> Float[np.ndarray, "S U"]:
    """How often each hidden pair came."""
    found = np.zeros((len(traces.names.secrets), len(traces.names.useful)))
    np.add.at(found, (traces.secret, traces.useful), 1 / len(traces))
    return found


@dataclass(frozen=True, eq=False)
class Scale:
    """What is usual of each sensor's readings, so that attackers see what is not."""

    centre: Float[np.ndarray, "A D"]
    spread: Float[np.ndarray, "A D"]

    @classmethod
    def of(cls, traces: Traces) -> "Scale | None":
        """Of the sensors that spoke; traces of symbols have none."""
        if traces.reading is None:
            return None
        spoken = [traces.reading[traces.sensor == a] for a in range(len(traces.names.sensors))]
        spoken = [own if len(own) else np.zeros((1, _axes(traces))) for own in spoken]
        spread = np.stack([own.std(0) for own in spoken])
        return cls(np.stack([own.mean(0) for own in spoken]), np.where(spread > 0, spread, 1.0))


def scaled(traces: Traces, scale: Scale | None) -> Traces:
    """Readings in units of what is usual; zero after the end."""
    if scale is None or traces.reading is None:
        return traces
    sensor = np.maximum(traces.sensor, 0)
    usual = (traces.reading - scale.centre[sensor]) / scale.spread[sensor]
    spoke = (traces.sensor != NOTHING)[:, :, None]
    return replace(traces, reading=np.where(spoke, usual, 0.0).astype(np.float32))


class Attacker(abc.ABC):
    """Somebody who learns from traces and then says what others' traces tell."""

    name: str

    @abc.abstractmethod
    def fit(self, traces: Traces) -> None:
        """Learn from traces, the hidden pairs included."""

    @abc.abstractmethod
    def confidence(self, traces: Traces) -> Confidence:
        """What is believed at the end of each trace; the hidden pairs in it are not looked at."""


class Bayes(Attacker):
    """Exact belief with a model and the public rule, which the traces' likelihoods hold. It trusts the policy not to
    know the secret: which sensor spoke, and when it stopped, says nothing by itself."""

    def __init__(self, prior: Float[np.ndarray, "S U"], name: str) -> None:
        self.prior, self.name = prior, name

    def fit(self, traces: Traces) -> None:
        """There is nothing to learn."""

    def confidence(self, traces: Traces) -> Confidence:
        return list(self.along(traces))[-1]

    def along(self, traces: Traces) -> Iterator[Confidence]:
        """The belief at the start, and after every step, in one pass."""
        assert traces.likelihood is not None
        belief = np.broadcast_to(self.prior, (len(traces), *self.prior.shape))
        yield confidence_of(belief, self.prior)
        for step in range(traces.longest):
            belief = belief * traces.likelihood[:, step]
            total = belief.sum((1, 2), keepdims=True)
            if (total <= 0).any():
                raise InputError(
                    "Some episodes are impossible under the model, although each of their releases is possible: it is "
                    "not the model of these traces."
                )
            belief = belief / total
            yield confidence_of(belief, self.prior)


class Counting(Attacker):
    """Bayes with a model that is counted from the traces: how often each sensor says what, under each hidden pair
    (multinomial naive Bayes). Readings count by the tenth of that sensor's readings that they lie in, axis by axis."""

    name = "counting Bayes"
    parts = 10

    def fit(self, traces: Traces) -> None:
        from sklearn.naive_bayes import MultinomialNB

        self.before, self.scale = frequencies(traces), Scale.of(traces)
        traces = scaled(traces, self.scale)
        if traces.reading is not None:
            shares = np.linspace(0, 1, self.parts + 1)[1:-1]
            spoken = [traces.reading[traces.sensor == a] for a in range(len(traces.names.sensors))]
            spoken = [own if len(own) else np.zeros((1, _axes(traces))) for own in spoken]
            self.edges = np.stack([np.quantile(own, shares, axis=0) for own in spoken])
        pairs = traces.secret * len(traces.names.useful) + traces.useful
        self.model = MultinomialNB(alpha=1.0).fit(self._counts(traces), pairs)

    def confidence(self, traces: Traces) -> Confidence:
        belief = np.zeros((len(traces), self.before.size))
        belief[:, self.model.classes_] = self.model.predict_proba(self._counts(scaled(traces, self.scale)))
        return confidence_of(belief.reshape(-1, *self.before.shape), self.before)

    def _counts(self, traces: Traces) -> Any:
        """How often each sensor said what in each episode, a sparse matrix."""
        sensors = len(traces.names.sensors)
        if traces.reading is None:
            assert traces.symbol is not None
            said, options = traces.symbol[:, :, None], len(traces.names.symbols)
        else:
            edges = self.edges[np.maximum(traces.sensor, 0)]
            said = (edges < traces.reading[:, :, None]).sum(2)
            said, options = said + self.parts * np.arange(said.shape[2]), self.parts * said.shape[2]
        return _counted(traces, traces.sensor[:, :, None] * options + said, sensors * options)


class Lines(Attacker):
    """A classifier per label on one line of numbers per episode."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @abc.abstractmethod
    def classifier(self) -> Any:
        """A fresh one, with `fit` and `predict_proba`."""

    @abc.abstractmethod
    def line(self, traces: Traces) -> Any:
        """The numbers of each episode: a matrix, dense or sparse."""

    def fit(self, traces: Traces) -> None:
        self.longest, self.before, self.scale = traces.longest, frequencies(traces), Scale.of(traces)
        lines = self.line(_with_beginnings(scaled(traces, self.scale), self.seed))

        def learned(label: Label) -> Any:
            truth = np.tile(getattr(traces, label), 2)
            # Who has seen one class only will never name another.
            return truth[0] if len(np.unique(truth)) == 1 else self.classifier().fit(lines, truth)

        # Both at once, in one thread each: threads that wait for each other crawl on a busy machine.
        with threadpool_limits(1), ThreadPoolExecutor(len(LABELS)) as threads:
            self.classifiers = dict(zip(LABELS, threads.map(learned, LABELS), strict=True))

    def confidence(self, traces: Traces) -> Confidence:
        lines = self.line(scaled(traces, self.scale).padded(self.longest))
        secrets, useful = self.before.shape
        return _confidence(self._said("secret", lines, secrets), self._said("useful", lines, useful), self.before)

    def _said(self, label: Label, lines: Any, classes: int) -> Float[np.ndarray, "N C"]:
        said, classifier = np.zeros((lines.shape[0], classes)), self.classifiers[label]
        if isinstance(classifier, np.integer):
            said[:, classifier] = 1.0
        else:
            said[:, classifier.classes_] = classifier.predict_proba(lines)
        return said


class Logistic(Lines):
    """Logistic regression: what each step said, the mean over all steps, how many there were, and whether it ended."""

    name = "logistic regression"

    def classifier(self) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        # Not centred: most columns are mostly zero, and are kept as such.
        return make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=0.1, max_iter=300))

    def line(self, traces: Traces) -> Any:
        from scipy import sparse

        width = len(traces.names.sensors) * (len(traces.names.symbols) or 1 + _axes(traces))
        first = min(traces.longest, max(1, MOST_COLUMNS // width))
        steps = [sparse.csr_array(_said_at(traces, step, width)) for step in range(traces.longest)]
        count = traces.length
        mean = sparse.diags_array(1 / np.maximum(count, 1)) @ sum(steps[1:], steps[0])
        ends = np.stack([count, traces.stopped, *(count == n for n in range(1, min(traces.longest, FIRST_STEPS)))], 1)
        return sparse.hstack([*steps[:first], mean, ends.astype(np.float32)], format="csr", dtype=np.float32)


class BoostedTrees(Lines):
    """Gradient-boosted trees: the first steps as categories (or readings), counts (or means) of all, and the end."""

    name = "boosted trees"

    def classifier(self) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=100,
            max_leaf_nodes=15,
            min_samples_leaf=20,
            categorical_features=self.categories,  # type: ignore[arg-type]
            random_state=self.seed,
            early_stopping=False,  # type: ignore[arg-type]
        )

    def fit(self, traces: Traces) -> None:
        if traces.symbol is not None:
            # Trees need every column in memory, so the rarest of very many things that were said are left out.
            place, options = _symbol_places(traces)
            often = _counted(traces, place[:, :, None], options).sum(0)
            self.counted = np.sort(np.argsort(-often, kind="stable")[:MOST_COLUMNS])
        super().fit(traces)

    def line(self, traces: Traces) -> Float[np.ndarray, "N F"]:
        ends = np.stack([traces.length, traces.stopped], axis=1)
        first = min(traces.longest, FIRST_STEPS)
        self.categories = None
        if traces.reading is not None:
            width = len(traces.names.sensors) * (1 + _axes(traces))
            steps = [_said_at(traces, step, width) for step in range(first)]
            total = sum(_said_at(traces, step, width) for step in range(traces.longest))
            spoken = np.maximum(traces.length, 1)[:, None]
            return np.concatenate([*steps, total / spoken, ends], axis=1, dtype=np.float32)
        place, options = _symbol_places(traces)
        counts = _counted(traces, place[:, :, None], options)[:, self.counted].toarray()
        if options < MOST_CATEGORIES:
            self.categories = list(range(first))
        return np.concatenate([place[:, :first], counts, ends], axis=1, dtype=np.float32)


def retrained(fitted_on: Traces, judged_on: Traces) -> dict[str, Confidence]:
    """What attackers who are quick to learn believe, by name."""
    found = {}
    for attacker in (Logistic(), BoostedTrees()):
        attacker.fit(fitted_on)
        found[attacker.name] = attacker.confidence(judged_on)
    return found


class Lstm(Attacker):
    """The paper's adversary: a recurrent network over the releases, with the stop as a step of its own. Of very long
    episodes it reads the beginning."""

    name = "LSTM"

    def __init__(self, seed: int = 0, report: Callable[[int, float], None] | None = None) -> None:
        self.seed, self.report = seed, report

    def fit(self, traces: Traces) -> None:
        self.before, self.scale = frequencies(traces), Scale.of(traces)
        # Learning stops early on people, or episodes, that it does not learn from.
        people = np.random.default_rng(self.seed).permutation(np.unique(traces.person))
        held_out = np.isin(traces.person, people[: max(1, len(people) // 5)])
        held_out = held_out if len(people) > 1 else np.arange(len(traces)) % 5 == 0
        learned, judged = (self._released(traces.take(rows)) for rows in (~held_out, held_out))
        features = len(traces.names.symbols) or _axes(traces)
        sensors = len(traces.names.sensors) + 1
        fresh = LstmProvider(jnp.asarray(self.before), sensors, features, jax.random.key(self.seed))
        length = learned.sensor.shape[1]
        settings = Settings(**{**vars(LEARNING), "readings": length})
        self.provider = learn_belief(learned, judged, fresh, self.seed, settings, self.report)

    def confidence(self, traces: Traces) -> Confidence:
        released = self._released(traces)
        starts = range(0, len(traces), EPISODES_AT_ONCE)
        pieces = [final_beliefs(self.provider, released.piece(start)) for start in starts]
        return confidence_of(np.concatenate(pieces)[: len(traces)], self.before)

    def _released(self, traces: Traces) -> "_Drawn":
        traces = traces.padded(min(traces.longest, MOST_STEPS))
        reading = scaled(traces, self.scale).reading
        stop = np.where(np.arange(traces.longest + 1)[None] == traces.length[:, None], traces.stopped[:, None], False)
        sensor, symbol = (
            np.pad(x, ((0, 0), (0, 1)), constant_values=NOTHING)
            for x in (traces.sensor, np.zeros_like(traces.sensor) if traces.symbol is None else traces.symbol)
        )
        sensor = np.where(stop, len(traces.names.sensors), sensor)
        # Room for the next power of two, so that the network is compiled once for parts of about the same size.
        room = 2 ** int(np.ceil(np.log2(len(traces)))) - len(traces)

        def roomy(values: np.ndarray) -> Array:
            return jnp.asarray(np.pad(values, [(0, room), *[(0, 0)] * (values.ndim - 1)]))

        return _Drawn(
            sensor=roomy(np.maximum(sensor, 0)),
            # A symbol of minus one is a row of zeros: the stop says nothing but that it came.
            symbol=roomy(np.where(stop, NOTHING, symbol)),
            reading=None if reading is None else roomy(np.pad(reading, ((0, 0), (0, 1), (0, 0)))),
            length=roomy(traces.length + stop.any(1)),
            secret=roomy(traces.secret),
            useful=roomy(traces.useful),
            count=jnp.asarray(len(traces)),
            symbols=len(traces.names.symbols),
        )


class _Drawn(eqx.Module):
    """Released episodes, drawn at random with replacement: what a recurrent network learns from. The first `count`
    rows are episodes."""

    sensor: Int[Array, "N T"]
    symbol: Int[Array, "N T"]
    reading: Float[Array, "N T D"] | None
    length: Int[Array, " N"]
    secret: Int[Array, " N"]
    useful: Int[Array, " N"]
    count: Index
    symbols: int = eqx.field(static=True)

    def draw(self, key: PRNGKey, count: int, length: int) -> Examples:
        """So many episodes."""
        del length
        return self._examples(jax.random.randint(key, (count,), 0, self.count))

    def piece(self, start: int) -> Examples:
        """So many of the rows as are looked at in one go, and after the last one that again."""
        return self._examples(jnp.minimum(start + jnp.arange(EPISODES_AT_ONCE), self.count - 1))

    def _examples(self, rows: Int[Array, " B"]) -> Examples:
        if self.reading is None:
            reading = jax.nn.one_hot(self.symbol[rows], self.symbols, dtype=jnp.float32)
        else:
            reading = self.reading[rows]
        return Examples(self.sensor[rows], reading, self.length[rows], self.secret[rows], self.useful[rows])


@eqx.filter_jit
def final_beliefs(provider: Provider, examples: Examples) -> Float[Array, "N S U"]:
    """What a provider believes at the end of each trace."""

    def one(example: Examples) -> Belief:
        def step(carry, step):
            known, count = carry
            sensor, reading = step
            learned = provider.learn(known, sensor, reading)
            known = jax.tree.map(lambda old, new: jnp.where(count < example.length, new, old), known, learned)
            return (known, count + 1), None

        (known, _), _ = jax.lax.scan(step, (provider.start(), 0), (example.sensor, example.reading))
        return provider.belief(known)

    return jax.lax.map(one, examples, batch_size=256)


def examples_of(traces: Traces) -> Examples:
    """Traces of raw readings, for a provider who knows nothing of stops."""
    assert traces.reading is not None
    arrays = np.maximum(traces.sensor, 0), traces.reading, traces.length, traces.secret, traces.useful
    return Examples(*(jnp.asarray(x) for x in arrays))


def _with_beginnings(traces: Traces, seed: int) -> Traces:
    """Each episode twice: whole, and cut at a random moment, so that an attacker learns to judge both."""
    moment = np.random.default_rng(seed).integers(traces.length + 1)
    return joined(traces, traces.until(moment))


def _axes(traces: Traces) -> int:
    assert traces.reading is not None
    return traces.reading.shape[2]


def _symbol_places(traces: Traces) -> tuple[Int[np.ndarray, "N T"], int]:
    """A number for each pair of sensor and symbol, that of none after the end; and how many pairs there are."""
    assert traces.symbol is not None
    symbols = len(traces.names.symbols)
    options = len(traces.names.sensors) * symbols
    return np.where(traces.sensor == NOTHING, options, traces.sensor * symbols + traces.symbol), options


def _counted(traces: Traces, place: Int[np.ndarray, "N T K"], options: int) -> Any:
    """How often each of so many things was said in each episode, a sparse matrix."""
    from scipy import sparse

    episode, step = np.nonzero(traces.sensor != NOTHING)
    said = place[episode, step]
    entries = np.ones(said.size, np.float32), (np.repeat(episode, said.shape[1]), said.reshape(-1))
    return sparse.csr_array(entries, shape=(len(traces), options))


def _said_at(traces: Traces, step: int, width: int) -> Float[np.ndarray, "N W"]:
    """What one step said, in the columns of the sensor that spoke: which symbol, or that it spoke and its reading."""
    said = np.zeros((len(traces), width), np.float32)
    own = np.flatnonzero(traces.sensor[:, step] != NOTHING)
    sensor = traces.sensor[own, step]
    if traces.reading is None:
        assert traces.symbol is not None
        said[own, sensor * len(traces.names.symbols) + traces.symbol[own, step]] = 1.0
        return said
    axes = _axes(traces)
    said[own, sensor * (1 + axes)] = 1.0
    for axis in range(axes):
        said[own, sensor * (1 + axes) + 1 + axis] = traces.reading[own, step, axis]
    return said
