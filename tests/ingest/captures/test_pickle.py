"""The pickle machine agrees with pickle on plain data, and refuses everything else in bounded time and memory."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.captures import pickle as torch_pickle
from gradtrend.ingest.captures.pickle import load
from gradtrend.model.contents import GlobalRef, Inert

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
keys = st.text() | st.integers(-(2**63), 2**63) | st.tuples(st.integers(0, 9), st.text(max_size=3))
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(keys, inner) | st.lists(inner).map(tuple),
    max_leaves=30,
)


@given(trees, st.sampled_from([0, 1, 2, 3, 4, 5]))
def test_plain_data_is_read_as_pickle_reads_it(tree: Any, protocol: int) -> None:
    if protocol < 3 and b"" in _leaves(tree):  # empty bytes are `bytes()` there: a call, which is kept by name
        return
    assert load(pickle.dumps(tree, protocol), {}) == tree


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in _leaves(value)]
    if isinstance(tree, list | tuple):
        return [leaf for value in tree for leaf in _leaves(value)]
    return [tree]


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        load(data, {})
    except InputError:
        return


@settings(max_examples=200)
@given(trees, st.integers(0, 500), st.binary(min_size=1, max_size=4))
def test_a_damaged_pickle_is_read_or_refused(tree: Any, at: int, damage: bytes) -> None:
    data = bytearray(pickle.dumps(tree, 2))
    at %= len(data)
    data[at : at + len(damage)] = damage
    try:
        load(bytes(data), {})
    except InputError:
        return


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x02",
        b".",
        b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00lsR.",  # arguments that are no tuple
        b"\x80\x02X\x02\x00\x00\x00ls)R.",  # calls a text
        b"\x80\x02h\x05.",  # recalls what was never stored
        b"\x80\x02t.",  # closes no mark
        b"\x80\x02}q\x00K\x01s.",  # sets an item with a key alone
        b"\x80\x02]]K\x01s.",  # sets an item of a list
        b"\x80\x02}]K\x01s.",  # a list as a key
        b"\x80\x02}\x8a\x20" + b"\xff" * 31 + b"\x7fK\x01s.",  # a huge integer as a key
        b"\x80\x02\x82\x01.",  # the extension registry
        b"\x80\x02Pabc\n.",  # a persistent id in text
        b"\x80\x02X\xff\xff\xff\x7fabc.",  # two gigabytes of text declared
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7fabc.",  # a huge bytearray declared
        b"\x80\x02(" + b"(" * 1000,
    ],
)
def test_a_malformed_pickle_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="damaged or hostile"):
        load(data, {})


def test_a_huge_memo_index_costs_nothing() -> None:
    assert load(b"\x80\x02]r\xff\xff\xff\x7f.", {}) == []


def test_too_many_operations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_pickle, "MAX_OPCODES", 1000)  # the real limit takes 4 s to reach
    with pytest.raises(InputError, match="operations"):
        load(b"\x80\x02" + b"]0" * 501 + b".", {})


def test_deep_nesting_needs_no_recursion() -> None:
    depth = 100_000
    tree = load(b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b".", {})
    assert isinstance(tree, list)


def test_sets_and_objects_are_kept_by_name() -> None:
    made = load(pickle.dumps({"a": {1}, "b": frozenset([2]), "c": complex(1, 2)}, 4), {})
    assert made["a"].callee == GlobalRef("builtins", "set")
    assert made["a"].arguments == ([1],)
    assert isinstance(made["b"], Inert)
    assert made["c"].callee.name == "complex"


def test_old_style_instances_are_kept_by_name() -> None:
    tree = load(b"\x80\x02}X\x01\x00\x00\x00a(X\x02\x00\x00\x00lsios\nsystem\ns.", {})
    assert tree["a"].callee == GlobalRef("os", "system")
    assert tree["a"].arguments == ("ls",)


def _remembered(value: bytes, uses: bytes) -> bytes:
    """A pickle that stores a value as memo 900 and then makes a list of its `uses`."""
    return b"\x80\x04" + value + b"r\x84\x03\x00\x000](" + uses + b"e."


_RECALL = b"j\x84\x03\x00\x00"
_NUMBERS = b"(" + b"K\x01" * 100_000 + b"t"
_TEXT = b"X\x00\x00\x10\x00" + b"a" * (1 << 20)


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02\x8b\x00\x08\x00\x00" + b"\x7f" * 2048 + b".",  # an integer that cannot be printed
        _remembered(_NUMBERS, b"}" + _RECALL + b"K\x01s"),  # a long key, hashed each time
        _remembered(_TEXT, (b"c_codecs\nencode\n(" + _RECALL + b"X\x06\x00\x00\x00latin1tR") * 200),
        _remembered(_TEXT, _RECALL + _RECALL + b"\x93"),  # a class with a name of a megabyte
        _remembered(
            b"](" + b"X\x01\x00\x00\x00aK\x01\x86" * 50_000 + b"e",
            (b"ccollections\nOrderedDict\n" + _RECALL + b"\x85R") * 100,
        ),
        _remembered(
            b"}(" + b"".join(b"X\x06\x00\x00\x00%06dK\x01" % i for i in range(1000)) + b"u",
            b"ca\nb\n)" + _RECALL + b"\x92",  # a call with a thousand keywords
        ),
    ],
    ids=["integer", "key", "bytes", "class", "dictionaries", "keywords"],
)
def test_a_large_value_used_again_and_again_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="damaged or hostile"):
        load(data, {})


@pytest.mark.filterwarnings("error")
def test_a_text_that_ends_in_half_an_escape_is_read_without_a_warning() -> None:
    assert load(b"\x80\x02S'a\\q'\n.", {}) == "a\\q"
