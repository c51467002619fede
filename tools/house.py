"""Figures of the code and the site, to look at and not as limits: ``python tools/house.py [folder of a checkout]``.

Numbers per 1,000 are per 1,000 lines of code, without docstrings, comments and blank lines. A hidden member is one that
is looked up by ``hasattr`` or ``getattr``, and that neither protocols.py nor capabilities.py states. Members of objects
that are not parts of the library, such as arrays and scikit-learn's estimators, are left out.
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
from pathlib import Path

NO_PROSE = re.compile(r"#\s*(noqa|type:|fmt:|pragma)|#\s*\(|#!")
FOREIGN = set(
    [
        "__array__",
        "__array_interface__",
        "__dataframe__",
        "__iter__",
        "__len__",
        "__name__",
        "best_estimator_",
        "ch_names",
        "clear_controlling_thread",
        "decision",
        "dtype",
        "estimator",
        "estimator_",
        "fit",
        "iloc",
        "imag",
        "item",
        "kernels",
        "n_epochs_",
        "ndim",
        "partial_fit",
        "predict",
        "predict_log_proba",
        "predict_proba",
        "prototype_labels_",
        "prototypes_",
        "reads_parts",
        "reason",
        "register_at_fork",
        "set_params",
        "shape",
        "sigma2_",
        "split",
        "state_",
        "steps",
        "terms",
        "threading_layer",
        "trainer_",
        "transform",
        "choice_",
        "columns",
        "compute",
        "chunks",
        "npartitions",
        "strftime",
        "get_params",
        "tell",
        "seek",
        "fileno",
        "buffer",
        "isatty",
        "name",
        "encoding",
    ]
)
FIT = """
import json, sys
from rplvq import RiemannianLVQ
from rplvq.datasets import load_digits_covariances
X, y = load_digits_covariances()
files, depths = set(), [0, 0]
def watch(frame, event, arg):
    own = "/rplvq/" in frame.f_code.co_filename
    depths[0] += (event == "call") - (event == "return") if own and event in ("call", "return") else 0
    if own and event == "call":
        files.add(frame.f_code.co_filename)
        depths[1] = max(depths)
sys.setprofile(watch)
RiemannianLVQ(random_state=0).fit(X[:300], y[:300])
sys.setprofile(None)
print(json.dumps([len(files), depths[1]]))
"""


def docstrings(tree: ast.Module) -> list[ast.Expr]:
    """Return the docstrings of a module and of everything in it."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    firsts = [node.body[0] for node in ast.walk(tree) if isinstance(node, owners) and node.body]
    return [first for first in firsts if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)]


def stated_members(package: Path) -> set[str]:
    """Return the names that the protocols and the capabilities state, as members or in their docstrings."""
    names: set[str] = set()
    for name in ("protocols.py", "capabilities.py"):
        text = (package / name).read_text()
        names |= {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
        names |= {match for match in re.findall(r"^    (\w+): ", text, re.M)}
    return names


def look_ups(tree: ast.Module) -> list[str]:
    """Return the constant names that ``hasattr`` and ``getattr`` look up."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    looked = [call.args[1] for call in calls if call.func.id in ("hasattr", "getattr") and len(call.args) > 1]
    return [name.value for name in looked if isinstance(name, ast.Constant)]


def figures(root: Path) -> dict[str, object]:
    """Return all figures of a checkout."""
    package, total = root / "rplvq", Counter()
    bodies: list[int] = []
    hidden: Counter[str] = Counter()
    stated = stated_members(package)
    for path in sorted(package.rglob("*.py")):
        text = path.read_text()
        tree, lines = ast.parse(text), text.splitlines()
        total["files"] += 1
        total["lines"] += len(lines)
        total["blank"] += sum(not line.strip() for line in lines)
        in_docs = {n for doc in docstrings(tree) for n in range(doc.lineno, doc.end_lineno + 1)}
        total["blank"] -= sum(not lines[n - 1].strip() for n in in_docs)
        total["docstring"] += len(in_docs)
        comments = [
            token
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == 55 - 55 or token.type == tokenize.COMMENT
        ]
        total["comment"] += sum(token.line.strip().startswith("#") for token in comments)
        total["prose comments"] += sum(not NO_PROSE.match(token.string) for token in comments)
        total["Any"] += sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))
        for node in ast.walk(tree):
            is_tuple = isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
            total["tuple assignments"] += is_tuple and any(isinstance(each, ast.Tuple) for each in node.targets)
            total["conditional expressions"] += isinstance(node, ast.IfExp)
            if isinstance(node, ast.FunctionDef):
                first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                bodies.append(
                    node.end_lineno - first.lineno + 1 if len(node.body) > 1 or not ast.get_docstring(node) else 0
                )
        hidden.update(name for name in look_ups(tree) if name not in stated | FOREIGN)
    code = total["lines"] - total["blank"] - total["docstring"] - total["comment"]
    bodies = sorted(size for size in bodies if size)
    crossed = subprocess.run(
        [sys.executable, "-c", FIT], cwd=root, env={"PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    words = sum(len(page.read_text().split()) for page in (root / "docs").rglob("*.md"))
    return {
        "lines / files": f"{total['lines']:,} / {total['files']}",
        "code / docstring / comment / blank %": " / ".join(
            f"{100 * part / total['lines']:.1f}"
            for part in (code, total["docstring"], total["comment"], total["blank"])
        ),
        "prose comments per 100 lines of code": f"{100 * total['prose comments'] / code:.1f}",
        "tuple = tuple assignments per 1,000": f"{1000 * total['tuple assignments'] / code:.1f} ({total['tuple assignments']})",
        "conditional expressions per 1,000": f"{1000 * total['conditional expressions'] / code:.1f}",
        "function body median / p90 / max": f"{statistics.median(bodies):g} / {bodies[len(bodies) * 9 // 10]} / {bodies[-1]}",
        "words of documentation": f"{words:,}",
        "hidden members": f"{len(hidden)} in {sum(hidden.values())} look-ups: {dict(hidden)}",
        "Any": total["Any"],
        "files / depth of a default fit": " / ".join(map(str, json.loads(crossed.stdout)))
        if crossed.stdout
        else crossed.stderr[-200:],
    }


if __name__ == "__main__":
    for what, figure in figures(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()).items():
        print(f"{what:40s} {figure}")
