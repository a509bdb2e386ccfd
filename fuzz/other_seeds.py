#!/usr/bin/env python3
"""Makes the seeds of `corpus/manifest`, `corpus/hub_answers`, `corpus/chat_template`,
`corpus/equal_bits`, `corpus/tool_calls` and those of grammars. No package is needed.

    python3 fuzz/other_seeds.py
"""
import hashlib
import json
import os
import random

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def digest(data):
    return hashlib.sha256(data).hexdigest()


def manifest(size, chunk_bytes, **more):
    chunks = [digest(bytes(min(chunk_bytes, size - at))) for at in range(0, size, chunk_bytes)]
    file = {"name": "model.gguf", "bytes": size, "etag": '"e"', "sha256": digest(bytes(size)),
            "chunk_bytes": chunk_bytes, "chunks": chunks}
    fields = {"format": 1, "model": "h/o/n", "revision": "main", "source": "http://h/o/n", "licence": "mit",
              "pulled": "2026-11-21T17:00:00Z", "complete": True, "files": [file]}
    return json.dumps(fields | more).encode()


def manifests():
    references = json.dumps({"format": 1, "revisions": {"main": "main", "v1": COMMIT}}).encode()
    aliases = json.dumps({"format": 1, "aliases": {"alias": "o/n", "loop": "loop"}}).encode()
    lone = {"name": "model.gguf", "bytes": 10000, "chunk_bytes": 0, "chunks": []}
    return {
        "whole": b"\0".join([manifest(10000, 4096), references, aliases]),
        "hash": manifest(10000, 4096, files=[lone | {"sha256": digest(bytes(10000))}]),
        "unfinished": b"\0".join([manifest(10000, 4096, complete=False), references]),
        "other-size": manifest(9999, 4096),
        "folders": manifest(10000, 4096, files=[lone | {"name": "a/b.safetensors"}]),
        "outside": manifest(10000, 4096, files=[lone | {"name": "../a.gguf"}]),
        "later": b'{"format":2}',
        "aliases": b"\0\0" + aliases,
    }


def answer(status, body, *headers):
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def head(size, *headers):
    """An answer to a question for what comes before the bytes."""
    return "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {size}", *headers]).encode() + b"\r\n\r\n"


def part(body, first, total):
    span = f"Content-Range: bytes {first}-{first + len(body) - 1}/{total}"
    return answer("206 Partial Content", body, span, 'ETag: "e"')


def listing(files):
    siblings = [{"rfilename": name, "size": len(data)} | ({"lfs": {"sha256": digest(data), "size": len(data)}}
                if name.endswith("gguf") else {}) for name, data in files.items()]
    fields = {"sha": COMMIT, "siblings": siblings, "cardData": {"license": "mit"}}
    return answer("200 OK", json.dumps(fields).encode(), "Content-Type: application/json")


