"""An actor as an ONNX graph: from the public belief to a choice, for programs that know neither Python nor JAX.

What the network sees is computed in the graph, so whoever runs it feeds what is public and nothing else. The bound is
not kept by the graph: which sensors are allowed, and what is sent in place of readings, is said by its inputs.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.policy.perceptron import SLOPE
from reticent.policy.settings import (
    GAIN_SCALE,
    LEAST_BELIEF,
    LEAST_DOUBT,
    LOG_SCALE,
    Inputs,
    actor_settings,
    check_network,
    seen,
)
from reticent.policy.store import PolicyFile
from reticent.problem.task import Task

# Read by every runtime since 2022.
OPSET, IR_VERSION = 17, 8
BELIEF, SPENT_BITS, ALLOWED, KERNELS, LOGITS, ACTION = "belief", "spent_bits", "allowed", "kernels", "logits", "action"
MEANING = {
    BELIEF: "what the provider knows, P(secret, useful) given all that was sent; [N, secrets, useful values]",
    SPENT_BITS: "the information spent: bits about the secret that the sensors used so far have said; [N]",
    ALLOWED: "whether each sensor may speak without crossing the bound; [N, sensors]",
    KERNELS: "the chance of each reading to be sent as it is (first), or as each merged symbol; "
    "[N, sensors, 1 + merged symbols, readings]",
    LOGITS: "one per sensor, minus infinity if it is not allowed, and one for the stop; [N, sensors + 1]",
    ACTION: "the likeliest: index of a sensor, or one past the last to stop; [N]",
}


def onnx_model(file: PolicyFile, digest: str) -> bytes:
    """The ONNX file of the actor that a policy file with this SHA-256 holds."""
    try:
        import onnx
    except ImportError as error:
        raise InputError("Writing ONNX needs one more package: pip install 'reticent[onnx]'.") from error
    if file.kind != "actor":
        raise InputError(
            f"Only actors are written as ONNX, and this file holds a policy of kind {file.kind!r}, which looks ahead "
            "with the model at every decision. Train one with --method a2c, or let `reticent serve` play this one."
        )
    inputs, width, greedy = actor_settings(file)
    task = file.task
    if task.enforcement.priced and inputs != "belief":
        raise InputError("A policy under a Lagrangian sees what was said on average, which is not written as ONNX.")
    if task.panel and inputs != "belief":
        raise InputError(
            "A policy whose bound is kept for a panel of providers sees how near the nearest of them is, which is not "
            "written as ONNX. Let `reticent serve` play this one."
        )
    sensors, secrets, useful, readings = task.model.channel.shape
    check_network(file, seen(inputs, secrets, useful, sensors), sensors + 1, width)
    shapes: dict[str, tuple[int, list[Any]]] = {
        BELIEF: (onnx.TensorProto.FLOAT, ["N", secrets, useful]),
        SPENT_BITS: (onnx.TensorProto.FLOAT, ["N"]),
        ALLOWED: (onnx.TensorProto.BOOL, ["N", sensors]),
    }
    if inputs == "rich" and task.enforcement.replaces:
        merged = len(task.enforcement.merged_symbols(task.model.useful))
        shapes[KERNELS] = (onnx.TensorProto.FLOAT, ["N", sensors, 1 + merged, readings])
    results = {LOGITS: (onnx.TensorProto.FLOAT, ["N", sensors + 1]), ACTION: (onnx.TensorProto.INT64, ["N"])}
    drawn = _Drawn(onnx)
    _network(drawn, file, _features(drawn, task, inputs))
    told = {name: MEANING[name] for name in (*shapes, *results)}
    about = {"format": "reticent-onnx-1", "policy": digest, "greedy": greedy, "tensors": told, **_names(task)}
    return drawn.model(shapes, results, {"reticent": json.dumps(about, ensure_ascii=False)})


class _Drawn:
    """A graph while it is being drawn: nodes and constants so far."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """One more node, and the name of what it gives."""
        return self.ops(kind, inputs, [name or f"{kind.lower()}_{len(self._nodes)}"], **attributes)[0]

    def ops(self, kind: str, inputs: Sequence[str], outputs: list[str], **attributes: Any) -> list[str]:
        """One more node of several outputs."""
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), outputs, **attributes))
        return outputs

    def number(self, value: float) -> str:
        """A 32-bit number."""
        return self.constant(np.asarray(value, np.float32))

    def constant(self, array: np.ndarray) -> str:
        """An array that the file holds."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def summed(self, what: str, axis: int, keep: bool = False) -> str:
        """The sum over one axis."""
        return self.op("ReduceSum", what, self.constant(np.array([axis])), keepdims=int(keep))

    def largest(self, what: str, axis: int, keep: bool = False) -> str:
        """The maximum over one axis."""
        return self.op("ReduceMax", what, axes=[axis], keepdims=int(keep))

    def shaped(self, what: str, *shape: int) -> str:
        """The same numbers in another shape."""
        return self.op("Reshape", what, self.constant(np.array(shape)))

    def model(self, inputs: dict[str, Any], outputs: dict[str, Any], metadata: dict[str, str]) -> bytes:
        """The finished file, checked."""
        helper = self._onnx.helper
        given, found = (
            [helper.make_tensor_value_info(name, *what, MEANING[name]) for name, what in side.items()]
            for side in (inputs, outputs)
        )
        graph = helper.make_graph(self._nodes, "actor", given, found, self._constants)
        model = helper.make_model(
            graph, producer_name="reticent", ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
        )
        helper.set_model_props(model, metadata)
        self._onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()


