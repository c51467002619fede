"""Griffe extension for what docstrings and classes of this library hold and Markdown does not know.

Sphinx roles (``:class:``, ``:func:``) become cross-references, bare DOIs become links, and attrs classes and named
tuples get the signature of their constructor.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([\w.]+)`")
DOI = re.compile(r"(?<![/\w.])doi:(10\.\d{4,9}/[^\s,;)\]]*[^\s,;)\].])")
OURS = "rplvq."


def to_markdown(text: str, package: Any) -> str:
    """Translate the roles and DOIs of one docstring."""

    def reference(match: re.Match[str]) -> str:
        target = match[1]
        name = target.rpartition(".")[2]
        if not target.startswith(OURS):
            return f"`{target}`"
        try:  # what the package re-exports is documented where it is defined
            path = package[target.removeprefix(OURS)].canonical_path
        except KeyError:
            raise ValueError(f"a docstring refers to {target}, which does not exist") from None
        return f'<autoref identifier="{path}" optional><code>{name}</code></autoref>'

    return DOI.sub(r"[doi:\1](https://doi.org/\1)", ROLE.sub(reference, text))


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
    """Applied to the whole package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Walk over all objects."""
        self._walk(pkg, pkg)

    def _walk(self, item: Any, package: griffe.Module) -> None:
        if item.is_alias:
            return
        if item.docstring:
            item.docstring.value = to_markdown(item.docstring.value, package)
        if item.is_class and "__init__" not in item.members and self._has_fields(item):
            parameters = griffe.Parameters(griffe.Parameter("self"), *fields(item))
            item.set_member("__init__", griffe.Function("__init__", parameters=parameters))
        for member in list(item.members.values()):
            self._walk(member, package)

    def _has_fields(self, cls: griffe.Class) -> bool:
        decorators = [str(decorator.value) for decorator in cls.decorators]
        is_attrs = any(name.startswith(("attrs.frozen", "attrs.define")) for name in decorators)
        return is_attrs or "NamedTuple" in map(str, cls.bases)
