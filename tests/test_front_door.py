"""Every public name explains itself: what it is, its arguments, what it returns, and an example that runs."""

import abc
import doctest
import enum
import inspect

import pytest

import reticent as rt

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
FUNCTIONS = [name for name in rt.__all__ if inspect.isfunction(getattr(rt, name))]


@pytest.mark.parametrize("name", rt.__all__)
def test_every_public_name_has_an_example_that_runs(name):
    [example] = doctest.DocTestFinder(recurse=False).find(getattr(rt, name), name, globs={"rt": rt})
    assert example.examples
    told = []
    found = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=told.append)
    assert not found.failed, "".join(told)


@pytest.mark.parametrize("name", rt.__all__)
def test_every_argument_is_explained(name):
    public = getattr(rt, name)
    if inspect.isclass(public) and (inspect.isabstract(public) or issubclass(public, enum.Enum | Exception)):
        return
    explained = inspect.getdoc(public) or ""
    arguments = [a for a in inspect.signature(public).parameters if a not in ("args", "kwargs")]
    assert all(f"{argument}:" in explained or f"`{argument}`" in explained for argument in arguments)


def test_functions_say_what_they_return():
    assert {"solve", "load", "fit", "certify", "check_model", "read_problem"} <= set(FUNCTIONS)
    assert all("Returns:" in (inspect.getdoc(getattr(rt, name)) or "") for name in FUNCTIONS)


def test_what_a_user_derives_from_is_abstract():
    assert all(isinstance(kind, abc.ABCMeta) and inspect.isabstract(kind) for kind in (rt.Policy, rt.Bound))
