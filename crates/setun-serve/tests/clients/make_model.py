"""Writes a model of random weights with a chat template into a folder.

Usage: make_model.py FIXTURE FOLDER

It has the shapes, scales and tokenizer of the fixture, and two of its layers; packed weights and embeddings are drawn from a fixed seed.
"""

import json
import random
import re
import shutil
import struct
import sys
from array import array
from pathlib import Path

# It thinks where it is told to; the last part is what says that it can.
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if enable_thinking %}<think>{% endif %}{# closed by </think> #}"
)

# Prompts with tools are long, and builds of tests slow.
LAYERS = 2

# Four codes a byte, each of them 0, 1 or 2.
PACKED = bytes(a | b << 2 | c << 4 | d << 6 for a in range(3) for b in range(3) for c in range(3) for d in range(3))


def random_weights(path: Path) -> bytes:
    """The bytes of a safetensors file with other weights, of the first layers alone."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    drawn, data = random.Random(0), bytearray()
    layer = re.compile(r"model\.layers\.(\d+)\.")
    kept = {}
    for name, tensor in header.items():
        number = layer.match(name)
        if number and int(number[1]) >= LAYERS:
            continue
        start, end = (8 + length + offset for offset in tensor["data_offsets"])
        values = content[start:end]
        if tensor["dtype"] == "U8":
            values = bytes(drawn.choices(PACKED, k=end - start))
        elif name == "model.embed_tokens.weight":
            values = array("f", (drawn.gauss(0, 0.005) for _ in range((end - start) // 4))).tobytes()
        kept[name] = {**tensor, "data_offsets": [len(data), len(data) + len(values)]}
        data.extend(values)
    written = json.dumps(kept).encode()
    written += b" " * (-len(written) % 8)
    return struct.pack("<Q", len(written)) + written + data


def main() -> None:
    fixture, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("generation_config.json", "tokenizer.json"):
        shutil.copyfile(fixture / name, folder / name)
    config = json.loads((fixture / "config.json").read_text(encoding="utf-8"))
    # Tools are described in many tokens of this small vocabulary.
    config["num_hidden_layers"] = LAYERS
    config["max_position_embeddings"] = 8192
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tokenizer = {"bos_token": "<s>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(random_weights(fixture / "model.safetensors"))


if __name__ == "__main__":
    main()