def _network(drawn: _Drawn, file: PolicyFile, x: str) -> None:
    """From what the network sees to masked logits, and the likeliest action."""
    for layer in range(3):
        weights = [drawn.constant(file.arrays[f"layers.{layer}.{name}"]) for name in ("weight", "bias")]
        x = drawn.op("Gemm", x, *weights, transB=1)
        if layer < 2:
            x = drawn.op("LeakyRelu", x, alpha=SLOPE)
    sizes = drawn.constant(np.array([len(file.task.model.sensors), 1]))
    sensors, stop = drawn.ops("Split", [x, sizes], ["of_sensors", "of_stop"], axis=1)
    masked = drawn.op("Where", ALLOWED, sensors, drawn.number(-np.inf))
    logits = drawn.op("Concat", masked, stop, name=LOGITS, axis=1)
    drawn.op("ArgMax", logits, name=ACTION, axis=1, keepdims=0)


def _features(drawn: _Drawn, task: Task, inputs: Inputs) -> str:
    """What the network sees: see `reticent.policy.actor.Features`."""
    flat = drawn.shaped(BELIEF, -1, task.model.prior.size)
    if inputs == "belief":
        return flat
    logarithm = drawn.op("Log", drawn.op("Max", flat, drawn.number(LEAST_BELIEF)))
    by_secret, by_useful = drawn.summed(BELIEF, 2), drawn.summed(BELIEF, 1)
    likeliest = drawn.largest(by_useful, 1, keep=True)
    doubt = drawn.op("Sub", drawn.number(1.0), likeliest)
    parts = [
        flat,
        drawn.op("Div", logarithm, drawn.number(LOG_SCALE)),
        by_secret,
        by_useful,
        _used(drawn, task, by_secret),
        drawn.op("Sqrt", drawn.op("Max", doubt, drawn.number(LEAST_DOUBT))),
        drawn.op("Cast", ALLOWED, to=1),
    ]
    if inputs == "rich":
        gain = drawn.op("Div", _gain(drawn, task, doubt), drawn.number(task.objective.time_cost * GAIN_SCALE))
        parts.append(drawn.op("Tanh", gain))
    return drawn.op("Concat", *parts, axis=1)


def _used(drawn: _Drawn, task: Task, by_secret: str) -> str:
    """The share of the bound that is used up."""
    if task.bound.on_spending:
        return drawn.op("Div", drawn.shaped(SPENT_BITS, -1, 1), drawn.number(task.bound.number))
    if task.bound.number is None:
        return drawn.op("Mul", drawn.shaped(SPENT_BITS, -1, 1), drawn.number(0.0))
    limits = np.asarray(task.bound.secret_limits(len(task.model.secrets)), np.float32)
    return drawn.largest(drawn.op("Div", by_secret, drawn.constant(limits[None])), 1, keep=True)


