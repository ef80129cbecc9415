"""Models as ONNX: raw columns in, a score or a probability out, all of it in doubles.

The preparation is part of the graph. One input per raw column, of shape (rows, 1): doubles for
numbers, NaN where missing; the days since 1970-01-01 for dates, as doubles; text for categories, ""
where missing. A number goes through IsNaN and Where (impute), Clip (bounds), its transform, Sub and
Div (centre, scale) and Clip, or through comparisons with the edges of its intervals; a category
through ai.onnx.ml's LabelEncoder to the row of a table that holds what each level becomes, with
last rows for unknown and missing. Columns that say nothing (constant on the training rows) are no
inputs. Parts of dates (year, month, weekday) have no operators there, and are refused by name.

**Guarantee.** Scores are those of the model to the rounding of a sum of doubles.

**Assumes.** Numbers are finite or NaN. Where the preparation refuses missing values the graph,
which cannot refuse, gives NaN.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.data.binned_rule import BinnedRule
from taciturn.data.column_parsing import PARTS
from taciturn.data.rules import CategoricalRule, NumericRule, Rule
from taciturn.data.transforms import Transform
from taciturn.data.yes_no import YES_NO
from taciturn.errors import ConfigError
from taciturn.extras import explained
from taciturn.model.whole import ModelPart, WholeModel, input_names
from taciturn.version import __version__

OPSET, ML_OPSET, IR_VERSION = 17, 2, 8


def own_to_onnx(model_part: ModelPart) -> bytes:
    """One side's part of the score: ``score``, of shape (rows, 1)."""
    graph = _Graph()
    graph.output(_part(graph, model_part, input_names((model_part,))[0]), "score")
    return graph.serialised("taciturn_part", (model_part,))


def whole_to_onnx(model: WholeModel) -> bytes:
    """The whole model: ``score``, ``probability`` and ``label``, each of shape (rows, 1).

    Of other families than ``binomial`` it is ``score``, the linear predictor, and ``mean``, that of
    one unit of exposure.

    The label is 1 above the threshold that the training chose (``taciturn.threshold`` in the
    metadata has it as a probability), and with class weights the probability is corrected for them.
    """
    graph, parts = _Graph(), model.parts
    scores = [
        _part(graph, part, names)
        for part, names in zip(parts, input_names(parts), strict=True)
        if _contributes(part)
    ]
    constant = sum(part.constant for part in parts if not _contributes(part))
    if not scores:
        raise _no_contribution()
    score = reduce(lambda one, two: graph.node("Add", [one, two]), scores)
    if constant:
        score = graph.node("Add", [score, graph.constant(np.float64(constant))])
    graph.output(score, "score")
    link = model.bob.model.family.link
    if link != "logit":
        graph.output(graph.node("Exp" if link == "log" else "Identity", [score]), "mean")
        return graph.serialised("taciturn_model", parts)
    shift = graph.constant(np.float64(model.bob.model.log_odds_shift))
    graph.output(graph.node("Sigmoid", [graph.node("Sub", [score, shift])]), "probability")
    threshold = graph.constant(np.float64(model.bob.model.threshold.score))
    above = graph.node("Greater", [score, threshold])
    graph.output(graph.node("Cast", [above], to=graph.onnx.TensorProto.INT64), "label", whole=True)
    return graph.serialised("taciturn_model", parts)


def _part(graph: _Graph, model_part: ModelPart, names: dict[str, str]) -> str:
    columns, weights, at = [], [], 0
    for rule in model_part.model.preparation.rules:
        count = len(rule.outputs)
        if _rule_contributes(rule):
            columns.append(graph.rule(rule, names[rule.column]))
            weights.append(model_part.weights[at : at + count])
        at += count
    if not columns:
        raise _no_contribution()
    matrix = columns[0] if len(columns) == 1 else graph.node("Concat", columns, axis=1)
    # No MatMul: onnxruntime fuses a division before it into one, with a factor of single precision.
    products = graph.node("Mul", [matrix, graph.constant(np.concatenate(weights).reshape(1, -1))])
    score = graph.node("ReduceSum", [products, graph.constant(np.array([1]))], keepdims=1)
    if model_part.constant:
        score = graph.node("Add", [score, graph.constant(np.float64(model_part.constant))])
    return score


def _rule_contributes(rule: Rule) -> bool:
    """Whether a column can move the score: with a scale of 0 it is zero whatever its values."""
    if isinstance(rule, NumericRule):
        return rule.scale != 0 or rule.missing
    if isinstance(rule, BinnedRule):
        return bool(rule.table().any())
    return bool(rule.outputs) and (not rule.scales or any(rule.scales))


