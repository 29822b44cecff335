"""The POMDP file says what the model says: read back by a small reader of its own, and solved."""

import re

import numpy as np
import pytest

from reticent.errors import InputError
from reticent.problem.bound import Unbounded
from reticent.problem.export import pomdp_text
from reticent.problem.model import Model
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic, two_binary_sensors
from reticent.problem.task import Task
from reticent.solve.lattice import solve_lattice
from tests.problems import random_model

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
# The scanner of pomdp-solve, and what the specification adds: digits on both sides of the point.
NUMBER = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?")
WORDS = "discount values states actions observations T O R uniform identity reward cost start include exclude reset"


class Parsed:
    """The arrays of a POMDP file: transition[a, s, s'], observation[a, s', z], reward[a, s], start[s]."""

    def __init__(self, text):
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        head = dict(line.split(": ", 1) for line in lines[:6])
        assert list(head) == ["discount", "values", "states", "actions", "observations", "start"]
        assert head["values"] == "reward"
        self.discount, self.start = _number(head["discount"]), np.array([_number(x) for x in head["start"].split()])
        self.states, self.actions, self.symbols = (head[k].split() for k in ("states", "actions", "observations"))
        for names in (self.states, self.actions, self.symbols):
            assert len(set(names)) == len(names)
            assert all(IDENTIFIER.fullmatch(name) and name not in WORDS.split() for name in names)
        s, a, z = len(self.states), len(self.actions), len(self.symbols)
        self.transition, self.observation, self.reward = np.zeros((a, s, s)), np.zeros((a, s, z)), np.zeros((a, s))
        rest = iter(lines[6:])
        for line in rest:
            letter, fields = line.split(": ", 1)
            *keys, last = fields.split(" : ")
            last, *value = last.split()
            self._enter(letter, [*keys, last], value, rest)

    def _enter(self, letter, keys, value, rest):
        action, at = self.actions.index(keys[0]), [_index(self.states, k) for k in keys[1:2]]
        if letter == "R":
            assert keys[2:] == ["*", "*"]
            self.reward[action, *at] = _number(value[0])
        elif letter == "T" and len(keys) == 1:
            assert next(rest) == "identity"
            self.transition[action] = np.eye(len(self.states))
        elif letter == "T":
            self.transition[action, at[0], _index(self.states, keys[2])] = _number(value[0])
        elif len(keys) == 2:
            self.observation[action, *at] = [_number(x) for x in next(rest).split()]
        else:
            assert letter == "O"
            self.observation[action, at[0], _index(self.symbols, keys[2])] = _number(value[0])

    def cost(self, belief, releases, sensors):
        """Least discounted cost with at most so many releases; `belief` may have any mass."""
        stop = min(-belief @ self.reward[a] for a in range(sensors, len(self.actions)))
        if releases == 0:
            return stop
        going_on = []
        for a in range(sensors):
            joint = (belief @ self.transition[a])[:, None] * self.observation[a]
            after = sum(
                self.cost(joint[:, z], releases - 1, sensors) for z in range(len(self.symbols)) if joint[:, z].any()
            )
            going_on.append(-belief @ self.reward[a] + self.discount * after)
        return min(stop, *going_on)


def _number(text):
    assert NUMBER.fullmatch(text)
    return float(text)


def _index(names, name):
    return slice(None) if name == "*" else names.index(name)


def with_a_pair_that_never_occurs():
    model = random_model(3, sensors=2, secrets=2, useful=3, symbols=3, sparse=True)
    prior = np.array(model.prior)
    prior[1, 0] = 0
    return Model(prior / prior.sum(), model.channel, model.secrets, model.useful, model.sensors, model.symbols)


