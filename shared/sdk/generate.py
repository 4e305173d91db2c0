"""Writes what the packages of this directory take from the contract document: a type for each schema and a method for each operation.

    python3 generate.py DOCUMENT TYPESCRIPT PYTHON

TYPESCRIPT and PYTHON are the directories of the sources of the packages. Written are `types.ts`, `operations.ts`, `types.py`,
`_async_operations.py`, and, from the asynchronous modules of Python, the synchronous `_sync_operations.py` and `_sync.py`.

Rules:

- A list with a short form (`view=summary`) has two methods: `listModels` and `listModelSummaries`.
- An operation that starts work has two methods: one that starts it, and one with the prefix `quote` for its dry run.
- `idempotencyKey` is optional in requests: the client makes one.
- An operation is paid if it can quote a price and needs a scope that spends credit. The client never repeats it by itself.
- Headers of the protocol (`If-None-Match`, `Range`) are left to the client; event streams are written by hand.
"""

import json
import keyword
import re
import sys
from pathlib import Path

API_ROOT = "/api/canvas-agent/v1"
PAID_SCOPES = {"image:generate", "video:generate"}
# Made from the token of an address that the service returns, and pages for readers.
LEFT_OUT = {"getAssetPreview", "getAssetVideo", "getDocs", "followEvents", "followRun"}
HEADERS = {"Accept": "accept", "Prefer": "prefer", "Idempotency-Key": "idempotencyKey", "X-Service-File-Name": "fileName"}
NOTICE = "Generated from the contract document by shared/sdk/generate.py."


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def name_of(reference):
    return reference["$ref"].rsplit("/", 1)[1]


def sentence(schema):
    return " ".join(schema.get("description", "").replace("*/", "").split())


class Operation:
    """What the methods of an operation need, for both languages."""

    def __init__(self, contract, method, path, operation):
        components = contract["components"]
        self.id = operation["operationId"]
        self.method = method.upper()
        self.path = path.removeprefix(API_ROOT)
        self.summary = operation["summary"]
        parameters = [components["parameters"][name_of(p)] if "$ref" in p else p for p in operation.get("parameters", [])]
        declared = {p["name"]: p for p in parameters if p["in"] == "path"}
        self.segments = [declared[name]["name"] for name in re.findall(r"{(\w+)}", path)]
        self.query = {p["name"]: p for p in parameters if p["in"] == "query"}
        self.headers = {HEADERS[p["name"]]: p for p in parameters if p["in"] == "header" and p["name"] in HEADERS}
        bodies = operation.get("requestBody", {}).get("content", {})
        self.has_file = "application/octet-stream" in bodies
        self.body = name_of(bodies["application/json"]["schema"]) if "application/json" in bodies else None
        self.needs_body = operation.get("requestBody", {}).get("required", False)
        self.has_key = False
        answers = {}
        for status, response in operation["responses"].items():
            if status.startswith("2"):
                answers |= {kind: [*answers.get(kind, []), content["schema"]] for kind, content in response.get("content", {}).items()}
        names = list(dict.fromkeys(name_of(s) for s in answers.get("application/json", []) if "$ref" in s))
        self.is_start = "StartQuote" in names
        self.answers = [name for name in names if name != "StartQuote"]
        self.kind = "json" if "application/json" in answers else "text" if all(k.startswith("text/") for k in answers) else "bytes"
        if self.kind == "bytes" and len(answers) > 1:
            self.headers["accept"] = {"description": "Media type of the answer.", "schema": {"enum": list(answers)}}
        scopes = {scope for option in operation.get("security", []) for needed in option.values() for scope in needed}
        self.is_paid = self.is_start and bool(scopes & PAID_SCOPES)


