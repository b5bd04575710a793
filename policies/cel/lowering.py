"""Rewrites a checked tree into one that the engine evaluates as the API server would.

The API server's rules that the engine lacks are spelt out in the engine's own words; no Python runs inside it:
`has()` and `.?` of what is neither object nor list is absent, not an error; `int()` takes no white space and no
boolean; `find`, `sum`, `min`, ... become the engine's regular expressions and loops; a variable becomes a binding.
Quantities, and `%s` of lists and maps, alone call us (`policies.cel.quantities`, `policies.cel.texts`).
"""

import re
from collections.abc import Callable
from itertools import count
from typing import Final

from policies.cel.functions import DYN, OPTIONAL, QUANTITY_FUNCTIONS, STRING
from policies.cel.kinds import BINDING, clauses, literal
from policies.cel.scopes import SHAPES
from policies.cel.syntax import Call, Constant, Ident, ListLiteral, Loop, Node, Select, Tree, Type, rebuild

FOREIGN_PREFIX: Final = "lockstep_"
TEXT: Final = "lockstep_text"

_ID: Final = 0
_TIMESTAMP: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
    r"(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
"""What both read alike: the API server takes no leap second and no hour 24."""

_GROUP: Final = re.compile(r"(\\.|\[(?:\\.|[^\]\\])(?:\\.|[^\]\\])*\])|\((?:\?P?<[A-Za-z_]\w*>|(?!\?))", re.DOTALL)


def lower(tree: Tree) -> Node:
    """Rewrite the whole tree."""
    return _Lowering(tree).lower(tree.root)


def bind(name: str, value: Node, body: Node) -> Node:
    """Give `body` with `name` bound to `value`, evaluated once and first; its error is one only where the name is used.

    Not the engine's own form of a binding (a loop over `#unused`): after an `exists` that ended early it finds what the
    loop left behind instead of its value. Seen in 0.1.3: `[1, 2].exists(c, c == 1) && cel.bind(u, 5, u == 5)` is false.
    """
    return Loop(
        _ID, "@unused", "", ListLiteral(_ID, ()), name, value, Constant(_ID, value=False), Ident(_ID, name), body
    )


def numbered(root: Node) -> Node:
    """Give every node an id of its own: the engine remembers by id."""
    ids = count(1)

    def renumber(node: Node) -> Node:
        return _with_id(rebuild(node, renumber), next(ids))

    return renumber(root)


def without_groups(pattern: str) -> str:
    """Turn capturing groups of a regular expression into plain ones: the engine would give the group for the match."""
    return _GROUP.sub(lambda found: found[1] or "(?:", pattern)


def _with_id(node: Node, number: int) -> Node:
    values = {name: getattr(node, name) for name in node.__struct_fields__}
    return type(node)(**{**values, "id": number})


