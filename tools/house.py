"""Figures of the code and the site: ``python tools/house.py [folder of a checkout]``.

They are there to be looked at, and are no limits. Numbers per 100 and per 1,000 are relative to the lines of code,
without docstrings, comments and blank lines. A hidden member is one that ``hasattr`` or ``getattr`` looks up, and that
neither protocols.py nor capabilities.py states. Fitted attributes of an estimator itself are left out, and so are the
members of objects that are not parts of the library, such as arrays, files and the estimators of scikit-learn.
"""

import ast
import io
import json
import re
import statistics
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

NO_PROSE = re.compile(r"#\s*(noqa|type:|fmt:|pragma|\()")
"""Comments for tools, and those that state a shape."""
FOREIGN = """
    __array__ __array_interface__ __iter__ __len__ __name__ __self__ best_estimator_ ch_names choice_
    clear_controlling_thread decision dtype encoding errno
    estimator estimator_ fit fit_transform get_data get_params iloc imag isatty item kernels labels n_epochs_
    ndim partial_fit predict predict_log_proba predict_proba prototype_labels_ prototypes_ reads_parts reason
    register_at_fork samples set_params shape sigma2_ split state_ steps strerror terms threading_layer tolist trainer_
    transform
"""
FIT = """
import json, sys
from rplvq import RiemannianLVQ
from rplvq.datasets import load_digits_covariances
X, y = load_digits_covariances()
files, depth, deepest = set(), 0, 0
def watch(frame, event, argument):
    global depth, deepest
    if "/rplvq/" not in frame.f_code.co_filename or event not in ("call", "return"):
        return
    depth += 1 if event == "call" else -1
    deepest = max(deepest, depth)
    files.add(frame.f_code.co_filename)
sys.setprofile(watch)
RiemannianLVQ(random_state=0).fit(X[:300], y[:300])
sys.setprofile(None)
print(json.dumps([len(files), deepest]))
"""
"""A program that prints how many files of the package a default fit crosses, and how deep its calls are."""


def docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the docstrings of a module and of everything in it."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            yield node.body[0]


def stated_members(package: Path) -> set[str]:
    """Return the names of all members that the protocols and the capabilities state."""
    trees = [ast.parse((package / name).read_text()) for name in ("protocols.py", "capabilities.py")]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def looked_up(tree: ast.Module) -> Iterator[str]:
    """Yield the constant names that ``hasattr`` and ``getattr`` look up on other objects than self."""
    for node in ast.walk(tree):
        is_look_up = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1
        if not is_look_up or node.func.id not in ("hasattr", "getattr") or not isinstance(node.args[1], ast.Constant):
            continue
        if ast.unparse(node.args[0]) != "self":
            yield node.args[1].value


def body_length(function: ast.FunctionDef) -> int:
    """Return the number of lines of a function below its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return function.end_lineno - body[0].lineno + 1 if body else 0


def is_tuple_assignment(node: ast.AST) -> bool:
    """Whether a statement assigns a tuple that it writes out to several names."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
        return False
    return any(isinstance(target, ast.Tuple) for target in node.targets)


def counts_of(path: Path) -> Counter[str]:
    """Return what is counted in one file."""
    text = path.read_text()
    tree = ast.parse(text)
    lines = text.splitlines()
    in_docstrings = {number for doc in docstrings(tree) for number in range(doc.lineno, doc.end_lineno + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    nodes = list(ast.walk(tree))
    found = Counter(files=1, lines=len(lines), docstring=len(in_docstrings))
    found["blank"] = sum(not line.strip() for number, line in enumerate(lines, 1) if number not in in_docstrings)
    found["comment"] = sum(token.line.strip().startswith("#") for token in comments)
    found["prose"] = sum(not NO_PROSE.match(token.string) for token in comments)
    found["tuples"] = sum(map(is_tuple_assignment, nodes))
    found["conditional"] = sum(isinstance(node, ast.IfExp) for node in nodes)
    found["Any"] = sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)
    return found


def figures(root: Path) -> dict[str, object]:
    """Return all figures of a checkout by name."""
    package = root / "rplvq"
    paths = sorted(package.rglob("*.py"))
    trees = [ast.parse(path.read_text()) for path in paths]
    total = sum(map(counts_of, paths), Counter())
    parts = [total["docstring"], total["comment"], total["blank"]]
    code = total["lines"] - sum(parts)
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    lengths = sorted(filter(None, map(body_length, functions)))
    tenth = lengths[-len(lengths) // 10]
    known = stated_members(package) | set(FOREIGN.split())
    hidden = Counter(name for tree in trees for name in looked_up(tree) if name not in known)
    tokens = [token for page in (root / "docs").rglob("*.md") for token in page.read_text().split()]
    words = sum(any(map(str.isalpha, token)) for token in tokens)
    fit = [sys.executable, "-c", FIT]
    n_files, depth = json.loads(subprocess.check_output(fit, cwd=root, env={"PYTHONPATH": str(root)}))  # noqa: S603
    return {
        "lines / files": f"{total['lines']:,} / {total['files']}",
        "code / docstring / comment / blank %": " / ".join(f"{100 * n / total['lines']:.1f}" for n in (code, *parts)),
        "prose comments per 100 lines of code": f"{100 * total['prose'] / code:.1f}",
        "tuple = tuple assignments per 1,000": f"{1000 * total['tuples'] / code:.1f} ({total['tuples']} in all)",
        "conditional expressions per 1,000": f"{1000 * total['conditional'] / code:.1f}",
        "function body median / p90 / max": f"{statistics.median(lengths):g} / {tenth} / {lengths[-1]}",
        "words of documentation (and tokens)": f"{words:,} ({len(tokens):,})",
        "hidden members (look-ups)": f"{len(hidden)} ({hidden.total()}): {', '.join(sorted(hidden))}",
        "Any": total["Any"],
        "files / depth of a default fit": f"{n_files} / {depth}",
    }


if __name__ == "__main__":
    for name, figure in figures(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()).items():
        print(f"{name:40s} {figure}")