class Contract:
    def __init__(self, document):
        self.schemas = document["components"]["schemas"]
        self.operations = []
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if operation["operationId"] not in LEFT_OUT:
                    self.operations.append(Operation(document, method, path, operation))
        bodies = {operation.body for operation in self.operations if operation.body}
        # A batch is applied or validated: two requests with two answers.
        self.alternatives = {name: [name_of(s) for s in self.schemas[name]["oneOf"]] for name in bodies if "oneOf" in self.schemas[name]}
        starts = {operation.body for operation in self.operations if operation.is_start}
        for name in bodies | {name for names in self.alternatives.values() for name in names}:
            schema = self.schemas[name]
            if name in starts:
                schema["properties"].pop("validateOnly", None)
            if "idempotencyKey" in schema.get("properties", {}):
                schema["required"] = [member for member in schema["required"] if member != "idempotencyKey"]
        for operation in self.operations:
            operation.has_key = "idempotencyKey" in self.schemas.get(operation.body, {}).get("properties", {})

    def methods(self):
        """Yields (name, operation, body, answers, extras, query): `extras` are members that the method adds to the body, and `query` are
        parameters that it sends by itself."""
        for operation in self.operations:
            if operation.body in self.alternatives and operation.answers == ["OperationsAnswer"]:
                answers = [name_of(s) for s in self.schemas["OperationsAnswer"]["oneOf"]]
                names = (operation.id, operation.id.replace("apply", "validate"))
                for name, body, answer in zip(names, self.alternatives[operation.body], answers, strict=True):
                    yield name, operation, body, [answer], {"validateOnly": name != operation.id}, {}
                continue
            forms = [name_of(s) for answer in operation.answers for s in self.schemas[answer].get("anyOf", [])]
            if forms:
                yield operation.id, operation, None, forms[:1], {}, {"view": None}
                yield operation.id[:-1] + "Summaries", operation, None, forms[1:], {}, {"view": "summary"}
                continue
            yield operation.id, operation, operation.body, operation.answers, {}, {}
            if operation.is_start:
                name = "quote" + operation.id[0].upper() + operation.id[1:]
                yield name, operation, operation.body, ["StartQuote"], {"validateOnly": True}, {}

    def lists(self):
        """Yields (answer, item) of each list with pages: the names of its type and of the type of its items."""
        for _, _, _, answers, _, _ in self.methods():
            for answer in answers:
                members = self.schemas[answer].get("properties", {})
                if "page" in members:
                    yield answer, next(name_of(member["items"]) for member in members.values() if member.get("type") == "array")


class TypeScript:
    comment_end = " */"

    def type(self, schema, prefix=""):
        if "$ref" in schema:
            return prefix + name_of(schema)
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema["enum"])
        for key in ("oneOf", "anyOf"):
            if key in schema:
                return " | ".join(dict.fromkeys(self.type(option, prefix) for option in schema[key]))
        if "allOf" in schema:
            return " & ".join(self.type(part, prefix) for part in schema["allOf"])
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return " | ".join(self.type({**schema, "type": kind}, prefix) for kind in kinds)
        if kinds == "array":
            item = self.type(schema["items"], prefix)
            return f"({item})[]" if " " in item else f"{item}[]"
        if kinds == "object" and "properties" in schema:
            return "{ " + " ".join(self.members(schema, prefix)) + " }"
        if kinds == "object":
            values = schema.get("additionalProperties")
            return f"Record<string, {self.type(values, prefix) if isinstance(values, dict) and values else 'unknown'}>"
        return {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}.get(kinds, "unknown")

    def members(self, schema, prefix=""):
        required = schema.get("required", [])
        for name, member in schema["properties"].items():
            key = name if re.fullmatch(r"\w+", name) else json.dumps(name)
            yield f"/** {sentence(member)} */ {key}{'' if name in required else '?'}: {self.type(member, prefix)};"

    def types(self, contract):
        yield f"// {NOTICE}\n"
        for name, schema in contract.schemas.items():
            yield f"/** {sentence(schema)} */"
            if name == "StreamEvent":
                events = schema["properties"]["event"]["enum"]
                yield f"export type {name} = " + " | ".join(f'{{ event: "{e}"; data: {e.capitalize()}StreamEvent }}' for e in events) + ";\n"
            elif "properties" in schema and schema.get("type") == "object":
                yield f"export interface {name} {{"
                for member in self.members(schema):
                    comment, _, rest = member.partition(self.comment_end + " ")
                    yield f"  {comment}{self.comment_end}\n  {rest}"
                yield "}\n"
            else:
                yield f"export type {name} = {self.type(schema)};\n"

    def operations(self, contract):
        yield f"// {NOTICE}\n"
        yield 'import type * as Api from "./types.js";\nimport { Transport, type Options } from "./transport.js";\n'
        yield "/** A method for each operation of the contract. */\nexport class Operations extends Transport {"
        for name, operation, body, answers, extras, fixed in contract.methods():
            parameters = [f"{segment}: string" for segment in operation.segments]
            if operation.has_file:
                parameters.append("body: Blob")
            elif body:
                parameters.append(f"body: Api.{body}" + ("" if operation.needs_body else " = {}"))
            members = {m: p for m, p in {**operation.query, **operation.headers}.items() if m not in fixed}
            needed = [m for m, p in members.items() if p.get("required")]
            optional = "".join(f" /** {sentence(p)} */ {m}{'' if m in needed else '?'}: {self.type(p['schema'], 'Api.')}"
                               + (";" if m in needed else " | undefined;") for m, p in members.items())
            parameters.append(f"options: Options{f' & {{{optional} }}' if optional else ''}" + ("" if needed else " = {}"))
            result = {"json": " | ".join(f"Api.{a}" for a in answers) or "Record<string, unknown>", "text": "string", "bytes": "Blob"}[operation.kind]
            call = [f'method: "{operation.method}"', f'path: "{operation.path}"']
            if operation.segments:
                call.append(f"segments: [{', '.join(operation.segments)}]")
            if operation.query:
                call.append("query: { " + ", ".join(f"{m}: options.{m}" if m not in fixed else f"{m}: {json.dumps(fixed[m])}" for m in operation.query if fixed.get(m, m)) + " }")
            sent = {original: own for original, own in HEADERS.items() if own in operation.headers}
            if sent:
                call.append("headers: { " + ", ".join(f'"{original}": options.{own}' for original, own in sent.items()) + " }")
            if operation.has_file:
                call.append("body")
            elif body:
                call.append("body: { ...body, " + ", ".join(f"{k}: {json.dumps(v)}" for k, v in extras.items()) + " }" if extras else "body")
            if (operation.has_key or "validateOnly" in extras) and not extras.get("validateOnly"):
                call.append("takesKey: true")
            if operation.is_paid and not extras:
                call.append("isPaid: true")
            yield f"  /** {operation.summary}{': the price and the effects, without starting it' if extras.get('validateOnly') else ''}. */"
            yield f"  {name}({', '.join(parameters)}): Promise<{result}> {{"
            generic = f"<{result}>" if operation.kind == "json" else ""
            yield f"    return this.{operation.kind}{generic}({{ {', '.join(call)} }}, options);\n  }}\n"
        yield "}"


