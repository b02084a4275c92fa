"""Random inputs that are expensive to parse, compile or render: grammars (Lark), regular expressions, JSON schemas, chat
templates and JSON bodies. Each is determined by a seed, so that a failing one can be made again:

    hostile_inputs.make("schemas", 17)"""

import json
import random
from collections.abc import Callable

TEXT_LIMIT = 128 << 10  # of a grammar or schema
COUNTS = (1, 2, 2, 3, 5, 10, 30, 100, 300, 1000, 5000, 100_000)


def make(kind: str, seed: int) -> str | dict | bytes:
    """Returns the input of this kind: text of a grammar, expression or template, a schema, or the bytes of a body."""
    rng = random.Random(f"{kind} {seed}")
    made = KINDS[kind](rng)
    while kind != "bodies" and len(made if isinstance(made, str) else json.dumps(made)) > TEXT_LIMIT and rng.random() < 0.9:
        made = KINDS[kind](rng)  # most inputs should be within the limit of a text's length, which would refuse them at once
    return made


# Regular expressions.

ATOMS = ("a", "b", "z", "[a-z]", "[^a]", ".", "(?s:.)", r"\w", r"\d", r"\s", r"\p{L}", r"\p{Greek}", r"\x00", r"\u{10FFFF}", "é", "日本",
         "[a-zA-Z0-9_]", r"[\w--\d]", "[^\\x00-\\x7f]", "(?i:straße)", "()", "[[:alpha:]]", r"\.", "ab", "(?:)", r"\b", "^", "$")
ODD_ATOMS = ("(?=a)", "(?!a)", r"\1", "(?P<n>a)", "(?<=a)", "[z-a]", "(", ")", "[", "{", "*", r"\Q", "(?#x)", r"\p{Nope}", "a{2,1}")


def regex(rng: random.Random, depth: int = 5) -> str:
    way = rng.random()
    if depth <= 0 or way < 0.2:
        return rng.choice(ODD_ATOMS if rng.random() < 0.01 else ATOMS)
    if way < 0.5:
        return f"({regex(rng, depth - 1)}){quantifier(rng)}"
    if way < 0.7:
        return "".join(regex(rng, depth - 1) for _ in range(rng.choice((2, 2, 3, 6))))
    if way < 0.9:
        return "(" + "|".join(regex(rng, depth - 2) for _ in range(rng.choice((2, 3, 8)))) + ")"
    if way < 0.95:
        return "(" + "|".join(word(rng) for _ in range(rng.choice((10, 50, 500)))) + ")"
    return rng.choice(ATOMS) * rng.choice((50, 500, 2000))


def quantifier(rng: random.Random) -> str:
    least = rng.choice(COUNTS)
    return rng.choice(("*", "+", "?", "*?", f"{{{least}}}", f"{{{least},}}", f"{{0,{least}}}", f"{{{least},{2 * least}}}"))


