"""Whatever stands in a file or an address, the answer is one sentence and no traceback."""

import http.client
import json
from contextlib import closing, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.data.table_map import read_map
from reticent.errors import InputError
from reticent.gateway.messages import Refused, parse_line
from reticent.gateway.page import Page
from reticent.gateway.readings import Encoder
from reticent.gateway.runtime import Runtime
from reticent.policy.store import HEADER
from reticent.problem.array_file import read_arrays, write_arrays
from reticent.problem.model import Model, read_problem
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.study.spec import read_spec
from tests.gateway.parts import Place, coarsened, task, write_policy

DEEP = 5_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def problem(**changed):
    return {**two_binary_sensors().to_json(), **changed}


@pytest.mark.parametrize("read", [read_map, read_spec])
@pytest.mark.parametrize("text", ["a = " + "[" * DEEP, "a = " + "{a = " * DEEP])
def test_deep_toml_is_refused(tmp_path, read, text):
    (tmp_path / "deep.toml").write_text(text)
    with pytest.raises(InputError):
        read(tmp_path / "deep.toml")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("problem.json", "[" * DEEP),
        ("names.json", json.dumps(problem()).replace('["s0"', "[" * 900 + '"s0"' + "]" * 900)),
        ("channel.json", json.dumps(problem(channel=0)).replace('"channel": 0', '"channel": ' + "[" * 900 + "]" * 900)),
    ],
)
def test_deep_problem_files_are_refused(tmp_path, name, value):
    (tmp_path / name).write_text(value)
    with pytest.raises(InputError):
        read_problem(tmp_path / name)


def test_deep_lines_are_refused():
    for line in (b"[" * 16_000, b'{"a":' * 3_000):
        with pytest.raises(Refused, match="not JSON that can be read"):
            parse_line(line)


@pytest.mark.parametrize(
    ("fitted", "sentence"),
    [
        ({"x": 1}, "lacks its codebook"),
        ([], "lacks its codebook"),
        ({"codebook": 1}, "lacks its codebook"),
        ({"codebook": {}, "features": 3}, "features"),
        ({"codebook": {}, "interval": -1}, "interval"),
        ({"codebook": {}, "interval": "often"}, "interval"),
        ({"codebook": {}, "people": "ada"}, "people"),
        ({"codebook": {}, "reading": 5}, "a reading that is none"),
        ({"codebook": {}, "reading": {"kind": "window", "seconds": -1}}, "a reading that is none"),
        ({"codebook": {}, "reading": {"kind": "tea"}}, "a reading that is none"),
    ],
)
def test_what_was_not_made_by_a_fit_is_refused(fitted, sentence):
    with pytest.raises(InputError, match=sentence):
        Model.from_json(problem(fitted=fitted))


@pytest.mark.parametrize("codebook", [{}, {"mean": 1}, {"mean": [[1]], "deviation": [["x"]]}, {"mean": [[1], [2, 3]]}])
def test_a_codebook_that_is_none_is_refused(codebook):
    model = Model.from_json(problem(fitted={"codebook": codebook, "reading": {"kind": "sample"}}))
    with pytest.raises(InputError, match="codebook"):
        Encoder.of(model)


@settings(max_examples=100)
@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("codebook", "reading", "features", "interval", "people"), JSON))
)
def test_whatever_was_fitted_is_read_or_refused(fitted):
    with suppress(InputError):
        Encoder.of(Model.from_json(problem(fitted=fitted)))


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from([*problem(), "fitted", "other"]), JSON, max_size=3))
def test_whatever_a_problem_says_is_read_or_refused(changed):
    with suppress(InputError):
        Model.from_json(problem(**changed))


@pytest.mark.parametrize("axis", ["secrets", "useful", "sensors", "symbols"])
def test_half_a_character_is_no_name(axis):
    with pytest.raises(InputError, match=r"'\\ud800', which holds half a character"):
        Model.from_json(problem(**{axis: ["\ud800", "other"]}))


@pytest.mark.parametrize("name", ["merged: u0", "declare: u1", "go on: u0", "withheld"])
def test_a_reading_is_not_named_like_what_is_sent_in_its_place(name):
    with pytest.raises(InputError, match=f"The symbol '{name}' has the name of what is sent in place"):
        Model.from_json(problem(useful=["u0", "u1"], symbols=[name, "other"]))
    # Other names that look alike are fine.
    Model.from_json(problem(useful=["u0", "u1"], symbols=[name + "!", "other"]))


def test_the_guarantee_sends_no_name_that_is_a_reading(tmp_path):
    """What is refused above is all that a gateway can send in place of readings."""
    runtime = Runtime.load(write_policy(tmp_path / "policy.safetensors", coarsened()))
    assert len(set(runtime.symbols)) == len(runtime.symbols)


@pytest.mark.parametrize(
    "bound",
    [
        {"confidence": {"limit": 0.8}, "information": {"bits": 1.0}},
        {"confidence": {"limit": 0.8}, "other": {}},
        {"other": {}},
        {},
        [],
    ],
)
def test_a_header_has_one_bound(tmp_path, bound):
    described = task().to_json() | {"bound": bound}
    with pytest.raises(InputError, match="A task has one bound"):
        Task.from_json(described)
    for known in ({"confidence": {"limit": 0.8}}, {"information": {"bits": 1.0}}, {"unbounded": {}}):
        described = task().to_json() | {"bound": known, "enforcement": {"paper": {"cost": 3.0}}}
        assert Task.from_json(described).to_json()["bound"] == known


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return write_policy(tmp_path_factory.mktemp("policy") / "policy.safetensors")


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(list(task().to_json())), JSON, min_size=1, max_size=2))
def test_whatever_a_header_says_is_read_or_refused(policy, changed):
    arrays, metadata = read_arrays(policy, "policy file")
    header = json.loads(metadata[HEADER])
    odd = policy.with_name("odd.safetensors")
    write_arrays(odd, arrays, {HEADER: json.dumps(header | {"task": header["task"] | changed})})
    with suppress(InputError):
        Runtime.load(odd)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("page"))
    with closing(Page(place.gateway, port=0)) as found:
        yield found
    place.ledger.close()


def answered(page, where):
    """The status that the page answers with."""
    with closing(http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)) as connection:
        connection.putrequest("GET", where, skip_host=True)
        connection.putheader("Host", f"127.0.0.1:{page.port}")
        connection.endheaders()
        return connection.getresponse().status


@pytest.mark.parametrize("where", ["http://[x/events", "http://[/", "http://[::1/events?subject=ada"])
def test_an_address_that_is_none_is_answered(page, where):
    assert answered(page, where) == 400


@settings(max_examples=30)
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20))
def test_whatever_address_is_asked_for_is_answered(page, where):
    assert answered(page, where) in (200, 400, 403, 404)