class Python:
    def type(self, schema, prefix=""):
        if "$ref" in schema:
            return prefix + name_of(schema)
        if "const" in schema or "enum" in schema:
            return f"typing.Literal[{', '.join(repr(value) for value in schema.get('enum', [schema.get('const')]))}]"
        for key in ("oneOf", "anyOf"):
            if key in schema:
                return " | ".join(dict.fromkeys(self.type(option, prefix) for option in schema[key]))
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return " | ".join(dict.fromkeys(self.type({**schema, "type": kind}, prefix) for kind in kinds))
        if kinds == "array":
            return f"list[{self.type(schema['items'], prefix)}]"
        if kinds == "object":
            values = schema.get("additionalProperties")
            return f"dict[str, {self.type(values, prefix) if isinstance(values, dict) and values else 'object'}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}.get(kinds, "object")

    def types(self, contract):
        yield f'"""The types of the contract. {NOTICE}"""\n'
        yield "from __future__ import annotations\n\nimport typing\n\nif typing.TYPE_CHECKING:\n    from typing_extensions import NotRequired\n"
        self.written = set()
        self.schemas = contract.schemas
        for name in contract.schemas:
            yield from self.definition(name)

    def definition(self, name):
        """The bases of a class come first."""
        if name in self.written:
            return
        self.written.add(name)
        schema = self.schemas[name]
        parts = schema.get("allOf", [schema])
        bases = [name_of(part) for part in parts if "$ref" in part]
        for base in bases:
            yield from self.definition(base)
        text = sentence(schema).replace("\\", "\\\\").replace('"""', "'''")
        if name == "StreamEvent":
            events = schema["properties"]["event"]["enum"]
            for event in events:
                yield f"class {event.capitalize()}Streamed(typing.TypedDict):\n    event: typing.Literal[{event!r}]\n    data: {event.capitalize()}StreamEvent\n"
            yield f'{name}: typing.TypeAlias = "' + " | ".join(f"{event.capitalize()}Streamed" for event in events) + f'"\n"""{text}"""\n'
        elif any("properties" in part and part.get("type") == "object" for part in parts) or "allOf" in schema:
            members = [member for part in parts if "properties" in part for member in self.members(part)]
            if all(member.isidentifier() and not keyword.iskeyword(member) for member, _, _ in members):
                yield f'class {name}({", ".join(bases) or "typing.TypedDict"}):\n    """{text}"""\n'
                for member, kind, description in members:
                    yield f'    {member}: {kind}\n    """{description}"""'
                yield "" if members else "    pass\n"
            else:
                yield f"{name} = typing.TypedDict(\n    {name!r},\n    {{"
                for member, kind, description in members:
                    yield f"        # {description}\n        {member!r}: {kind!r},"
                yield f'    }},\n)\n"""{text}"""\n'
        else:
            yield f'{name}: typing.TypeAlias = "{self.type(schema)}"\n"""{text}"""\n'

    def members(self, schema):
        required = schema.get("required", [])
        for name, member in schema["properties"].items():
            kind = self.type(member)
            description = sentence(member).replace("\\", "\\\\").replace('"""', "'''").replace("`\"", "` \"")
            yield name, kind if name in required else f"NotRequired[{kind}]", description + (" " if description.endswith('"') else "")

    def operations(self, contract):
        yield f'"""A method for each operation of the contract. {NOTICE}"""\n'
        yield "from __future__ import annotations\n\nimport typing\nfrom collections.abc import AsyncIterator, Awaitable, Callable\n"
        yield "from . import types as api\nfrom ._async_transport import AsyncTransport, P\n\n"
        yield "class AsyncOperations(AsyncTransport):"
        for name, operation, body, answers, extras, fixed in contract.methods():
            parameters = ["self", *(f"{snake(segment)}: str" for segment in operation.segments)]
            if operation.has_file:
                parameters.append("body: bytes")
            elif body:
                parameters.append(f"body: api.{body}" + ("" if operation.needs_body else " = {}"))
            members = {m: p for m, p in {**operation.query, **operation.headers}.items() if m not in fixed}
            if operation.has_file:
                members["mediaType"] = {"required": True, "schema": {"type": "string"}}
            if members:
                parameters.append("*")
            for member, parameter in members.items():
                kind = self.type(parameter["schema"], "api.")
                parameters.append(f"{snake(member)}: {kind}" if parameter.get("required") else f"{snake(member)}: {kind} | None = None")
            result = {"json": " | ".join(f"api.{a}" for a in answers) or "dict[str, object]", "text": "str", "bytes": "bytes"}[operation.kind]
            call = [repr(operation.method), repr(operation.path)]
            if operation.segments:
                call.append(f"segments=[{', '.join(snake(s) for s in operation.segments)}]")
            if operation.query:
                call.append("query={" + ", ".join(f"{m!r}: {snake(m) if m not in fixed else repr(fixed[m])}" for m in operation.query if fixed.get(m, m)) + "}")
            sent = {original: own for original, own in HEADERS.items() if own in operation.headers}
            if operation.has_file:
                call.append("content=body")
                sent["Content-Type"] = "mediaType"
            elif body:
                call.append("body={**body, " + ", ".join(f"{k!r}: {v!r}" for k, v in extras.items()) + "}" if extras else "body=body")
            if sent:
                call.append("headers={" + ", ".join(f"{original!r}: {snake(own)}" for original, own in sent.items()) + "}")
            if (operation.has_key or "validateOnly" in extras) and not extras.get("validateOnly"):
                call.append("takes_key=True")
            if operation.is_paid and not extras:
                call.append("is_paid=True")
            sent = f"await self._{operation.kind}({', '.join(call)})"
            yield f"    async def {snake(name)}({', '.join(parameters)}) -> {result}:"
            yield f'        """{operation.summary}{": the price and the effects, without starting it" if extras.get("validateOnly") else ""}."""'
            yield f'        return typing.cast("{result}", {sent})\n' if operation.kind == "json" else f"        return {sent}\n"
        for answer, item in contract.lists():
            yield "    @typing.overload"
            yield f"    def paginate(self, operation: Callable[P, Awaitable[api.{answer}]], /, *segments: P.args, **parameters: P.kwargs) -> " \
                  f"AsyncIterator[api.{item}]: ..."
        yield "    def paginate(self, operation: Callable[P, Awaitable[object]], /, *segments: P.args, **parameters: P.kwargs) -> AsyncIterator[object]:"
        yield '        """Yields the items of all pages of a list, each once: `paginate(client.list_assets, canvas_id=…)`."""'
        yield "        return self._items(operation, *segments, **parameters)"