def _gain(drawn: _Drawn, task: Task, doubt: str) -> str:
    """What each sensor saves if one stops right after it rather than now, [N A]: see `lookahead_costs`."""
    useful = _joint(drawn, task, secret=False)
    wrong = drawn.op("Sub", drawn.summed(useful, 0), drawn.largest(useful, 0))
    if task.enforcement.replaces:
        wrong = _wrong_as_sent(drawn, task, useful, wrong)
    cost = drawn.op("Mul", drawn.number(task.objective.error_penalty), wrong)
    if task.enforcement.can_end(task.bound):
        cost = _penalised(drawn, task, useful, cost)
    now = drawn.op("Mul", drawn.number(task.objective.error_penalty), doubt)
    later = drawn.op("Add", drawn.number(task.objective.time_cost), drawn.summed(cost, 2))
    return drawn.op("Sub", now, later)


def _wrong_as_sent(drawn: _Drawn, task: Task, useful: str, wrong: str) -> str:
    """The chance of each sent symbol and a wrong guess after it, [N A Y]."""
    merged = len(task.enforcement.merged_symbols(task.model.useful))
    sizes = drawn.constant(np.array([1, merged]))
    raw, rest = drawn.ops("Split", [KERNELS, sizes], ["raw", "merged"], axis=2)
    alone = drawn.op("Mul", wrong, drawn.op("Squeeze", raw, drawn.constant(np.array([2]))))
    column = drawn.op("Unsqueeze", useful, drawn.constant(np.array([4])))
    sent = drawn.op("Squeeze", drawn.op("MatMul", rest, column), drawn.constant(np.array([4])))
    together = drawn.op("Sub", drawn.summed(sent, 0), drawn.largest(sent, 0))
    return drawn.op("Concat", alone, together, axis=2)


def _penalised(drawn: _Drawn, task: Task, useful: str, cost: str) -> str:
    """The cost of readings, where one that lands in the forbidden region costs C_B in place of the stop."""
    law = drawn.summed(useful, 0)
    limits = np.asarray(task.bound.secret_limits(len(task.model.secrets)), np.float32).reshape(-1, 1, 1, 1)
    likeliest = drawn.largest(drawn.op("Div", _joint(drawn, task, secret=True), drawn.constant(limits)), 0)
    lands = drawn.op("GreaterOrEqual", likeliest, law)
    lands = drawn.op("And", lands, drawn.op("Greater", law, drawn.number(0.0)))
    charged = task.enforcement.release_cost(task.objective, task.bound, False, True) - task.objective.time_cost
    violation = drawn.op("Mul", drawn.number(charged), law)
    return drawn.op("Where", lands, violation, cost)


def _joint(drawn: _Drawn, task: Task, secret: bool) -> str:
    """P(z, s) of every sensor, [S N A Z], or P(z, u), [U N A Z]: one matrix product per value."""
    sensors, secrets, useful, readings = task.model.channel.shape
    own, other = (1, 2) if secret else (2, 1)
    laws = np.moveaxis(task.model.channel, (own, other), (0, 1)).astype(np.float32)
    values = secrets if secret else useful
    beliefs = drawn.op("Transpose", BELIEF, perm=[own, 0, other])
    joint = drawn.op("MatMul", beliefs, drawn.constant(laws.reshape(values, -1, sensors * readings)))
    return drawn.shaped(joint, values, -1, sensors, readings)


def _names(task: Task) -> dict[str, Any]:
    """What indices mean, and what the policy was made for."""
    model, bound = task.model, task.bound
    names = {axis: list(getattr(model, axis)) for axis in ("secrets", "useful", "sensors", "symbols")}
    limit = {bound.name: bound.number}
    return {**names, "bound": limit, "enforce": task.enforcement.name, "horizon": task.horizon}