def _contributes(model_part: ModelPart) -> bool:
    return any(_rule_contributes(rule) for rule in model_part.model.preparation.rules)


def _no_contribution() -> ConfigError:
    return ConfigError(
        "no column contributes to the score, which would be a constant",
        hint="export the other side's part, or both files together",
    )


class _Graph:
    def __init__(self) -> None:
        self.onnx: Any = _onnx()
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._constants: list[Any] = []

    def node(self, kind: str, inputs: Sequence[str], domain: str = "", **settings: object) -> str:
        """Add a node; the name of its output."""
        name = f"_{len(self._nodes)}_{kind}"
        make = self.onnx.helper.make_node
        self._nodes.append(make(kind, list(inputs), [name], domain=domain, **settings))
        return name

    def constant(self, value: np.generic | np.ndarray[Any, Any]) -> str:
        name = f"_constant_{len(self._constants)}"
        made = self.onnx.numpy_helper.from_array(np.asarray(value), name)
        self._constants.append(made)
        return name

    def rule(self, rule: Rule, name: str) -> str:
        if rule.reading.kind in PARTS:
            raise ConfigError(
                f"column {rule.name!r} is a part of a date, which ONNX has no operators for",
                hint="train without date-parts to export the model",
            )
        if isinstance(rule, NumericRule):
            return self._numeric(rule, self._input(name, "DOUBLE"))
        if isinstance(rule, BinnedRule):
            return self._binned(rule, self._input(name, "DOUBLE"))
        return self._categorical(rule, self._input(name, "STRING"))

    def output(self, name: str, called: str, *, whole: bool = False) -> None:
        self._nodes.append(self.onnx.helper.make_node("Identity", [name], [called]))
        kind = self.onnx.TensorProto.INT64 if whole else self.onnx.TensorProto.DOUBLE
        self._outputs.append(self.onnx.helper.make_tensor_value_info(called, kind, ["rows", 1]))

    def serialised(self, name: str, parts: tuple[ModelPart, ...]) -> bytes:
        helper = self.onnx.helper
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=self._constants
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(
            graph, opset_imports=opsets, producer_name="taciturn", producer_version=__version__
        )
        model.ir_version = IR_VERSION
        helper.set_model_props(model, _metadata(parts))
        self.onnx.checker.check_model(model)
        octets: bytes = model.SerializeToString()
        return octets

    def _input(self, name: str, kind: str) -> str:
        data = getattr(self.onnx.TensorProto, kind)
        self._inputs.append(self.onnx.helper.make_tensor_value_info(name, data, ["rows", 1]))
        return name

    def _numeric(self, rule: NumericRule, value: str) -> str:
        missing = self.node("IsNaN", [value])
        marks = [self._clipped(self._double(missing), rule.clip)] if rule.missing else []
        if rule.scale == 0:
            # Only where it is missing says anything; the column itself is zero.
            zeros = self.node("Mul", [self._double(missing), self._number(0.0)])
            return self.node("Concat", [zeros, *marks], axis=1)
        value = self._imputed(value, missing, rule.impute)
        if rule.lower is not None or rule.upper is not None:
            low = -np.inf if rule.lower is None else rule.lower
            high = np.inf if rule.upper is None else rule.upper
            value = self.node("Clip", [value, self._number(low), self._number(high)])
        if rule.transform is not None:
            value = self._transformed(rule.transform, value)
        value = self.node("Sub", [value, self._number(rule.center)])
        value = self.node("Div", [value, self._number(rule.scale)])
        value = self._clipped(value, rule.clip)
        return self.node("Concat", [value, *marks], axis=1) if marks else value

    def _imputed(self, value: str, missing: str, impute: float | None) -> str:
        if impute is None:
            return value
        return self.node("Where", [missing, self._number(impute), value])

    def _transformed(self, transform: Transform, value: str) -> str:
        if transform.kind == "log":
            size = self._log1p(self.node("Abs", [value]))
            return self.node("Mul", [self.node("Sign", [value]), size])
        if transform.kind == "rank":
            return self._interpolated(transform, value)
        above = self.node("Max", [value, self._number(0.0)])
        below = self.node("Max", [self.node("Neg", [value]), self._number(0.0)])
        halves = [
            self._power(self._log1p(above), transform.power),
            self._power(self._log1p(below), 2.0 - transform.power),
        ]
        return self.node("Sub", halves)

    def _power(self, logarithm: str, power: float) -> str:
        if power == 0:
            return logarithm
        raised = self.node("Exp", [self.node("Mul", [logarithm, self._number(power)])])
        return self.node(
            "Div", [self.node("Sub", [raised, self._number(1.0)]), self._number(power)]
        )

    def _log1p(self, value: str) -> str:
        return self.node("Log", [self.node("Add", [value, self._number(1.0)])])

    def _interpolated(self, transform: Transform, value: str) -> str:
        """Linear interpolation between knots: each segment adds its rise up to the value."""
        knots, ranks = np.array([transform.knots]), np.array([transform.ranks])
        begin, width = self.constant(knots[:, :-1]), self.constant(np.diff(knots))
        way = self.node("Div", [self.node("Sub", [value, begin]), width])
        way = self.node("Clip", [way, self._number(0.0), self._number(1.0)])
        rise = self.node("Mul", [way, self.constant(np.diff(ranks))])
        total = self.node("ReduceSum", [rise, self.constant(np.array([1]))], keepdims=1)
        return self.node("Add", [total, self._number(transform.ranks[0])])

    def _binned(self, rule: BinnedRule, value: str) -> str:
        missing = self.node("IsNaN", [value])
        filled = value if rule.missing else self._imputed(value, missing, rule.impute)
        # Behind as many edges as the value has reached; a comparison with NaN is false.
        edges = np.array([rule.edges or (np.inf,)])
        reached = self.node("GreaterOrEqual", [filled, self.constant(edges)])
        whole = self.node("Cast", [reached], to=self.onnx.TensorProto.INT64)
        place = self.node("ReduceSum", [whole, self.constant(np.array([1]))], keepdims=1)
        if rule.missing:
            last = self.constant(np.int64(rule.count - 1))
            place = self.node("Where", [missing, last, place])
        return self._taken(rule.table(), place)

    def _taken(self, table: FloatArray, place: str) -> str:
        taken = self.node("Gather", [self.constant(table), place], axis=0)
        shape = self.constant(np.array([-1, table.shape[1]], dtype=np.int64))
        return self.node("Reshape", [taken, shape])

    def _number(self, value: float) -> str:
        return self.constant(np.float64(value))

    def _double(self, mask: str) -> str:
        return self.node("Cast", [mask], to=self.onnx.TensorProto.DOUBLE)

    def _clipped(self, value: str, clip: float | None) -> str:
        if clip is None:
            return value
        return self.node("Clip", [value, self._number(-clip), self._number(clip)])

    def _categorical(self, rule: CategoricalRule, value: str) -> str:
        count = len(rule.levels)
        # A text that is no level, for what becomes of an unknown one.
        stranger = "".join(rule.levels) + "?"
        levels = pl.Series(rule.column, [*rule.levels, stranger, None], dtype=pl.String)
        table = np.column_stack(list(rule.arrays(levels)))
        places = _spellings(rule)
        places.setdefault("", count + 1)
        place = self.node(
            "LabelEncoder",
            [value],
            domain="ai.onnx.ml",
            keys_strings=list(places),
            values_int64s=list(places.values()),
            default_int64=count,
        )
        return self._taken(table, place)