SYNCHRONOUS = [
    (r"\bAsync(Client|Transport|Operations|CanvasClient)\b", r"\1"),
    (r"\b_async_(\w+)", r"_sync_\1"),
    (r"Awaitable\[([^\[\]]+)\]", r"\1"),
    (r"\b__a(enter|exit|iter)__\b", r"__\1__"),
    (r"\basync (def|for|with) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\bAsyncGenerator\[(.+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsync(Iterator|Generator)\b", r"\1"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bimport asyncio\b", "import time"),
    (r"\b(aclosing|aclose|aread|aiter_text)\b", lambda found: found[0][1:]),
    (r", Awaitable, Callable\b", ", Callable"),
]


def synchronous(source):
    for pattern, replacement in SYNCHRONOUS:
        source = re.sub(pattern, replacement, source)
    return source


def main(document, typescript, python):
    contract = Contract(json.loads(Path(document).read_text("utf-8")))
    typescript, python = Path(typescript), Path(python)
    files = {typescript / "types.ts": TypeScript().types, typescript / "operations.ts": TypeScript().operations,
             python / "types.py": Python().types, python / "_async_operations.py": Python().operations}
    for file, lines in files.items():
        file.write_text("\n".join(lines(contract)) + "\n", "utf-8")
    for file in python.glob("_async*.py"):
        file.with_name(file.name.replace("_async", "_sync")).write_text(synchronous(file.read_text("utf-8")), "utf-8")


main(*sys.argv[1:])
