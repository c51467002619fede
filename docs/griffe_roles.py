"""Griffe extension that translates what docstrings of this library hold and Markdown does not know.

Sphinx roles (``:class:``, ``:func:``) become cross-references, bare DOIs become links, and attrs classes and named
tuples get the signature of their constructor.

A role names an object by the path from which users import it, such as ``rplvq.Trainer``. The object itself lies in a
module whose name begins with an underscore, and a page of docs/api documents it under the path of its room, such as
``rplvq.training.Trainer``. All three paths lead to the same entry, because mkdocstrings registers an entry under the
path of its definition, too. A cross-reference therefore uses the path of the definition. A role may also name an
object as the code around it does: ``init`` in the class ``Trainer`` is ``Trainer.init``.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([\w.]+)`")
GROUP = re.compile(r"^(\**\w+(?:, \**\w+)+)(?: : (.*))?\n((?: +\S.*(?:\n|$))+)", flags=re.M)
NOTES = re.compile(r"(?<=^Notes\n-----\n).*?(?=^\w[^\n]*\n---|\Z)", flags=re.M | re.S)
ENTRY = re.compile(r"^(\**\w+)(?: : (.*))?\n((?: +\S.*(?:\n|$))+)", flags=re.M)
LIKE = re.compile(r"(?<= )((?:array|path)-like)(?=,| and|$)", flags=re.M)
DOI = re.compile(r"(?<![/\w.])doi:(10\.\d{4,9}/(?:\([^\s()]*\)|[^\s,;()\]])*(?:\([^\s()]*\)|[^\s,;()\].]))")
OURS = "rplvq."
MANUALS = {
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{}.html",
}
"""Where other libraries describe an object, by the first part of its name."""


def to_markdown(text: str, item: Any) -> str:
    """Translate the roles and DOIs of the docstring of ``item``, and give each parameter its own entry.

    An object that exists and has no entry in docs/api is shown as code without a link. Objects of NumPy and of
    scikit-learn link to their manuals, whose addresses follow from the name, so that a build needs no network.

    Raises
    ------
    ValueError
        If a role names an object of this library that does not exist.
    """

    def reference(match: re.Match[str]) -> str:
        target = match[1]
        manual = MANUALS.get(target.partition(".")[0])
        if manual is not None:
            return f"[`{target}`]({manual.format(target)})"
        path = definition(target, item)
        if path is None:
            return f"`{target}`"
        return f'<autoref identifier="{path}" optional><code>{target.rpartition(".")[2]}</code></autoref>'

    text = NOTES.sub(lambda notes: ENTRY.sub(listed, notes[0]), one_entry_each(text))
    text = re.sub(r" ?::$", ":", text, flags=re.M)  # Markdown needs no mark before an indented block
    text = LIKE.sub(r"\1 object", text)  # griffe would read path-like as a difference
    return DOI.sub(r"[doi:\1](https://doi.org/\1)", ROLE.sub(reference, text))


def listed(entry: re.Match[str]) -> str:
    """Return an entry ``name : type`` in Notes, where griffe reads no entries, as an item of a list."""
    kind = f" ({entry[2]})" if entry[2] else ""
    return f"- **`{entry[1]}`**{kind}: {' '.join(entry[3].split())}\n"


def one_entry_each(text: str) -> str:
    """Split each entry ``a, b : A and B`` into ``a : A`` and ``b : B``; one type, or none, is that of all names.

    Without this, griffe would show the type and the default value of the first name for all of them. What a later type
    leaves out is that of the first one: ``a, b : int, default=1 and 2``, or ``ndarray of shape (N, n), and (N,)``.
    """

    def split(match: re.Match[str]) -> str:
        names, types, description = match[1].split(", "), (match[2] or "").split(" and "), match[3].rstrip("\n")
        if 1 < len(types) < len(names):
            types = re.split(", | and ", match[2])
        if len(types) != len(names):
            types = [match[2] or ""] * len(names)
        types = [completed(kind.rstrip(","), types[0]) for kind in types]
        heads = [f"{name} : {kind}" if kind else name for name, kind in zip(names, types, strict=True)]
        return "".join(f"{head}\n{description}\n" for head in heads)

    return GROUP.sub(split, text)


def completed(kind: str, first: str) -> str:
    """Return the type of a later name of a group with what it leaves out of the type of the first name."""
    if kind.startswith("of "):
        return first.partition(" of ")[0] + " " + kind
    if kind.startswith("(") and " of shape (" in first:
        return first.partition("(")[0] + kind
    if "default=" in first and is_value(kind):
        return first.partition("default=")[0] + "default=" + kind
    return kind


def is_value(text: str) -> bool:
    """Whether a text is a number, a string or another literal of Python, and not a type."""
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return False
    return True


def definition(target: str, item: Any) -> str | None:
    """Return the path under which an object of this library is defined, None for any other object.

    Raises
    ------
    ValueError
        If the name begins like one of this library, and there is no such object.
    """
    if not target.startswith(OURS):
        try:
            target = item.resolve(target)
        except griffe.NameResolutionError:
            return None
    if not target.startswith(OURS):
        return None
    try:
        return str(item.package[target.removeprefix(OURS)].canonical_path)
    except KeyError:
        raise ValueError(f"there is no {target}") from None


def fields(cls: griffe.Class) -> list[griffe.Parameter]:
    """Constructor parameters of an attrs class or named tuple: its annotated attributes, in order."""
    found = []
    for attribute in cls.attributes.values():
        if attribute.annotation is None or "property" in attribute.labels:
            continue
        default, kind = attribute.value, griffe.ParameterKind.positional_or_keyword
        if isinstance(default, griffe.ExprCall) and str(default.function) == "attrs.field":
            given = {item.name: item.value for item in default.arguments if isinstance(item, griffe.ExprKeyword)}
            if str(given.get("init")) == "False":
                continue
            default = given.get("default", f"{given['factory']}()" if "factory" in given else None)
            if str(given.get("kw_only")) == "True":
                kind = griffe.ParameterKind.keyword_only
        found.append(griffe.Parameter(attribute.name, annotation=attribute.annotation, kind=kind, default=default))
    return found


class Roles(griffe.Extension):
    """The extension; griffe calls it with the whole package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Translate all docstrings of the package, and name all broken roles at once."""
        broken: list[str] = []
        self._walk(pkg, broken)
        if broken:
            raise ValueError("docstrings refer to objects that do not exist:\n" + "\n".join(broken))

    def _walk(self, item: Any, broken: list[str]) -> None:
        if item.is_alias:
            return
        if item.docstring:
            try:
                item.docstring.value = to_markdown(item.docstring.value, item)
            except ValueError as error:
                broken.append(f"{item.path}: {error}")
        if item.is_class and "__init__" not in item.members and self._has_fields(item):
            parameters = griffe.Parameters(griffe.Parameter("self"), *fields(item))
            item.set_member("__init__", griffe.Function("__init__", parameters=parameters))
        for member in list(item.members.values()):
            self._walk(member, broken)

    def _has_fields(self, cls: griffe.Class) -> bool:
        decorators = [str(decorator.value) for decorator in cls.decorators]
        is_attrs = any(name.startswith(("attrs.frozen", "attrs.define")) for name in decorators)
        return is_attrs or "NamedTuple" in map(str, cls.bases)
