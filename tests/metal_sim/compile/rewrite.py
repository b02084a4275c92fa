"""Rewrites preprocessed MSL into C++ that clang accepts, with shim/msl.h before it.

Line numbers do not change, so that messages point into the kernel's source. Source that is invalid MSL but valid C++ is reported
here (`errors`); lint.py and the compiler report the rest."""

import re

from tokens import Token, TokenList, tokenize

SOURCES = {
    "thread_position_in_threadgroup": "kThreadInThreadgroup",
    "threadgroup_position_in_grid": "kThreadgroupInGrid",
    "thread_position_in_grid": "kThreadInGrid",
    "threads_per_threadgroup": "kThreadsPerThreadgroup",
    "dispatch_threads_per_threadgroup": "kThreadsPerThreadgroup",
    "threadgroups_per_grid": "kThreadgroupsPerGrid",
    "threads_per_grid": "kThreadsPerGrid",
    "thread_index_in_threadgroup": "kThreadIndex",
    "simdgroup_index_in_threadgroup": "kSimdgroupIndex",
    "thread_index_in_simdgroup": "kLane",
    "simdgroups_per_threadgroup": "kSimdgroupsPerThreadgroup",
    "threads_per_simdgroup": "kSimdWidth",
    "thread_execution_width": "kSimdWidth",
}
VECTOR = re.compile(r"^(?:float|half|bfloat|char|uchar|short|ushort|int|uint|long|ulong|bool)[234]$")
VECTOR_ALIAS = re.compile(
    r"(?:using\s+(\w+)\s*=\s*(?:typename\s+)?(?:metal\s*::\s*)?vec\s*<)"
    r"|(?:typedef\s+(?:metal\s*::\s*)?vec\s*<[^;{}]*>\s*(\w+)\s*;)"
)
FORBIDDEN = {
    **dict.fromkeys(("double", "std", "new", "delete", "virtual", "throw", "try", "catch", "goto", "dynamic_cast", "typeid", "thread_local"), "is not MSL"),
    **dict.fromkeys(("long3", "long4", "ulong3", "ulong4"), "is wider than 16 bytes: such accesses are not checked"),
}