def answers():
    data = bytes(1 + at % 255 for at in range(6000))
    config = b'{"model_type":"bitnet"}'
    parts, etag = "Accept-Ranges: bytes", 'ETag: "e"'
    hub = listing({"model.gguf": data})
    whole = [head(6000, parts, etag), part(data[:4096], 0, 6000), part(data[4096:], 4096, 6000)]
    folder = {"config.json": config, "model.safetensors": data}
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"
    moved = answer("302 Found", b"", "Location: /other/model.gguf", 'X-Linked-Etag: "e"')
    journal = json.dumps({"format": 1, "bytes": 10000, "chunk_bytes": 4096, "identity": '"e"', "sha256": None})
    journal += "\n" + json.dumps({"chunk": [0, digest(bytes(4096))]}) + "\n"
    own = {"format": 1, "model": "h/o/n", "revision": "r", "source": "s", "pulled": "p", "complete": True,
           "files": [{"name": "model.gguf", "bytes": 6000, "sha256": digest(data), "chunk_bytes": 4096,
                      "chunks": [digest(data[:4096]), digest(data[4096:])]}]}
    none = answer("404 Not Found", b"")
    return {
        "hub": [b"o/n", b"", hub, *whole],
        "hub-without-ranges": [b"o/n", b"", hub, head(6000, etag), answer("200 OK", data, etag)],
        "hub-redirects": [b"o/n", b"", hub, moved, *whole],
        "hub-files": [b"o/n", b"", listing(folder), head(23, parts, etag), part(config, 0, 23), *whole],
        "hub-many": [b"o/n:b.gguf", b"", listing({"a.gguf": data, "b.gguf": data}), *whole],
        "journal": [b"o/n", journal.encode(), listing({"model.gguf": bytes(b"a" * 10000)}),
                    head(10000, parts, etag), part(b"a" * 4096, 0, 10000)],
        "revision": [b"o/n@v1", b"", hub, *whole],
        "file": [b"http://h/model.gguf", b"", *whole],
        "file-by-part": [b"https://h/model.gguf?x=1", b"", answer("405 Method Not Allowed", b""),
                         part(data[:1], 0, 6000), *whole],
        "folder": [b"http://h/f/", b"", answer("200 OK", json.dumps(own).encode()), *whole],
        "files": [b"http://h/f", b"", none, head(23, parts, etag), head(6000, parts, etag),
                  *[none] * 6, head(23, parts, etag), part(config, 0, 23), *whole],
        "wait": [b"o/n", b"", answer("429 Too Many Requests", b"", "Retry-After: 7"), hub],
        "error": [b"o/n", b"", answer("500 Internal Server Error", b""), chunked],
        "refused": [b"o/n", b"", answer("401 Unauthorized", b"")],
        "short": [b"o/n", b"", hub[:-9]],
        "loop": [b"o/n", b"", *[answer("301 Moved", b"", "Location: http://h/")] * 12],
    }


TEMPLATES = {
    "messages": "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m['content']|trim }}{{ eos_token }}"
                "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    "raise": "{% if messages[0]['role'] != 'user' %}{{ raise_exception('roles ' ~ messages|length) }}{% endif %}",
    "macro": "{% macro f(x, y=2) %}{{ x * y }}{% endmacro %}{% set ns = namespace(n=0) %}"
             "{% for i in range(9) %}{% set ns.n = ns.n + i %}{{ f(i) }}{% endfor %}{{ ns.n }}",
    "filters": "{{ [3,1,2]|sort|join(', ')|upper|replace('1','x')|indent(2) }}{{ 'a,b'.split(',')|tojson }}"
               "{% filter title %}abc{% endfilter %}{{ '%05d'|format(7) }}{{ [1,2,3]|batch(2)|list }}",
    "slices": "{{ messages[::-1][0].content[1:3] }}{{ 'abc'[-2:] }}{{ [1,2][5:] }}{% set a, b = 1, 2 %}",
    "config": json.dumps({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": [
        {"name": "default", "template": "{{ bos_token }}{{ messages }}"},
        {"name": "tool_use", "template": "<tool_call>{{ tools|tojson(indent=2) }}"}]}),
    "block": "{% set x %}{% for i in range(3) %}{{ loop.index }}{{ loop.last }}{% else %}-{% endfor %}{% endset %}"
             "{{ x if x is defined and x is string else none }}{%- generation -%}{{ x }}{%- endgeneration -%}",
}


