"""Core's own source, cut down to what a few functions need: the text of one script of torch and the standard library.

Nothing here knows a part of the model by name. Starting from some functions, every global name that they use is
followed to its definition, so that a new entry of a menu is in the scripts as soon as it is in the menu.
"""

import ast
import builtins
import functools
import importlib
import inspect
import re
import sys
from dataclasses import fields
from textwrap import indent
from typing import NamedTuple

from core.model.config import Config
from core.settings.menu import Menu
from core.tasks.task import Task, described
from core.train.settings import Training

WIDTH = 120  # characters in a line
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Symbol(NamedTuple):
    """A definition at the top level of a module that goes into the script."""

    module: str
    name: str


# Settings: in a script they are plain classes, whose defaults are the values that are given.
PLAIN = {Symbol(kind.__module__, kind.__name__): kind for kind in (Config, Training)}
MENUS = {field: each.menu for kind in PLAIN.values() for field, each in kind.settings().items() if each.menu}
SWITCHES = ("config", "training", "problem")  # what branches ask, as in `if config.attention:`
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

    def _read_import(self, statement):
        for each in statement.names:
            if isinstance(statement, ast.ImportFrom):
                self.imports[each.asname or each.name] = (statement.module, each.name)
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


class Bundle:
    """The definitions that some functions need.

    functions: they may be classes, settings among them. values: for every setting, the values that it takes in this
    script: only the chosen entries of a menu are taken along, and what stands behind a switch that is off everywhere is
    left out. taken: names that the script gives itself. checked: whether Config refuses heads that cannot be. Raises
    ValueError, naming it, for a definition that needs more than torch and the standard library.
    """

    def __init__(self, functions, values: dict[str, set], taken=(), checked: bool = False):
        self.values, self.taken, self.checked = values, set(taken), checked
        self.entries: dict[Symbol, dict[str, Symbol]] = {}  # of every menu: the name of an entry -> its definition
        self.uses: dict[Symbol, dict[Symbol, None]] = {}  # in order of first use
        self.imports: set[Import] = set()
        self.attributes: set[str] = set()  # all that is written after a dot: which methods of settings are called
        self._methods: dict[Symbol, dict[str, ast.stmt]] = {each: {} for each in PLAIN}
        self._hidden: set[Symbol] = set()  # what a local name would hide if it were called as where it is defined
        self._read_already: set[Symbol] = set()
        self.roots = [_home(each) for each in functions]
        self.about = inspect.getdoc(functions[-1])
        self._waiting = list(self.roots)
        self._collect()
        self.names = self._named()

    def _collect(self):
        while self._waiting:
            while self._waiting:
                symbol = self._waiting.pop(0)
                if symbol not in self._read_already:
                    self._read_already.add(symbol)
                    self.uses.setdefault(symbol, {})
                    self._read(symbol)
            self._read_methods()

    def _read(self, symbol):
        if symbol in PLAIN:
            self._follow(symbol, source_of(symbol.module).tree.body, only={"dataclass"})
        elif isinstance(menu := _live(symbol), Menu):
            self.entries.setdefault(symbol, {})
            for name in self._chosen(symbol, menu):
                self._enter(symbol, name)
        else:
            self._follow(symbol, source_of(symbol.module).definitions[symbol.name])

    def _chosen(self, symbol, menu):
        """The entries of a menu that the settings name; of a menu that is no setting, all."""
        field = next((field for field, each in MENUS.items() if each is menu), None)
        return menu if field is None else [name for name in menu if name in self.values[field]]

    def _enter(self, menu, name):
        entry = self.entries.setdefault(menu, {})[name] = _home(_live(menu)[name])
        self._need(menu, entry)

    def _need(self, user, symbol):
        self.uses.setdefault(user, {})[symbol] = None
        self._waiting.append(symbol)

    def _follow(self, user, nodes, only=None):
        """Note what some statements of a module use."""
        left_out = self._left_out(user.module, nodes)
        for node, local in (name for each in nodes for name in global_names(each, left_out)):
            if only is None or node.id in only:
                found = resolve(user.module, node.id)
                if isinstance(found, Import):
                    self.imports.add(_without_numpy(found, user))
                elif found:
                    self._need(user, found)
                    self._hidden |= {found} if found.name in local else set()
        if only is None:
            parts = [part for each in nodes for part in _walk(each, left_out)]
            self.attributes |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
            self._enter_subscripts(user, parts)

    def _enter_subscripts(self, user, parts):
        """An entry that is written out, as in `norm["none"]`, is needed whatever the settings say."""
        for part in parts:
            if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
                if _is_menu(user.module, part.value) and isinstance(part.slice, ast.Constant):
                    self._enter(resolve(user.module, part.value.id), part.slice.value)

    def _read_methods(self):
        """The methods of settings that the code so far calls; with `checked` the checks, too."""
        for symbol in [each for each in PLAIN if each in self.uses]:
            known = self._methods[symbol]
            for each in source_of(symbol.module).definitions[symbol.name][0].body:
                if isinstance(each, ast.FunctionDef) and each.name not in known and self._is_called(each.name):
                    known[each.name] = each
                    self._follow(symbol, [each])

    def _is_called(self, method: str) -> bool:
        special = method.startswith("__")  # of which a plain class has its own
        return not special and (method in self.attributes or (self.checked and method.startswith("_check")))

    def _left_out(self, module, nodes) -> set[ast.AST]:
        """What the script does without: menus' decorators, parts that are switched off, and detours through NumPy."""
        found = set()
        for node in (part for each in nodes for part in ast.walk(each)):
            found |= {each for each in getattr(node, "decorator_list", []) if _enters(module, each)}
            body = getattr(node, "body", [])
            if isinstance(body, list) and len(body) > 1:
                found |= {each for each in body if isinstance(each, ast.If) and self._is_idle(each)}
        return found

    def _is_idle(self, branch: ast.If) -> bool:
        test = branch.test
        if branch.orelse or not isinstance(test, ast.Attribute):
            return False
        if test.attr == "is_cpu":  # what follows such a branch computes the same without NumPy
            return any(isinstance(each, ast.Attribute) and each.attr == "numpy" for each in ast.walk(branch))
        of_settings = isinstance(test.value, ast.Name) and test.value.id in SWITCHES
        return of_settings and not any(self.values.get(test.attr, {True}))

    def _named(self) -> dict[Symbol, str]:
        """What everything is called in the script: two of one name get that of their file, too, as none_mask."""
        taken = {each.called for each in self.imports} | self.taken | set(dir(builtins))
        groups: dict[str, list[Symbol]] = {}
        for symbol in self.uses:
            groups.setdefault(symbol.name, []).append(symbol)
        names = {}
        for name, members in groups.items():
            for symbol in members:
                free = name not in taken and symbol not in self._hidden
                alone = free and (len(members) == 1 or symbol in self.entries)
                names[symbol] = name if alone else f"{name}_{symbol.module.rsplit('.', 1)[-1]}"
        called = [*names.values(), *(each.called for each in self.imports)]
        if len(set(called)) < len(called):
            raise ValueError(f"two definitions would have one name in a script: {sorted(called)}")
        return names

    def name_of(self, part) -> str:
        """What a function or class is called in the script."""
        return self.names[_home(part)]

    def order(self) -> dict[str, list[Symbol]]:
        """Module -> its symbols as they stand in it; what is used by other modules comes first."""
        modules: dict[str, None] = {}
        seen = set()

        def visit(module):
            if module in seen:
                return
            seen.add(module)
            for symbol in [each for each in self.uses if each.module == module]:
                for used in self.uses[symbol]:
                    visit(used.module)
            modules[module] = None

        for root in self.roots:
            visit(root.module)
        return {
            module: [each for each in self.uses if each.module == module and each not in PLAIN] for module in modules
        }

    def text(self) -> str:
        """All definitions but those of settings, module by module, below a line that says where each comes from."""
        return "\n\n\n".join(filter(None, (self._module_text(*each) for each in self.order().items())))

    def _module_text(self, module, symbols) -> str:
        source = source_of(module)
        menus = [each for each in symbols if each in self.entries]
        wanted = [each for each in symbols if each not in self.entries]
        statements = {node: None for each in wanted for node in source.definitions[each.name]}
        made, last = "", None
        for node in sorted(statements, key=lambda node: node.lineno):
            made += _gap(last, node) + self._statement(module, node)
            last = node
        for menu in menus:
            made += ("\n\n\n" if made else "") + self._menu_text(menu)
        about = self.about if module == self.roots[-1].module else source.about
        return made and f"{_heading(module, about)}\n\n\n{made}"

    def _menu_text(self, menu) -> str:
        entries = {name: self.entries[menu][name] for name in _live(menu) if name in self.entries[menu]}
        items = [f"{quoted(name)}: {self.names[entry]}" for name, entry in entries.items()]
        return f"{self.names[menu]} = {braces(items, before=len(self.names[menu]) + 3)}"

    def _statement(self, module, node) -> str:
        """The source of a statement with its comments, without what is left out, and with the script's names."""
        source, left_out = source_of(module), self._left_out(module, [node])
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        while first > 1 and source.lines[first - 2].startswith(b"#"):
            first -= 1
        lines = dict(enumerate(source.lines[first - 1 : node.end_lineno], first))
        self._rename(module, node, left_out, lines)
        for each in left_out:
            for at in range(each.lineno, each.end_lineno + 1):
                lines.pop(at, None)
        return b"\n".join(lines.values()).decode()

    def _rename(self, module, node, left_out, lines):
        edits, dropped = [], self._dropped(module, node)
        if dropped:
            start = node.target.end_col_offset
            edits.append((dropped.lineno, start, lines[dropped.lineno][start : dropped.end_col_offset], b""))
        for name, _ in global_names(node, {*left_out, dropped}):
            found = resolve(module, name.id)
            new = self.names[found] if isinstance(found, Symbol) else name.id
            new = "torch" if isinstance(found, Import) and found.module == "numpy" else new
            if new != name.id:
                edits.append((name.lineno, name.col_offset, name.id.encode(), new.encode()))
        for at, start, old, new in sorted(edits, key=lambda each: (each[0], -each[1])):
            line = lines[at]
            if line[start : start + len(old)] != old:
                raise ValueError(f"{module}, line {at}: {old.decode()} cannot be renamed inside a string")
            lines[at] = line[:start] + new + line[start + len(old) :]
        new = self.names.get(Symbol(module, getattr(node, "name", "")), "")
        if new and new != node.name:
            head = rf"\b(def|class) {node.name}\b".encode()
            lines[node.lineno] = re.sub(head, rb"\1 " + new.encode(), lines[node.lineno], count=1)

    def _dropped(self, module, node):
        """An annotation may name in a string what nothing else needs; then the script goes without the annotation."""
        if isinstance(node, ast.AnnAssign) and node.lineno == node.annotation.end_lineno:
            named = {part.value for part in ast.walk(node.annotation) if isinstance(part, ast.Constant)}
            if any(isinstance(each, str) and Symbol(module, each) not in self.names for each in named):
                return node.annotation
        return None

    def settings_text(self, settings, about: str) -> str:
        """A plain class in place of that of some settings, whose defaults they are."""
        kind = type(settings)
        symbol = _home(kind)
        made = ["@dataclass(frozen=True)", f"class {kind.__name__}:", f'    """{about}"""', ""]
        for field in fields(settings):
            value = literal(getattr(settings, field.name))
            made.append(f"    {field.name}: {settings.settings()[field.name].kind.__name__} = {value}")
        checks = [name for name in self._methods[symbol] if name.startswith("_check")]
        if checks:
            made += ["", "    def __post_init__(self):", *(f"        self.{name}()" for name in checks)]
        for each in self._methods[symbol].values():
            made += ["", self._statement(symbol.module, each)]
        return "\n".join(made)

    def import_text(self, *more: Import) -> str:
        """The import lines, as isort puts them: the standard library, then torch."""
        wanted = {each for each in (*self.imports, *more)}
        standard = {each for each in wanted if each.module.split(".")[0] in sys.stdlib_module_names}
        return "\n\n".join(filter(None, (_import_lines(group) for group in (standard, wanted - standard))))