class Rewriter:
    def __init__(self, source: str, for_lint: bool):
        self.list = TokenList(tokenize(source))
        self.for_lint = for_lint
        self.errors: list[str] = []
        self.parameters: dict[str, list[str]] = {}  # of each kernel, as initialisers of msl::ParameterSource
        self.threadgroup_variables = 0
        self.aliases = {match[1] or match[2] for match in VECTOR_ALIAS.finditer(self.list.joined(0, len(self.list.tokens)))}
        self.scopes: list[str] = []  # open braces: "kernel", "function" or "other"
        self.kernel_bodies: set[int] = set()

    def error(self, at: int, message: str) -> None:
        token = self.list.tokens[at]
        self.errors.append(f"{token.file}:{token.line}: error: {message}")

    def run(self) -> str:
        at = 0
        while at < len(self.list.tokens):
            self.visit(at)
            at += 1
        return "".join(token.text for token in self.list.tokens)

    def visit(self, at: int) -> None:
        tokens, token = self.list, self.list.tokens[at]
        if token.kind == "sign":
            if token.text == "{":
                self.open_scope(at)
            elif token.text == "}" and self.scopes:
                self.scopes.pop()
            elif tokens.is_attribute(at):
                if re.search(r"\bkernel\b", tokens.joined(at, tokens.closing(at))):
                    self.kernel_definition(at)
                else:
                    tokens.take_attributes(at, tokens.closing(at) + 1)
            elif token.text == "(":
                self.vector_cast(at)
        elif token.kind == "word":
            self.visit_word(at)

    def visit_word(self, at: int) -> None:
        tokens, word = self.list, self.list.text(at)
        following = tokens.next(at)
        if word in FORBIDDEN:
            self.error(at, f"{word} {FORBIDDEN[word]}")
        elif word == "template" and tokens.text(following) != "<":
            self.instantiation(at)
        elif word == "kernel":
            self.kernel_definition(at)
        elif word == "threadgroup" and tokens.text(following) != "(":
            self.threadgroup_variable(at)
        elif word == "static" and self.in_function() and tokens.text(following) not in ("constexpr", "constant"):
            self.error(at, "static local variable")
        elif word == "constant" and not self.in_function():
            self.function_constant(at)
        elif word == "vec" and tokens.text(following) == "<":
            end = tokens.closing_angle(following)
            if end > 0 and tokens.text(tokens.next(end)) == "(":
                self.vector_constructor(at, end)
        elif VECTOR.match(word) or word in self.aliases:
            self.vector_name(at)

    # Scopes

    def open_scope(self, at: int) -> None:
        before = self.list.text(self.list.previous(at))
        if at in self.kernel_bodies:
            self.scopes.append("kernel")
        elif self.in_function() or before in (")", "const", "noexcept"):
            self.scopes.append("function")
        else:
            self.scopes.append("other")

    def in_function(self) -> bool:
        return "function" in self.scopes or "kernel" in self.scopes

    # Vectors

    def vector_name(self, at: int) -> None:
        tokens = self.list
        following = tokens.next(at)
        if tokens.text(following) == "(" and tokens.text(tokens.previous(at)) not in ("operator", ">", "*", "&"):
            self.vector_constructor(at, at)
        elif self.in_function() and tokens.is_word(following) and tokens.text(tokens.next(following)) == "(":
            # float2 v(a, b);
            tokens.tokens[following].text += f" = msl::make<{tokens.text(at)}>"

    def vector_constructor(self, first: int, last: int) -> None:
        """float4(...): msl::make<float4>(...)"""
        tokens = self.list
        while tokens.text(tokens.previous(first)) == "::":
            first = tokens.previous(tokens.previous(first))
        tokens.tokens[first].text = "msl::make<" + tokens.tokens[first].text
        tokens.tokens[first].kind = "made"
        tokens.tokens[last].text += ">"

    def vector_cast(self, at: int) -> None:
        """(float4)x: clang would reinterpret the bits or reject it; MSL converts."""
        tokens = self.list
        name = tokens.next(at)
        close = tokens.next(name)
        if not tokens.is_word(name) or tokens.text(close) != ")":
            return
        if not VECTOR.match(tokens.text(name)) and tokens.text(name) not in self.aliases:
            return
        operand = tokens.next(close)
        if tokens.tokens[operand].kind not in ("word", "number") and tokens.text(operand) not in ("(", "-"):
            return
        for index, text in ((at, "msl::Cast<"), (name, tokens.text(name)), (close, ">()->*")):
            tokens.tokens[index].text, tokens.tokens[index].kind = text, "made"

    # Kernels

    def function_constant(self, at: int) -> None:
        tokens, end = self.list, at
        while tokens.text(end) not in (";", "{", "=", ""):
            end = tokens.next(end)
        if tokens.text(end) != ";":
            return
        attribute = next((i for i in range(at, end) if tokens.is_attribute(i)), None)
        if attribute is None:
            return
        name = tokens.text(tokens.previous(attribute))
        index = tokens.take_attributes(attribute, end).get("function_constant")
        if index is not None:
            tokens.tokens[end].text = f' = msl::FunctionConstant{{{index}, "{name}"}};'

    def kernel_definition(self, at: int) -> None:
        """Records a kernel's parameters; a kernel that is not a template is registered after its body."""
        tokens, attributes, here = self.list, {}, at
        while tokens.text(here) != "(" or not tokens.is_word(tokens.previous(here)):
            if tokens.is_attribute(here):
                attributes |= tokens.take_attributes(here, tokens.closing(here) + 1)
            here = tokens.next(here)
            if tokens.text(here) in ("{", ";", ""):
                return
        name, close = tokens.text(tokens.previous(here)), tokens.closing(here)
        self.parameters[name] = self.kernel_parameters(here, close)
        body = tokens.next(close)
        if tokens.text(body) != "{":
            return
        self.kernel_bodies.add(body)
        before = at
        while tokens.text(tokens.previous(before)) in ("inline", "static"):
            before = tokens.previous(before)
        if tokens.text(tokens.previous(before)) != ">" and not self.for_lint:
            host_name = attributes.get("host_name", f'"{name}"')
            self.insert(tokens.closing(body) + 1, self.registration(host_name, name, self.parameters[name]))
        most = attributes.get("max_total_threads_per_threadgroup")
        if most:
            self.insert(body + 1, f" msl_limit_threads({most});")

    def insert(self, at: int, text: str) -> None:
        near = self.list.tokens[at - 1]
        self.list.tokens.insert(at, Token("made", text, near.file, near.line))

    def registration(self, host_name: str, function: str, parameters: list[str]) -> str:
        return f" MSL_REGISTER({host_name}, ({function}), {', '.join(parameters)})"

    def kernel_parameters(self, opened: int, closed: int) -> list[str]:
        tokens, found, buffers = self.list, [], []
        for first, end in self.split(opened + 1, closed):
            attribute = next((i for i in range(first, end) if tokens.is_attribute(i)), end)
            name = tokens.text(tokens.previous(attribute))
            attributes = tokens.take_attributes(first, end)
            if "buffer" in attributes:
                buffers.append(attributes["buffer"])
                source, index = "kBuffer", attributes["buffer"]
            elif "threadgroup" in attributes:
                source, index = "kThreadgroupMemory", attributes["threadgroup"]
            else:
                source, index = next((SOURCES[a] for a in attributes if a in SOURCES), None), "0"
            if source is None:
                names = ", ".join(attributes) or "none"
                self.error(first, f"kernel parameter '{name}' has no known attribute ({names})")
                source = "kThreadIndex"
            found.append(f'{{msl::Source::{source}, {index}, "{name}"}}')
        if len(set(buffers)) != len(buffers):
            self.error(opened, "two parameters have one buffer index")
        return found

    def split(self, first: int, end: int) -> list[tuple[int, int]]:
        """Ranges between commas outside of brackets."""
        tokens, parts, depth, at, start = self.list, [], 0, first, first
        while at < end:
            text = tokens.text(at)
            if text in ("(", "[", "{"):
                at = tokens.closing(at)
            elif text in ("<", ">"):
                depth += 1 if text == "<" else -1
            elif text == "," and depth == 0:
                parts.append((start, at))
                start = at + 1
            at += 1
        parts.append((start, end))
        return [part for part in parts if tokens.joined(*part).strip()]

    def instantiation(self, at: int) -> None:
        """template [[host_name("x")]] [[kernel]] decltype(f<half>) f<half>;"""
        tokens, end = self.list, at
        while tokens.text(end) not in (";", "{", ""):
            if tokens.text(end) in ("(", "["):
                end = tokens.closing(end)
            end = tokens.next(end)
        if tokens.text(end) != ";":
            return
        attributes = tokens.take_attributes(at, end)
        if "kernel" not in attributes and "host_name" not in attributes:
            return
        body = re.sub(r"\s+", " ", tokens.joined(tokens.next(at), end)).strip()
        match = re.match(r"decltype\s*\(.*\)\s*([\w:]+\s*<.*>)$", body) or re.match(r"(?:kernel\s+)?void\s+([\w:]+\s*<.*?>)\s*\(", body)
        if not match:
            return self.error(at, "cannot read this instantiation: " + body)
        function = match[1]
        base = re.split(r"[<\s]", function)[0].split("::")[-1]
        if base not in self.parameters:
            return self.error(at, "instantiation of an unknown kernel: " + base)
        tokens.blank(at, end + 1)
        host_name = attributes.get("host_name") or f'"{function}"'
        made = f"template decltype({function}) {function};" if self.for_lint else self.registration(host_name, function, self.parameters[base])
        tokens.tokens[end].text, tokens.tokens[end].kind = made, "made"

    # Threadgroup memory

    def threadgroup_variable(self, at: int) -> None:
        """`threadgroup float parts[8];` in a kernel's body becomes a reference to the simulator's memory."""
        tokens, first = self.list, at
        while tokens.is_word(tokens.previous(first), "const", "volatile"):
            first = tokens.previous(first)
        if tokens.text(tokens.previous(first))[-1:] not in (";", "{", "}", ":", ""):
            return  # a parameter or a cast
        name = self.declared_name(at)
        if name is None:
            return
        if "kernel" not in self.scopes:
            if self.in_function() or not self.scopes:
                self.error(at, f"threadgroup variable '{tokens.text(name)}' outside of a kernel's body")
            return
        type_name, made = tokens.joined(tokens.next(at), name).strip(), []
        while True:
            here, dimensions = tokens.next(name), ""
            while tokens.text(here) == "[":
                close = tokens.closing(here)
                dimensions += tokens.joined(here, close + 1)
                here = tokens.next(close)
            made.append(self.threadgroup_declaration(type_name, tokens.text(name), dimensions))
            if tokens.text(here) != ",":
                break
            name = tokens.next(here)
        if tokens.text(here) != ";":
            self.error(at, f"threadgroup variable '{tokens.text(name)}' has an initialiser")
        while tokens.text(here) != ";":
            here = tokens.next(here)
        tokens.blank(first, here + 1)
        tokens.tokens[here].text, tokens.tokens[here].kind = " ".join(made), "made"

    def declared_name(self, at: int) -> int | None:
        """Index of the first name a declaration declares; None for pointers, references and functions."""
        tokens, name, depth, here = self.list, None, 0, self.list.next(at)
        while True:
            text = tokens.text(here)
            if text in ("<", ">"):
                depth += 1 if text == "<" else -1
            elif depth == 0 and text in ("*", "&", "&&", "("):
                return None
            if text in (";", "", "{") or (depth == 0 and text in ("[", "=", ",")):
                return name
            if tokens.is_word(here):
                name = here
            here = tokens.next(here)

    def threadgroup_declaration(self, type_name: str, name: str, dimensions: str) -> str:
        if self.for_lint:
            return f"static __attribute__((address_space(3))) {type_name} {name}{dimensions};"
        self.threadgroup_variables += 1
        number = self.threadgroup_variables
        alias = f"msl_threadgroup_type_{number}"
        return f'typedef {type_name} {alias}{dimensions}; {alias}& {name} = MSL_THREADGROUP_VARIABLE({number}, "{name}");'