def word(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefgh_0") for _ in range(rng.choice((1, 3, 8, 30))))


# Grammars.

def grammar(rng: random.Random) -> str:
    way = rng.choice((intersections, ambiguous, many_rules, nested_rules, inline_json, terminals))
    text = way(rng)
    if rng.random() < 0.1:
        text += rng.choice(("\n%ignore /[ \\t]+/", "\n%import common.INT", "\nstart: start", "\n?x: ", "\nX: X \"a\"", "\n%declare A"))
    return text


def safe_regex(rng: random.Random, depth: int = 3) -> str:
    """An expression between slashes."""
    return "/" + regex(rng, depth).replace("/", "") + "/"


def intersections(rng: random.Random) -> str:
    """A chain of intersections and complements, whose automata multiply."""
    count = rng.choice((2, 3, 5, 10, 50, 200))
    lines = ["start: R0"]
    for i in range(count):
        i_regex = f"/(.*[a-z]{{{i % 17}}}.{{{i % 13}}})*/" if rng.random() < 0.5 else safe_regex(rng, 2)
        lines.append(f"R{i}: {rng.choice(('', '', '~'))}R{i + 1} {rng.choice('&&&|')} {i_regex}")
    return "\n".join([*lines, f"R{count}: /.*/"])


def ambiguous(rng: random.Random) -> str:
    return rng.choice((
        'start: s\ns: s s | "a"', 'start: s\ns: s s s | s s | "a" | ""', 'start: a*\na: b*\nb: c*\nc: "x"*',
        'start: e\ne: e "+" e | e "*" e | "(" e ")" | /[0-9]+/', 'start: x{1,1000}\nx: "a" | "a" "a" | "a" "a" "a"',
        "start: (a | b | c)*\na: /a*/\nb: /(a|b)*/\nc: /.*/",
        f"start: {' '.join(['a?'] * rng.choice((10, 100, 1000)))}\na: \"x\"",
        f"start: ((a{{{rng.choice(COUNTS)}}}){{{rng.choice(COUNTS)}}}){{{rng.choice(COUNTS)}}}\na: {safe_regex(rng, 1)}"))


def many_rules(rng: random.Random) -> str:
    count = rng.choice((10, 100, 1000, 2000))
    rules = [f"r{i}: {' | '.join(f'r{rng.randrange(count)} r{rng.randrange(count)}' for _ in range(rng.choice((1, 2, 4))))} | \"{word(rng)}\""
             for i in range(count)]
    return "\n".join(["start: r0", *rules])


def nested_rules(rng: random.Random) -> str:
    depth = rng.choice((10, 100, 1000, 10_000))
    opening, closing = rng.choice((("(", ")"), ("[", "]"), ("(", ")*"), ("(", ")+"), ("(", "){2}"), ("(", ")?")))
    return f"start: {opening * depth}\"a\"{closing * depth}"


def inline_json(rng: random.Random) -> str:
    return "start: " + rng.choice(("", '"x" ')) + "%json " + json.dumps(schema(rng))


def terminals(rng: random.Random) -> str:
    count = rng.choice((1, 5, 20, 100))
    names = [f"T{i}" for i in range(count)]
    lines = [f"{name}: {safe_regex(rng)}" for name in names]
    return "\n".join([f"start: ({' | '.join(names)})*", *lines])


# JSON schemas.

def schema(rng: random.Random, depth: int = 3) -> dict:
    if depth <= 0:
        return scalar_schema(rng)
    return rng.choice((object_schema, array_schema, combined, cyclic, many_optional, big_enum, deep, all_patterns, scalar))(rng, depth)


def scalar(rng: random.Random, _: int) -> dict:
    return scalar_schema(rng)


def scalar_schema(rng: random.Random) -> dict:
    most = rng.choice(COUNTS)
    return rng.choice((
        lambda: {"type": "integer", "multipleOf": rng.choice((1, 2, 7, 97, 9973, 999_983, 10**9 + 7, 2**62, 0, -1))},
        lambda: {"type": "number", "multipleOf": rng.choice((0.1, 0.001, 1e-9, 3.7, 1e300))},
        lambda: {"type": "integer", "minimum": rng.choice((-10**18, 0, 5)), "maximum": rng.choice((10**18, 10**30, 7))},
        lambda: {"type": "number", "minimum": 1e-300, "exclusiveMaximum": 1.7976931348623157e308},
        lambda: {"type": "string", "minLength": most, "maxLength": 2 * most},
        lambda: {"type": "string", "pattern": regex(rng, 3)},
        lambda: {"type": "string", "pattern": regex(rng, 2), "maxLength": most, "format": rng.choice(("date-time", "uuid", "email"))},
        lambda: {"const": word(rng) * most if most < 5000 else most},
        lambda: rng.choice((True, False, {}, {"type": ["string", "null", "integer"]}, {"x-guidance": {"whitespace_flexible": True}})),
    ))()


def object_schema(rng: random.Random, depth: int) -> dict:
    names = [word(rng) for _ in range(rng.choice((1, 3, 8, 20)))]
    made = {"type": "object", "properties": {name: schema(rng, depth - 2) for name in names},
            "required": [name for name in names if rng.random() < 0.3]}
    if rng.random() < 0.3:
        made["additionalProperties"] = schema(rng, depth - 2)
    if rng.random() < 0.2:
        made["patternProperties"] = {regex(rng, 1): schema(rng, depth - 2)}
    if rng.random() < 0.1:
        made |= {"minProperties": rng.choice(COUNTS), "maxProperties": rng.choice(COUNTS)}
    return made


def array_schema(rng: random.Random, depth: int) -> dict:
    least = rng.choice(COUNTS)
    made = {"type": "array", "items": schema(rng, depth - 1), "minItems": least, "maxItems": least + rng.choice(COUNTS)}
    if rng.random() < 0.3:
        made["prefixItems"] = [{"type": "string"} for _ in range(rng.choice((2, 50, 1000)))]
    return made


def combined(rng: random.Random, depth: int) -> dict:
    return {rng.choice(("allOf", "anyOf", "oneOf")): [schema(rng, depth - 1) for _ in range(rng.choice((2, 3, 5)))]}


def all_patterns(rng: random.Random, _: int) -> dict:
    return {"type": "string", "allOf": [{"pattern": f"(.*[a-z]{{{i % 17}}}.{{{i % 13}}})*" if rng.random() < 0.5 else regex(rng, 2)}
                                        for i in range(rng.choice((2, 5, 10, 50)))]}


def cyclic(rng: random.Random, depth: int) -> dict:
    """References in a cycle, through combinations and objects."""
    count = rng.choice((1, 2, 5, 20))
    links = [{"$ref": f"#/$defs/d{rng.randrange(count)}"} for _ in range(3)]
    ways = ({"allOf": links}, {"anyOf": links}, {"oneOf": links[:2]}, links[0], {"type": "array", "items": links[0]},
            {"type": "object", "properties": {"a": links[0], "b": links[1]}}, {"$ref": "#"}, {"$ref": "#/$defs/none"})
    return {"$defs": {f"d{i}": rng.choice(ways) if rng.random() < 0.8 else schema(rng, depth - 2) for i in range(count)},
            "$ref": "#/$defs/d0"}


def many_optional(rng: random.Random, _: int) -> dict:
    count = rng.choice((20, 200, 510, 999, 1001, 3000))
    return {"type": "object", "properties": {f"p{i}": scalar_schema(rng) if rng.random() < 0.01 else {"type": "integer"}
                                             for i in range(count)}, "additionalProperties": rng.random() < 0.5}


def big_enum(rng: random.Random, _: int) -> dict:
    return {"enum": [word(rng) if rng.random() < 0.9 else {word(rng): [word(rng)]} for _ in range(rng.choice((10, 200, 4000)))]}


def deep(rng: random.Random, _: int) -> dict:
    made = scalar_schema(rng)
    for _ in range(rng.choice((10, 40, 120))):  # deeper ones are among the bodies
        made = rng.choice(({"type": "array", "items": made}, {"type": "object", "properties": {"a": made}}, {"anyOf": [made]},
                           {"allOf": [made, {}]}))
    return made


# Chat templates.

SOURCES = ("messages", "range({n})", "'a' * {n}", "x", "[x, x]", "x.split('a')", "x | list", "messages * {n}", "range({n}) | list",
           "x | batch({n})", "x | slice({n})", "{{'a': x}}", "namespace(v=x)", "[[x] * {n}] * {n}")
STRINGS = ("'a' * {n}", "x ~ x", "x + x", "x ~ x ~ x ~ x", "[x, x, x] | join(x)", "range({n}) | join(x)", "x | replace('a', 'aaaaaaaa')",
           "x | replace('', x)", "x | indent({n})", "x | tojson", "x | upper ~ x", "x[::-1]", "'%s%s' | format(x, x)", "x | string * {n}",
           "messages | tojson * {n}", "x | urlencode", "x | list | tojson", "(x ~ x) | trim", "x.replace('a', x)", "x | center({n})",
           "'{{}}{{}}'.format(x, x)", "x.join([x, x])", "x | escape", "x | e ~ x", "'a'.ljust({n})", "x.upper() ~ x", "x | string | length")


def template(rng: random.Random) -> str:
    return "{% set x = 'aaaaaaaa' %}{% set ns = namespace(v='aaaaaaaa') %}" + template_part(rng, rng.choice((1, 2, 4, 8))) + "{{ x }}"


def template_part(rng: random.Random, depth: int) -> str:
    count = rng.choice((2, 10, 30, 100, 10_000, 100_000_000))
    string = rng.choice(STRINGS).replace("{n}", str(count)).replace("{{", "{").replace("}}", "}")
    source = rng.choice(SOURCES).replace("{n}", str(count)).replace("{{", "{").replace("}}", "}")
    if depth <= 0:
        return rng.choice((f"{{{{ {string} }}}}", f"{{% set x = {string} %}}", f"{{% set ns.v = ns.v ~ ns.v ~ ({string}) %}}", "{{ x }}"))
    inner = "".join(template_part(rng, depth - 1) for _ in range(rng.choice((1, 1, 2))))
    return rng.choice((
        lambda: f"{{% for i in {source} %}}{inner}{{% endfor %}}",
        lambda: f"{{% for i in range(30) %}}{{% set ns.v = ns.v ~ ns.v %}}{inner}{{% endfor %}}",
        lambda: f"{{% set x %}}{{{{ x }}}}{{{{ x }}}}{inner}{{% endset %}}",
        lambda: f"{{% with x = {string} %}}{inner}{{% endwith %}}",
        lambda: f"{{% macro m(x) %}}{inner}{{{{ m(x ~ x) }}}}{{% endmacro %}}{{{{ m('a') }}}}",
        lambda: f"{{% macro m(x) %}}{inner}{{% endmacro %}}{{{{ m({string}) }}}}{{{{ m(m({string})) }}}}",
        lambda: f"{{% filter replace('a', 'aaaa') %}}{inner}{{% endfilter %}}",
        lambda: f"{{% filter upper %}}{inner}{{{{ {string} }}}}{{% endfilter %}}",
        lambda: f"{{% for i in [[1], [2]] recursive %}}{inner}{{{{ loop([[1], [2]]) }}}}{{% endfor %}}",
        lambda: f"{{% if {source} %}}{inner}{{% endif %}}{inner}",
        lambda: "{{ " + "(" * count + "x" + ")" * count + " }}" if count <= 10_000 else inner,
        lambda: "{% if x %}" * min(count, 2000) + inner + "{% endif %}" * min(count, 2000),
    ))()


# JSON bodies.

FIELDS = ("metadata", "chat_template_kwargs", "logit_bias", "stop", "tools", "documents", "response_format", "structured_outputs",
          "nothing", "prompt", "messages", "user", "max_tokens", "stream_options", "tool_choice", "stop_token_ids")


def body(rng: random.Random) -> bytes:
    """A body of /v1/chat/completions with one or two expensive values."""
    fields = [b'"messages":[{"role":"user","content":"hi"}]', b'"max_tokens":1']
    for _ in range(rng.choice((1, 1, 2))):
        fields.append(b'"%s":%s' % (rng.choice(FIELDS).encode(), json_value(rng)))
    if rng.random() < 0.2:
        fields[0] = b'"messages":[{"role":"user","content":%s}]' % json_value(rng)
    rng.shuffle(fields)
    data = b"{" + b",".join(fields) + b"}"
    if rng.random() < 0.1:
        data = data[:rng.randrange(len(data))]
    if rng.random() < 0.05:
        data += rng.choice((b"}", b"{}", b"\0", b" " * 100_000))
    return data[:7_500_000]


def json_value(rng: random.Random) -> bytes:
    size = rng.choice((10, 1000, 30_000, 300_000, 1_000_000))
    deep = rng.choice((10, 100, 1000, 100_000))
    return rng.choice((
        lambda: b"[" + b",".join([b"{}"] * size) + b"]",
        lambda: b'{"x":[' + b",".join([b"[]"] * size) + b"]}",
        lambda: b"[" + b",".join([b'{"a":{}}'] * (size // 3)) + b"]",
        lambda: b"[" * deep + b"]" * deep,
        lambda: b'{"a":' * deep + b"1" + b"}" * deep,
        lambda: b'[{"a":' * deep + b"1" + b"}]" * deep,
        lambda: b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(size // 4)) + b"}",
        lambda: b"{" + b",".join([b'"k":1'] * size) + b"}",
        lambda: b"{" + b",".join(b'"%d":1' % i for i in range(size // 4)) + b"}",
        lambda: b'"' + rng.choice((b"a", b"1", b" ", b"\\u0000", b"\\n", "é".encode(), b"<|im_end|>", b"\\ud83d\\ude00")) * size + b'"',
        lambda: b"[" + b",".join([b'"a"'] * size) + b"]",
        lambda: rng.choice((b"9", b"-1", b"0.", b"1e", b"0.0")) + b"9" * size,
        lambda: b"1" + b"0" * min(size, 400) + b"e" + b"9" * min(size, 400),
        lambda: b'"' + rng.choice((b"\\ud800", b"\\udc00", b"\\ud800\\ud800", b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\0")) * min(size, 1000)
        + b'"',
        lambda: b"[" + b",".join(b"%d.5e-%d" % (i, i % 400) for i in range(size // 8)) + b"]",
        lambda: b"[" + b",".join([b"null", b"true", b"[]", b'""'] * (size // 8)) + b"]",
        lambda: json.dumps(schema(rng)).encode(),
        lambda: json.dumps({"type": "json_schema", "json_schema": {"name": "x", "schema": schema(rng)}}).encode(),
        lambda: json.dumps({"regex": regex(rng)}).encode(),
    ))()


KINDS: dict[str, Callable[[random.Random], str | dict | bytes]] = {
    "grammars": grammar, "regexes": regex, "schemas": schema, "templates": template, "bodies": body}