def _spellings(rule: CategoricalRule) -> dict[str, int]:
    """Place of each level by its spellings: ONNX has no operator that ignores case everywhere."""
    places = {level: place for place, level in enumerate(rule.levels)}
    if rule.reading.spelling == "exact":
        return places
    words = [(level, place) for level, place in places.items()]
    if rule.reading.spelling == "yes-no":
        words += [(word, places[meant]) for word, meant in YES_NO.items() if meant in places]
    for word, place in words:
        for spelling in (word.lower(), word.upper(), word.capitalize(), word.title()):
            places.setdefault(spelling, place)
    return places


def _metadata(parts: tuple[ModelPart, ...]) -> dict[str, str]:
    first, bob = parts[0].model, [part.model for part in parts if part.model.is_bob]
    chosen = {}
    if bob:
        classes = bob[0].family.has_classes
        value = repr(bob[0].threshold.probability) if classes else bob[0].family.name
        chosen = {"taciturn.threshold" if classes else "taciturn.family": value}
    return {
        "taciturn.session": first.session,
        "taciturn.agreement_digest": first.agreement_digest,
        "taciturn.mechanism": str(first.agreement.get("mechanism", "")),
        "taciturn.parts": json.dumps([part.model.role for part in parts]),
        **chosen,
    }


def _onnx() -> ModuleType:
    with explained():
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    package: ModuleType = onnx
    return package
