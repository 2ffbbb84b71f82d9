"""Core's own source, as the scripts that are taken away carry it: what a module defines, imports and uses, by name."""

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, NamedTuple

from core.settings.menu import Menu
from core.tasks.task import Task, described

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Node = ast.stmt | ast.expr  # what has a place in the source
Names = frozenset[str]


class Symbol(NamedTuple):
    """A definition at the top level of a module that goes into the script."""

    module: str
    name: str


DESCRIBED = Symbol(described.__module__, described.__name__)


class Import(NamedTuple):
    """`import module as called`, or `from module import name as called`, of torch or the standard library."""

    module: str
    name: str | None
    called: str


class Source:
    """The source of one module: what it defines at its top level, and what it imports, by name."""

    def __init__(self, text: str):
        self.lines = text.encode().split(b"\n")  # bytes, because ast counts columns in bytes
        self.tree = ast.parse(text)
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        for statement in self.tree.body:
            for name in _defined(statement):
                self.definitions.setdefault(name, []).append(statement)
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._read_import(statement)

    def _read_import(self, statement: ast.Import | ast.ImportFrom) -> None:
        for each in statement.names:
            if isinstance(statement, ast.ImportFrom):
                self.imports[each.asname or each.name] = (statement.module or "." * statement.level, each.name)
            else:
                self.imports[each.asname or each.name.split(".")[0]] = (each.name, None)

    @property
    def about(self) -> str:
        """The module's docstring."""
        return ast.get_docstring(self.tree) or ""


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> Source:
    return Source(text)


def source_of(module: str) -> Source:
    return _parsed(inspect.getsource(importlib.import_module(module)))


def home(part: Callable[..., Any]) -> Symbol:
    """Where a function or class is defined; a task's home is that of the function which draws its data."""
    part = part.draw if isinstance(part, Task) else part
    if part.__name__ not in source_of(part.__module__).definitions:
        raise ValueError(f"{part.__name__} is not defined at the top level of {part.__module__}; no script can have it")
    return Symbol(part.__module__, part.__name__)


def live(symbol: Symbol) -> Any:
    return getattr(sys.modules[symbol.module], symbol.name, None)


def resolve(module: str, name: str) -> Symbol | Import | None:
    """What a global name of a module stands for; None: a builtin."""
    source = source_of(module)
    if name in source.definitions:
        return Symbol(module, name)
    if name not in source.imports:
        return None
    origin, member = source.imports[name]
    ours = origin.split(".")[0] in ("core", module.split(".")[0])
    if not ours:
        return Import(origin, member, name)
    if member is None or member not in source_of(origin).definitions | source_of(origin).imports:
        raise ValueError(f"{module} imports the module {name} whole; a script can only have single definitions of it")
    return resolve(origin, member)


def is_menu(module: str, node: ast.expr) -> bool:
    target = resolve(module, node.id) if isinstance(node, ast.Name) else None
    return isinstance(target, Symbol) and isinstance(live(target), Menu)


def enters(module: str, decorator: ast.expr) -> bool:
    """Whether a decorator does nothing but enter a part in a menu, with what is known about it."""
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return is_menu(module, name) or isinstance(name, ast.Name) and resolve(module, name.id) == DESCRIBED


def _defined(statement: ast.stmt) -> list[str]:
    """The names that a statement at the top level defines, or puts something into, as `TABLE["pre"] = 1` does."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    targets = [each for target in targets for each in getattr(target, "elts", [target])]
    bases = [each.value if isinstance(each, ast.Attribute | ast.Subscript) else each for each in targets]
    return [each.id for each in bases if isinstance(each, ast.Name)]


def global_names(
    node: ast.AST, left_out: Set[ast.AST | None] = frozenset(), local: Names = frozenset()
) -> Iterator[tuple[ast.Name, Names]]:
    """Every ast.Name in a node that means a name of the module or a builtin, each with the names that are local there."""
    if node in left_out:
        return
    if isinstance(node, ast.Name):
        if node.id not in local:
            yield node, local
        return
    for child, bound in _scoped(node):
        yield from global_names(child, left_out, local | bound)


def walk(node: ast.AST, left_out: Set[ast.AST]) -> Iterator[ast.AST]:
    if node not in left_out:
        yield node
        for child in ast.iter_child_nodes(node):
            yield from walk(child, left_out)


def _scoped(node: ast.AST) -> list[tuple[ast.AST, Names]]:
    """The children of a node, each with the names that are bound for it there."""
    nothing: Names = frozenset()
    if isinstance(node, FUNCTIONS):
        body = node.body if isinstance(node.body, list) else [node.body]
        arguments = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        inside = frozenset(arguments | set(_bound(body)))
        return [(each, inside if each in body else nothing) for each in ast.iter_child_nodes(node)]
    if isinstance(node, ast.ClassDef):  # its names are seen in its own body, but not in its methods
        inside = frozenset(_bound(node.body))
        plain = [each for each in node.body if not isinstance(each, FUNCTIONS)]
        return [(each, inside if each in plain else nothing) for each in ast.iter_child_nodes(node)]
    if isinstance(node, COMPREHENSIONS):
        first = node.generators[0].iter
        inside = frozenset(_bound([each.target for each in node.generators]))
        children = [each for part in node.generators for each in ast.iter_child_nodes(part)]
        children += [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.comprehension)]
        return [(each, nothing if each is first else inside) for each in children]
    return [(each, nothing) for each in ast.iter_child_nodes(node)]


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that statements bind in their own scope."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield from [node.id] * isinstance(node.ctx, ast.Store)
        elif not isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
            if isinstance(node, ast.ExceptHandler) and node.name:
                yield node.name
            yield from [(each.asname or each.name).split(".")[0] for each in [node] if isinstance(each, ast.alias)]
            yield from _bound(ast.iter_child_nodes(node))