SCHEMAS = {
    "object": {"type": "object", "properties": {"a": {"type": "string", "minLength": 1, "maxLength": 3},
               "b": {"type": "integer", "minimum": -2, "maximum": 120}}, "required": ["b"],
               "additionalProperties": False},
    "references": {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"},
                   "maxItems": 2}}},
    "choices": {"anyOf": [{"const": 1}, {"enum": ["a", None]}, {"type": "boolean"}]},
    "patterns": {"type": "object", "patternProperties": {"^a": {"type": "number", "multipleOf": 0.5}},
                 "minProperties": 1, "maxProperties": 2},
    "strings": {"allOf": [{"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}, {"maxLength": 6}]},
    "formats": {"type": "array", "prefixItems": [{"format": "date", "type": "string"}], "items": False},
    "any": True,
}

GRAMMARS = {
    "lark/rules": 'start: a "," b?\na: "x" | "y" a\nb: /[0-9]+/\n',
    "lark/terminals": 'start: A B{1,3}\nA: "a" | /b+/i\nB: A "c"\n%ignore / +/\n',
    "lark/json": 'start: "<" j ">"\nj: %json {"type": "boolean"}\n',
    "lark/tokens": 'start: "a" <end>\n',
    "lark/options": 'start: t "."\nt[max_tokens=3, stop="z"]: /(?s:.*)/\n',
    "gbnf/rules": 'root ::= a "," b?\na ::= "x" | "y" a\nb ::= [0-9]+\n',
    "gbnf/classes": 'root ::= "\\"" [^"\\\\]{1,3} "\\"" ws\nws ::= [ \\t]* # space\n',
    "gbnf/list": 'root ::= "[" (item ("," item)*)? "]"\nitem ::= "\\x41" | root | .\n',
    "gbnf/left": 'root ::= root "a" | "b"\n',
    "gbnf/counts": 'root ::= ("a" | "bc"){2,} "d"{3}\n',
    "regex/date": "[0-9]{4}-(0[1-9]|1[0-2])",
    "regex/words": "(?i)(yes|no|maybe)[.!]?",
    "regex/classes": "[\\p{L}&&[^a-c]]+\\d*\\s?.",
    "regex/counts": "(a{2,5}b?){1,3}",
    "regex/lazy": "x.*?y|(?s:.)z",
}


XML = """So.
<tool_call>
<function=f>
<parameter=text>
a <b> "c" {
</parameter>
<parameter=number>
3
</parameter>
<parameter=any>
{"a": [null, "b"]}
</parameter>
</function>
</tool_call>
<tool_call>
<function=g>
</function>
</tool_call>"""

ANSWERS = {
    "xml": XML,
    "xml-cut": XML[:90],
    "xml-unlisted": XML.replace("=text", "=other").replace("\n3\n", "\nTrue\n"),
    "xml-broken": XML.replace("</parameter>\n</function>", "</function>", 1),
    "hermes": '<tool_call>\n{"name": "f", "arguments": {"text": "a\\"}", "number": 3}}\n</tool_call>',
    "llama": '{"name": "f", "parameters": {"text": "a"}}',
    "llama-letter": '{"name": "f", "parameters": é "a"}',
}

PARAMETERS = {
    "properties": {
        "text": {"type": "string", "maxLength": 9},
        "number": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/one"}]},
        "any": {"type": ["string", "object", "null"]},
    },
    "additionalProperties": {"enum": [True, "other", 3]},
    "required": ["text"],
    "$defs": {"one": {"allOf": [{"type": "number"}, {"const": 0.5}]}},
}


def tool_calls():
    functions = [{"name": "f", "parameters": PARAMETERS}, {"name": "g"}]
    tools = json.dumps([{"type": "function", "function": function} for function in functions])
    return {name: f"{tools}\0{answer}" for name, answer in ANSWERS.items()}


def main():
    seeds = {f"manifest/{name}": data for name, data in manifests().items()}
    seeds |= {f"hub_answers/{name}": b"\0".join(parts) for name, parts in answers().items()}
    seeds |= {f"chat_template/{name}": text.encode() for name, text in TEMPLATES.items()}
    seeds |= {f"tool_calls/{name}": text.encode() for name, text in tool_calls().items()}
    choices = b"\0" + bytes(range(1, 96))
    seeds |= {f"json_schema/{name}": json.dumps(schema).encode() + choices for name, schema in SCHEMAS.items()}
    seeds |= {name: text.encode() + choices for name, text in GRAMMARS.items()}
    values = random.Random(21)
    seeds |= {f"equal_bits/{number:02}": values.randbytes(200) for number in range(12)}
    for name, data in seeds.items():
        path = os.path.join(CORPUS, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


main()
