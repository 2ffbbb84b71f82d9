"""Which definitions of core a script needs. Nothing here knows a part of the model by name.

Starting from some functions, every global name that they use is followed to its definition, so that a new entry of a
menu is in the scripts as soon as it is in the menu.
"""

import ast
import builtins
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from core.export.bundle.source import (
    Import,
    Node,
    Symbol,
    enters,
    global_names,
    home,
    is_menu,
    live,
    resolve,
    source_of,
    walk,
)
from core.model.config import Config
from core.settings.menu import Menu
from core.train.settings import Training

# Settings: in a script they are plain classes, whose defaults are the values that are given.
PLAIN = {Symbol(kind.__module__, kind.__name__): kind for kind in (Config, Training)}
MENUS = {field: each.menu for kind in PLAIN.values() for field, each in kind.settings().items() if each.menu}
SWITCHES = ("config", "training", "problem")  # what branches ask, as in `if config.attention:`


class Needed:
    """The definitions that some functions need.

    functions: they may be classes, settings among them. values: for every setting, the values that it takes in this
    script: only the chosen entries of a menu are taken along, and what stands behind a switch that is off everywhere is
    left out. taken: names that the script gives itself. checked: whether Config refuses heads that cannot be. Raises
    ValueError, naming it, for a definition that needs more than torch and the standard library.
    """

    def __init__(
        self,
        functions: Sequence[Callable[..., Any]],
        values: dict[str, set[Any]],
        taken: Iterable[str] = (),
        checked: bool = False,
    ):
        self.values, self.taken, self.checked = values, set(taken), checked
        self.entries: dict[Symbol, dict[str, Symbol]] = {}  # of every menu: the name of an entry -> its definition
        self.uses: dict[Symbol, dict[Symbol, None]] = {}  # in order of first use
        self.imports: set[Import] = set()
        self.attributes: set[str] = set()  # all that is written after a dot: which methods of settings are called
        self._methods: dict[Symbol, dict[str, ast.FunctionDef]] = {each: {} for each in PLAIN}
        self._hidden: set[Symbol] = set()  # what a local name would hide if it were called as where it is defined
        self._read_already: set[Symbol] = set()
        self.roots = [home(each) for each in functions]
        self.about = inspect.getdoc(functions[-1]) or ""
        self._waiting = list(self.roots)
        self._collect()
        self.names = self._named()

    def _collect(self) -> None:
        while self._waiting:
            while self._waiting:
                symbol = self._waiting.pop(0)
                if symbol not in self._read_already:
                    self._read_already.add(symbol)
                    self.uses.setdefault(symbol, {})
                    self._read(symbol)
            self._read_methods()

    def _read(self, symbol: Symbol) -> None:
        if symbol in PLAIN:
            self._follow(symbol, source_of(symbol.module).tree.body, only={"dataclass"})
        elif isinstance(menu := live(symbol), Menu):
            self.entries.setdefault(symbol, {})
            for name in self._chosen(symbol, menu):
                self._enter(symbol, name)
        else:
            self._follow(symbol, source_of(symbol.module).definitions[symbol.name])

    def _chosen(self, symbol: Symbol, menu: Menu[Any]) -> Iterable[str]:
        """The entries of a menu that the settings name; of a menu that is no setting, all."""
        field = next((field for field, each in MENUS.items() if each is menu), None)
        return menu if field is None else [name for name in menu if name in self.values[field]]

    def _enter(self, menu: Symbol, name: str) -> None:
        entry = self.entries.setdefault(menu, {})[name] = home(live(menu)[name])
        self._need(menu, entry)

    def _need(self, user: Symbol, symbol: Symbol) -> None:
        self.uses.setdefault(user, {})[symbol] = None
        self._waiting.append(symbol)

    def _follow(self, user: Symbol, nodes: Sequence[ast.stmt], only: set[str] | None = None) -> None:
        """Note what some statements of a module use."""
        left_out = self._left_out(user.module, nodes)
        for node, local in (name for each in nodes for name in global_names(each, left_out)):
            if only is None or node.id in only:
                target = resolve(user.module, node.id)
                if isinstance(target, Import):
                    self.imports.add(_without_numpy(target, user))
                elif target:
                    self._need(user, target)
                    self._hidden |= {target} if target.name in local else set()
        if only is None:
            parts = [part for each in nodes for part in walk(each, left_out)]
            self.attributes |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
            self._enter_subscripts(user, parts)

    def _enter_subscripts(self, user: Symbol, parts: Iterable[ast.AST]) -> None:
        """An entry that is written out, as in `norm["none"]`, is needed whatever the settings say."""
        for part in parts:
            if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
                menu = resolve(user.module, part.value.id)
                entry = part.slice.value if isinstance(part.slice, ast.Constant) else None
                if isinstance(menu, Symbol) and isinstance(entry, str) and is_menu(user.module, part.value):
                    self._enter(menu, entry)

    def _read_methods(self) -> None:
        """The methods of settings that the code so far calls; with `checked` the checks, too."""
        for symbol in [each for each in PLAIN if each in self.uses]:
            known = self._methods[symbol]
            for each in ast.iter_child_nodes(source_of(symbol.module).definitions[symbol.name][0]):
                if isinstance(each, ast.FunctionDef) and each.name not in known and self._is_called(each.name):
                    known[each.name] = each
                    self._follow(symbol, [each])

    def _is_called(self, method: str) -> bool:
        special = method.startswith("__")  # of which a plain class has its own
        return not special and (method in self.attributes or (self.checked and method.startswith("_check")))

    def _left_out(self, module: str, nodes: Sequence[ast.stmt]) -> set[Node]:
        """What the script does without: menus' decorators, parts that are switched off, and detours through NumPy."""
        left: set[Node] = set()
        for node in (part for each in nodes for part in ast.walk(each)):
            left |= {each for each in getattr(node, "decorator_list", []) if enters(module, each)}
            body = getattr(node, "body", [])
            if isinstance(body, list) and len(body) > 1:
                left |= {each for each in body if isinstance(each, ast.If) and self._is_idle(each)}
        return left

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
        names: dict[Symbol, str] = {}
        for name, members in groups.items():
            for symbol in members:
                free = name not in taken and symbol not in self._hidden
                alone = free and (len(members) == 1 or symbol in self.entries)
                names[symbol] = name if alone else f"{name}_{symbol.module.rsplit('.', 1)[-1]}"
        called = [*names.values(), *(each.called for each in self.imports)]
        if len(set(called)) < len(called):
            raise ValueError(f"two definitions would have one name in a script: {sorted(called)}")
        return names

    def name_of(self, part: Callable[..., Any]) -> str:
        """What a function or class is called in the script."""
        return self.names[home(part)]

    def order(self) -> dict[str, list[Symbol]]:
        """Module -> its symbols as they stand in it; what is used by other modules comes first."""
        modules: dict[str, None] = {}
        seen: set[str] = set()

        def visit(module: str) -> None:
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


def _without_numpy(wanted: Import, user: Symbol) -> Import:
    """What is imported in its place: torch has functions of the same names for what core asks of NumPy."""
    package = wanted.module.split(".")[0]
    if package == "numpy" and wanted.name is None:
        return Import("torch", None, "torch")
    if package != "torch" and package not in sys.stdlib_module_names:
        raise ValueError(
            f"{user.module}.{user.name} needs {package or wanted.module}; a script may need torch and nothing else"
        )
    return wanted