class _Lowering:
    """One run: the tree that knows types, and names not used yet."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._names = (f"@{number}" for number in count())

    def lower(self, node: Node) -> Node:
        if isinstance(node, Ident):
            return _spelt_out(node)
        rebuilt = rebuild(node, self.lower)
        if isinstance(rebuilt, Loop) and rebuilt.variable == BINDING:
            return bind(rebuilt.accumulator, rebuilt.start, rebuilt.result)
        if isinstance(rebuilt, Select) and rebuilt.test:
            return self._guarded(
                rebuilt.operand, self._plain, lambda held: Select(_ID, held, rebuilt.field, test=True), _FALSE
            )
        if isinstance(node, Call) and isinstance(rebuilt, Call):
            return self._call(node, rebuilt)
        return rebuilt

    def _call(self, node: Call, rebuilt: Call) -> Node:
        name = node.function
        if name in ("_?._", "_[?_]"):
            return self._optional(node, rebuilt)
        if name in QUANTITY_FUNCTIONS:
            return Call(_ID, FOREIGN_PREFIX + name, _parts(rebuilt))
        if name in ("int", "string", "timestamp") and not literal(node.args[0]):
            return self._converted(node, rebuilt)
        if name == "format":
            return self._formatted(node, rebuilt)
        if special := _SPECIAL.get(name):
            return special(self, rebuilt)
        return rebuilt

    def held(self, value: Node, body: Callable[[Node], Node]) -> Node:
        """Evaluate once, use several times."""
        if isinstance(value, Ident):
            return body(value)
        name = next(self._names)
        return bind(name, value, body(Ident(_ID, name)))

    def _guarded(
        self, value: Node, within: Callable[[Node], Node], then: Callable[[Node], Node], otherwise: Node
    ) -> Node:
        return self.held(
            value,
            lambda held: _choose(_any(_is(within(held), "map"), _is(within(held), "list")), then(held), otherwise),
        )

    def _plain(self, held: Node) -> Node:
        return held

    def _optional(self, node: Call, rebuilt: Call) -> Node:
        operand, field = rebuilt.args
        if isinstance(field, Constant):
            return self._selected(node, operand, field, _NONE)
        # Where nothing is selected an error in the key is still one.
        return self.held(
            field,
            lambda key: self._selected(
                node, operand, key, _choose(Call(_ID, "_==_", (_type(key), _type(key))), _NONE, _NONE)
            ),
        )

    def _selected(self, node: Call, operand: Node, field: Node, nothing: Node) -> Node:
        def select(held: Node) -> Node:
            return Call(_ID, node.function, (held, field))

        if self._tree.type_of(node.args[0]).name != OPTIONAL:
            return self._guarded(operand, self._plain, select, nothing)

        def present(held: Node) -> Node:
            inner = _member(held, "value")
            return _choose(
                _member(held, "hasValue"),
                _choose(_any(_is(inner, "map"), _is(inner, "list")), select(held), nothing),
                nothing,
            )

        return self.held(operand, present)

    def _converted(self, node: Call, rebuilt: Call) -> Node:
        kind = self._tree.type_of(node.args[0])
        if node.function == "string" or kind not in (STRING, DYN):
            return self._as_declared(kind, node.args[0], rebuilt)

        def number(held: Node) -> Node:
            tidy = _choose(
                Call(_ID, "_==_", (_member(held, "trim"), held)), Call(_ID, "int", (held,)), _no_number(held)
            )
            if kind == STRING:
                return _choose(_is(held, "string"), tidy, _no_number(held))
            other = _choose(_is(held, "bool"), _no_number(held), Call(_ID, "int", (held,)))
            return _choose(_is(held, "string"), tidy, other)

        def time(held: Node) -> Node:
            fits = _member(held, "matches", Constant(_ID, _TIMESTAMP))
            return _choose(
                fits, Call(_ID, "timestamp", (held,)), Call(_ID, "timestamp", (Constant(_ID, "no timestamp"),))
            )

        return self.held(rebuilt.args[0], number if node.function == "int" else time)

    def split(self, rebuilt: Call) -> Node:
        """Nothing split by nothing is nothing, not one empty text."""
        if isinstance(rebuilt.args[0], Constant) and rebuilt.args[0].value:
            return rebuilt

        def split(text: Node, by: Node) -> Node:
            empty = [Call(_ID, "_==_", (item, Constant(_ID, ""))) for item in (text, by)]
            both = Call(_ID, "_&&_", (empty[0], empty[1]))
            return _choose(both, ListLiteral(_ID, ()), _member(text, "split", by, *rebuilt.args[1:]))

        return self.held(_target(rebuilt), lambda text: self.held(rebuilt.args[0], lambda by: split(text, by)))

    def _as_declared(self, kind: Type, original: Node, rebuilt: Call) -> Node:
        """End in an error when a value is not of its static type (`x[?0].orValue(1)`): no other is converted."""
        sure = isinstance(original, Call) and original.function in ("size", "string", "int")
        if kind == DYN:
            return self.held(rebuilt.args[0], lambda held: Call(_ID, rebuilt.function, (_finite(held),)))
        if kind.name not in ("int", "bool", "double", "string") or sure:
            return rebuilt
        return self.held(
            rebuilt.args[0],
            lambda held: _choose(_is(held, kind.name), Call(_ID, rebuilt.function, (held,)), _no_number(held)),
        )

    def _formatted(self, node: Call, rebuilt: Call) -> Node:
        """Let `%s` write lists and maps as Kubernetes does, and `%d` whole numbers only."""
        values, original, pattern = rebuilt.args[0], node.args[0], node.target
        if not (
            isinstance(values, ListLiteral) and isinstance(original, ListLiteral) and isinstance(pattern, Constant)
        ):
            return rebuilt
        letters = clauses(str(pattern.value))
        written = [
            self._writable(letter, value, self._tree.type_of(before).name)
            for letter, value, before in zip(letters, values.elements, original.elements, strict=True)
        ]
        return Call(_ID, "format", (ListLiteral(_ID, tuple(written)),), rebuilt.target)

    def _writable(self, letter: str, value: Node, kind: str) -> Node:
        if letter == "s" and kind in ("list", "map"):
            return Call(_ID, TEXT, (value,))
        if kind != "dyn":
            return value

        def written(held: Node) -> Node:
            if letter == "s":
                return _choose(_any(_is(held, "map"), _is(held, "list")), Call(_ID, TEXT, (held,)), _finite(held))
            return _choose(_is(held, "int"), held, _no_number(held))

        return self.held(value, written)

    def find(self, call: Call) -> Node:
        found = Call(_ID, "regex.extract", (_target(call), _plain_pattern(call)))
        return _member(found, "orValue", Constant(_ID, ""))

    def find_all(self, call: Call) -> Node:
        found = Call(_ID, "regex.extractAll", (_target(call), _plain_pattern(call)))
        limit = call.args[1] if len(call.args) > 1 else None
        if not isinstance(limit, Constant) or not isinstance(limit.value, int) or limit.value < 0:
            return found
        return self.held(
            found,
            lambda held: _choose(
                Call(_ID, "_>_", (_member(held, "size"), limit)),
                _member(held, "slice", Constant(_ID, 0), limit),
                held,
            ),
        )

    def substring(self, call: Call) -> Node:
        """Let a range end at the end of the text: the engine calls that out of range."""

        def cut(text: Node, start: Node, end: Node) -> Node:
            rest = _choose(Call(_ID, "_==_", (start, end)), Constant(_ID, ""), _member(text, "substring", start))
            whole = Call(_ID, "_==_", (end, _member(text, "size")))
            return rest if len(call.args) == 1 else _choose(whole, rest, _member(text, "substring", start, end))

        def with_end(text: Node, start: Node) -> Node:
            end = call.args[1] if len(call.args) > 1 else _member(text, "size")
            return self.held(end, lambda held: cut(text, start, held))

        return self.held(_target(call), lambda text: self.held(call.args[0], lambda start: with_end(text, start)))

    def extreme(self, call: Call) -> Node:
        better = "_<_" if call.function == "min" else "_>_"
        item, best = next(self._names), next(self._names)
        step = _choose(Call(_ID, better, (Ident(_ID, item), Ident(_ID, best))), Ident(_ID, item), Ident(_ID, best))
        return self.held(
            _target(call),
            lambda held: Loop(
                _ID, item, "", held, best, Call(_ID, "_[_]", (held, Constant(_ID, 0))), _TRUE, step, Ident(_ID, best)
            ),
        )

    def total(self, call: Call, zero: Node) -> Node:
        item, sum_ = next(self._names), next(self._names)
        step = Call(_ID, "_+_", (Ident(_ID, sum_), Ident(_ID, item)))
        return Loop(_ID, item, "", _target(call), sum_, zero, _TRUE, step, Ident(_ID, sum_))

    def sum(self, call: Call) -> Node:
        match self._tree.type_of(_target(call)).inner:
            case (kind,) if kind.name in _ZEROES:
                return self.total(call, _ZEROES[kind.name])
            case _:
                raise AssertionError("the checker lets no other list through")

    def ordered(self, call: Call) -> Node:
        index, item, fine = next(self._names), next(self._names), next(self._names)

        def loop(held: Node) -> Node:
            before = Call(_ID, "_[_]", (held, Call(_ID, "_-_", (Ident(_ID, index), Constant(_ID, 1)))))
            first = Call(_ID, "_==_", (Ident(_ID, index), Constant(_ID, 0)))
            step = _any(first, Call(_ID, "_<=_", (before, Ident(_ID, item))))
            return Loop(_ID, index, item, held, fine, _TRUE, Ident(_ID, fine), step, Ident(_ID, fine))

        return self.held(_target(call), loop)


_TRUE: Final = Constant(_ID, value=True)
_FALSE: Final = Constant(_ID, value=False)
_NONE: Final = Call(_ID, "optional.none", ())
_ZEROES: Final[dict[str, Node]] = {
    "int": Constant(_ID, 0),
    "uint": Constant(_ID, 0, uint=True),
    "double": Constant(_ID, 0.0),
    "duration": Call(_ID, "duration", (Constant(_ID, "0s"),)),
}

_SPECIAL: Final[dict[str, Callable[[_Lowering, Call], Node]]] = {
    "find": _Lowering.find,
    "findAll": _Lowering.find_all,
    "substring": _Lowering.substring,
    "split": _Lowering.split,
    "min": _Lowering.extreme,
    "max": _Lowering.extreme,
    "sum": _Lowering.sum,
    "isSorted": _Lowering.ordered,
}


def _spelt_out(node: Ident) -> Node:
    """Turn `request.operation`, one name for the checker, back into a field."""
    root, *fields = node.name.split(".")
    if root not in SHAPES:
        return node
    spelt: Node = Ident(_ID, root)
    for field in fields:
        spelt = Select(_ID, spelt, field)
    return spelt


def _parts(call: Call) -> tuple[Node, ...]:
    return call.args if call.target is None else (call.target, *call.args)


def _target(call: Call) -> Node:
    assert call.target is not None  # noqa: S101 - all these are methods
    return call.target


def _member(target: Node, name: str, *args: Node) -> Node:
    return Call(_ID, name, args, target)


def _choose(condition: Node, then: Node, otherwise: Node) -> Node:
    return Call(_ID, "_?_:_", (condition, then, otherwise))


def _any(left: Node, right: Node) -> Node:
    return Call(_ID, "_||_", (left, right))


def _is(value: Node, kind: str) -> Node:
    return Call(_ID, "_==_", (_type(value), Ident(_ID, kind)))


def _type(value: Node) -> Node:
    return Call(_ID, "type", (value,))


def _no_number(value: Node) -> Node:
    """An error, spelt as the engine's own for a text that is no number."""
    del value
    return Call(_ID, "int", (Constant(_ID, "no number"),))


def _finite(value: Node) -> Node:
    """Let no infinity through: the engines write it differently."""
    difference = Call(_ID, "_-_", (value, value))
    infinite = Call(_ID, "_&&_", (_is(value, "double"), Call(_ID, "_!=_", (difference, Constant(_ID, 0.0)))))
    return _choose(infinite, _no_number(value), value)


def _plain_pattern(call: Call) -> Node:
    pattern = call.args[0]
    assert isinstance(pattern, Constant)  # noqa: S101 - the checker lets no other through
    assert isinstance(pattern.value, str)  # noqa: S101 - by type
    return Constant(_ID, without_groups(pattern.value))