def _home(part) -> Symbol:
    """Where a function or class is defined; a task's home is that of the function which draws its data."""
    part = part.draw if isinstance(part, Task) else part
    if part.__name__ not in source_of(part.__module__).definitions:
        raise ValueError(f"{part.__name__} is not defined at the top level of {part.__module__}; no script can have it")
    return Symbol(part.__module__, part.__name__)


def _live(symbol):
    return getattr(sys.modules[symbol.module], symbol.name, None)


def _is_menu(module: str, node) -> bool:
    found = resolve(module, node.id) if isinstance(node, ast.Name) else None
    return isinstance(found, Symbol) and isinstance(_live(found), Menu)


def _enters(module: str, decorator) -> bool:
    """Whether a decorator does nothing but enter a part in a menu, with what is known about it."""
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _is_menu(module, name) or isinstance(name, ast.Name) and resolve(module, name.id) == DESCRIBED


def _defined(statement):
    """The names that a statement at the top level defines, or hangs something on, as `pre.final_norm = True` does."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    targets = [each for target in targets for each in getattr(target, "elts", [target])]
    bases = [each.value if isinstance(each, ast.Attribute | ast.Subscript) else each for each in targets]
    return [each.id for each in bases if isinstance(each, ast.Name)]


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


def _without_numpy(found: Import, user: Symbol) -> Import:
    """What is imported in its place: torch has functions of the same names for what core asks of NumPy."""
    package = found.module.split(".")[0]
    if package == "numpy" and found.name is None:
        return Import("torch", None, "torch")
    if package != "torch" and package not in sys.stdlib_module_names:
        raise ValueError(f"{user.module}.{user.name} needs {package}; a script may need torch and nothing else")
    return found


def global_names(node, left_out=frozenset(), local=frozenset()):
    """Every ast.Name in a node that means a name of the module or a builtin, each with the names that are local there."""
    if node in left_out:
        return
    if isinstance(node, ast.Name):
        if node.id not in local:
            yield node, local
        return
    for child, bound in _scoped(node):
        yield from global_names(child, left_out, local | bound)


def _walk(node, left_out):
    if node not in left_out:
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _walk(child, left_out)


def _scoped(node):
    """The children of a node, each with the names that are bound for it there."""
    nothing = frozenset()
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


def _bound(nodes):
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


def _gap(last, node) -> str:
    """What stands between two statements: plain ones that were together stay together."""
    if last is None:
        return ""
    if isinstance(last, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Assign | ast.AnnAssign):
        return "\n" if node.lineno == last.end_lineno + 1 else "\n\n"
    return "\n\n\n"


def _heading(module: str, about: str) -> str:
    """A comment above what comes from one module: its path, and what it is about, in a line."""
    path = module.replace(".", "/") + ("/__init__.py" if hasattr(sys.modules[module], "__path__") else ".py")
    return "\n".join([f"# {path} ".ljust(WIDTH, "-"), *[f"# {about.splitlines()[0]}"] * bool(about)])


def _import_lines(group) -> str:
    whole = sorted({(each.module, each.called) for each in group if each.name is None})
    lines = [f"import {m}" + (f" as {c}" if c != m.split(".")[0] else "") for m, c in whole]
    members: dict[str, set] = {}
    for each in group:
        if each.name is not None:
            members.setdefault(each.module, set()).add(each)
    for module in sorted(members):
        kept = sorted(members[module], key=lambda each: (_kind(each.name), each.name))
        named = [each.name + (f" as {each.called}" if each.called != each.name else "") for each in kept]
        lines.append(f"from {module} import {', '.join(named)}")
    return "\n".join(lines)


def _kind(name: str) -> int:
    """Constants, then classes, then functions."""
    return 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2


def literal(value, before: int = 0, inside: int = 0) -> str:
    """A value as it stands in a script; before: what stands left of it in its line, inside: by how much it is indented."""
    if isinstance(value, dict):
        names = [(quoted(name), each) for name, each in value.items()]
        deeper = inside + 4
        return braces([f"{n}: {literal(each, deeper + len(n) + 2, deeper)}" for n, each in names], before=before)
    if isinstance(value, list | tuple):
        return braces([literal(each, inside + 4, inside + 4) for each in value], "[]", before)
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: str) -> str:
    """A string in double quotes, unless that would need more backslashes."""
    made = repr(text)
    return f'"{made[1:-1]}"' if made[0] == "'" and '"' not in made else made


def braces(items: list[str], pair="{}", before: int = 0) -> str:
    """Items in brackets: in one line where they fit behind what stands there, else one a line."""
    line = ", ".join(items)
    if before + len(line) + 3 <= WIDTH and "\n" not in line:
        return f"{pair[0]}{line}{pair[1]}"
    inner = indent("".join(f"{each},\n" for each in items), "    ")
    return f"{pair[0]}\n{inner}{pair[1]}"