@pytest.mark.parametrize("model", [two_binary_sensors(), synthetic(), with_a_pair_that_never_occurs()])
def test_every_number_is_the_models(model):
    file = Parsed(pomdp_text(model, Objective(0.5, 20.0), 0.995))
    kept, sensors = model.prior > 0, len(model.sensors)
    assert file.discount == 0.995
    assert np.array_equal(file.start, [*model.prior[kept], 0])
    assert np.allclose(file.transition.sum(-1), 1, rtol=0, atol=1e-9)
    assert np.allclose(file.observation.sum(-1), 1, rtol=0, atol=1e-9)
    assert np.array_equal(file.observation[:sensors, :-1, :-1], model.channel[:, kept])
    assert (file.reward[:sensors, :-1] == -0.5).all()
    useful = np.nonzero(kept)[1]
    assert np.array_equal(file.reward[sensors:, :-1], [np.where(useful == u, 0, -20) for u in range(len(model.useful))])


@pytest.mark.parametrize("model", [two_binary_sensors(), with_a_pair_that_never_occurs()])
def test_a_declaration_ends_the_episode_for_good(model):
    file, sensors = Parsed(pomdp_text(model, Objective(), 0.999)), len(model.sensors)
    assert (file.states[-1], file.symbols[-1]) == ("done", "nothing")
    assert (file.transition[sensors:, :, -1] == 1).all()
    assert (file.observation[sensors:, :, -1] == 1).all()
    assert (file.transition[:, -1, -1] == 1).all()
    assert (file.observation[:, -1, -1] == 1).all()
    assert (file.reward[:, -1] == 0).all()


@pytest.mark.parametrize("model", [two_binary_sensors(), random_model(1), with_a_pair_that_never_occurs()])
def test_the_file_has_the_optimal_cost_of_the_problem_without_bound(model):
    horizon = 3
    exact = solve_lattice(Task(model, Unbounded(), Objective()), horizon).upper
    discounts = (1.0, 1 - 1e-9, 0.999)
    costs = []
    for discount in discounts:
        file = Parsed(pomdp_text(model, Objective(), discount))
        costs.append(file.cost(file.start, horizon, len(model.sensors)))
    assert costs[:2] == pytest.approx([exact, exact], abs=1e-6)
    # A discount makes what comes late cheaper, never dearer, and by no more than its power of the last step.
    assert 0.999**horizon * exact <= costs[2] <= exact


def test_any_name_becomes_a_distinct_identifier():
    model = two_binary_sensors()
    odd = Model(model.prior, model.channel, ("at home", "at_home"), ("冷", "熱"), ("T", "reset\n# R:"), ("-1.5", "1,5"))
    text = pomdp_text(odd, Objective(), 0.999)
    file = Parsed(text)
    assert file.states == ["pair_at_home", "pair_at_home_2", "pair_at_home_3", "pair_at_home_4", "done"]
    assert file.actions == ["read_T", "read_reset_R", "declare_", "declare__2"]
    assert file.symbols == ["saw_-1_5", "saw_1_5", "nothing"]
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert "# pair_at_home_2 = 'at home', '熱'" in comments
    assert "# read_reset_R = 'reset\\n# R:'" in comments
    assert len(comments) == 2 + 4 + 2 + 2 + 2


def test_a_made_up_number_never_takes_a_given_name():
    model = random_model(0, symbols=4)
    names = ("a", "a!", "a 2", "a_2")
    odd = Model(model.prior, model.channel, model.secrets, model.useful, model.sensors, names)
    file = Parsed(pomdp_text(odd, Objective(), 0.999))
    assert file.symbols == ["saw_a", "saw_a_2", "saw_a_2_2", "saw_a_2_3", "nothing"]


@pytest.mark.parametrize("discount", [0.0, -1.0, 1.001, float("nan"), float("inf")])
def test_what_is_no_discount_is_refused(discount):
    with pytest.raises(InputError, match="above 0 and not above 1"):
        pomdp_text(two_binary_sensors(), Objective(), discount)


def test_a_discount_that_makes_it_best_never_to_stop_is_refused():
    with pytest.raises(InputError, match=r"never declaring costs 10, declaring up to 25.*above 0\.96\."):
        pomdp_text(two_binary_sensors(), Objective(), 0.9)
    assert pomdp_text(two_binary_sensors(), Objective(), 0.961)
