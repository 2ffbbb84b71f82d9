"""The text of a script of torch and the standard library: core's own source, cut down to what a few functions need."""

import ast
import re
import sys
from dataclasses import fields

from core.export.bundle.literals import WIDTH, braces, literal, quoted
from core.export.bundle.needed import Needed
from core.export.bundle.source import Import, Node, Symbol, global_names, home, live, resolve, source_of
from core.settings.setting import Settings

TO_MYPY = re.compile(rb"  # type: ignore\[.*")  # means nothing to who reads a script


class Bundle(Needed):
    """The definitions that some functions need, as text. Made as Needed is."""

    def text(self) -> str:
        """All definitions but those of settings, module by module, below a line that says where each comes from."""
        return "\n\n\n".join(filter(None, (self._module_text(*each) for each in self.order().items())))

    def _module_text(self, module: str, symbols: list[Symbol]) -> str:
        source = source_of(module)
        menus = [each for each in symbols if each in self.entries]
        wanted = [each for each in symbols if each not in self.entries]
        statements = {node: None for each in wanted for node in source.definitions[each.name]}
        text, last = "", None
        for node in sorted(statements, key=lambda node: node.lineno):
            text += _gap(last, node) + self._statement(module, node)
            last = node
        for menu in menus:
            text += ("\n\n\n" if text else "") + self._menu_text(menu)
        about = self.about if module == self.roots[-1].module else source.about
        return text and f"{_heading(module, about)}\n\n\n{text}"

    def _menu_text(self, menu: Symbol) -> str:
        entries = {name: self.entries[menu][name] for name in live(menu) if name in self.entries[menu]}
        items = [f"{quoted(name)}: {self.names[entry]}" for name, entry in entries.items()]
        return f"{self.names[menu]} = {braces(items, before=len(self.names[menu]) + 3)}"

    def _statement(self, module: str, node: ast.stmt) -> str:
        """The source of a statement with its comments, without what is left out, and with the script's names."""
        source, left_out = source_of(module), self._left_out(module, [node])
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        while first > 1 and source.lines[first - 2].startswith(b"#"):
            first -= 1
        lines = dict(enumerate(source.lines[first - 1 : node.end_lineno], first))
        self._rename(module, node, left_out, lines)
        for each in left_out:
            for at in range(each.lineno, (each.end_lineno or each.lineno) + 1):
                lines.pop(at, None)
        return b"\n".join(TO_MYPY.sub(b"", line) for line in lines.values()).decode()

    def _rename(self, module: str, node: ast.stmt, left_out: set[Node], lines: dict[int, bytes]) -> None:
        edits, dropped = [], self._dropped(module, node)
        if dropped and isinstance(node, ast.AnnAssign):
            start = node.target.end_col_offset or 0
            edits.append((dropped.lineno, start, lines[dropped.lineno][start : dropped.end_col_offset], b""))
        for name, _ in global_names(node, {*left_out, dropped}):
            target = resolve(module, name.id)
            new = self.names[target] if isinstance(target, Symbol) else name.id
            new = "torch" if isinstance(target, Import) and target.module == "numpy" else new
            if new != name.id:
                edits.append((name.lineno, name.col_offset, name.id.encode(), new.encode()))
        for at, start, old, replacement in sorted(edits, key=lambda each: (each[0], -each[1])):
            line = lines[at]
            if line[start : start + len(old)] != old:
                raise ValueError(f"{module}, line {at}: {old.decode()} cannot be renamed inside a string")
            lines[at] = line[:start] + replacement + line[start + len(old) :]
        called = getattr(node, "name", "")
        new = self.names.get(Symbol(module, called), "")
        if new and new != called:
            head = rf"\b(def|class) {called}\b".encode()
            lines[node.lineno] = re.sub(head, rb"\1 " + new.encode(), lines[node.lineno], count=1)

    def _dropped(self, module: str, node: ast.stmt) -> ast.expr | None:
        """An annotation may name in a string what nothing else needs; then the script goes without the annotation."""
        if isinstance(node, ast.AnnAssign) and node.lineno == node.annotation.end_lineno:
            named = {part.value for part in ast.walk(node.annotation) if isinstance(part, ast.Constant)}
            if any(isinstance(each, str) and Symbol(module, each) not in self.names for each in named):
                return node.annotation
        return None

    def settings_text(self, settings: Settings, about: str) -> str:
        """A plain class in place of that of some settings, whose defaults they are."""
        kind = type(settings)
        symbol = home(kind)
        lines = ["@dataclass(frozen=True)", f"class {kind.__name__}:", f'    """{about}"""', ""]
        for field in fields(settings):
            value = literal(getattr(settings, field.name))
            lines.append(f"    {field.name}: {settings.settings()[field.name].kind.__name__} = {value}")
        checks = [name for name in self._methods[symbol] if name.startswith("_check")]
        if checks:
            lines += ["", "    def __post_init__(self):", *(f"        self.{name}()" for name in checks)]
        for each in self._methods[symbol].values():
            lines += ["", self._statement(symbol.module, each)]
        return "\n".join(lines)

    def import_text(self, *more: Import) -> str:
        """The import lines, as isort puts them: the standard library, then torch."""
        wanted = {each for each in (*self.imports, *more)}
        standard = {each for each in wanted if each.module.split(".")[0] in sys.stdlib_module_names}
        return "\n\n".join(filter(None, (_import_lines(group) for group in (standard, wanted - standard))))


def _gap(last: ast.stmt | None, node: ast.stmt) -> str:
    """What stands between two statements: plain ones that were together stay together."""
    if last is None:
        return ""
    if isinstance(last, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Assign | ast.AnnAssign):
        return "\n" if node.lineno - 1 == last.end_lineno else "\n\n"
    return "\n\n\n"


def _heading(module: str, about: str) -> str:
    """A comment above what comes from one module: its path, and what it is about, in a line."""
    path = module.replace(".", "/") + ("/__init__.py" if hasattr(sys.modules[module], "__path__") else ".py")
    return "\n".join([f"# {path} ".ljust(WIDTH, "-"), *[f"# {line}" for line in about.splitlines()[:1]]])


def _import_lines(group: set[Import]) -> str:
    whole = sorted({(each.module, each.called) for each in group if each.name is None})
    lines = [f"import {m}" + (f" as {c}" if c != m.split(".")[0] else "") for m, c in whole]
    members: dict[str, set[tuple[str, str]]] = {}
    for each in group:
        if each.name is not None:
            members.setdefault(each.module, set()).add((each.name, each.called))
    for module in sorted(members):
        kept = sorted(members[module], key=lambda each: (_kind(each[0]), each[0]))
        named = [name + (f" as {called}" if called != name else "") for name, called in kept]
        lines.append(f"from {module} import {', '.join(named)}")
    return "\n".join(lines)


def _kind(name: str) -> int:
    """Constants, then classes, then functions."""
    return 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
