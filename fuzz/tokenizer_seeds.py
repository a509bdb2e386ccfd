#!/usr/bin/env python3
"""Makes the seeds of `corpus/tokenizer`: a small tokenizer of each kind, and a text.

    python3 fuzz/tokenizer_seeds.py
"""
import base64
import json
import os
import struct

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "tokenizer")
WORDS = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def added(number, content, **more):
    fields = {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True}
    return fields | more


def vocabulary(tokens):
    return {token: number for number, token in enumerate(tokens)}


def sequence(kind, *stages):
    return {"type": "Sequence", kind: list(stages)}


def prompt(token, number):
    special = {"SpecialToken": {"id": token, "type_id": 0}}
    text = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    return {"type": "TemplateProcessing", "single": [special, text[0]], "pair": [special, *text],
            "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}}}


def charsmap():
    """A trie of one letter: `A` becomes `B`."""
    units = [0] * 512
    units[0] = 256 << 10
    place = 256 ^ 0x41
    units[place] = 0x41 | 1 << 8 | (place ^ 2) << 10
    units[2] = 1 << 31
    words = [4 * len(units), *units]
    return base64.b64encode(struct.pack(f"<{len(words)}I", *words) + b"B\0").decode()


def byte_fallback():
    tokens = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "a", "b", "ab"]
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    back = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    return {"added_tokens": [added(0, "<unk>"), added(1, "<s>")],
            "normalizer": sequence("normalizers", {"type": "Prepend", "prepend": "\u2581"}, replace),
            "post_processor": prompt("<s>", 1),
            "decoder": sequence("decoders", back, {"type": "ByteFallback"}, {"type": "Fuse"}, strip),
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
                      "vocab": vocabulary(tokens), "merges": [["a", "b"]]}}


def byte_level():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain} | {byte: chr(256 + at) for at, byte in enumerate(others)}
    tokens = [letters[byte] for byte in range(256)] + ["ab", "\u0120a"]
    stage = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Isolated", "invert": False}
    return {"added_tokens": [added(258, "<end>", lstrip=True)], "normalizer": {"type": "NFC"},
            "pre_tokenizer": sequence("pretokenizers", split, stage),
            "post_processor": sequence("processors", stage, prompt("<end>", 258)), "decoder": stage,
            "model": {"type": "BPE", "dropout": 0.1, "vocab": vocabulary(tokens), "ignore_merges": True,
                      "merges": ["a b", "\u0120 a"]}}


def unigram():
    pieces = [[piece, -float(rank)] for rank, piece in enumerate(["<unk>", "\u2581", "a", "b", "B", "\u2581ab"], 1)]
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    many = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    return {"added_tokens": [added(5, "\u2581ab", special=False, normalized=True)],
            "normalizer": sequence("normalizers", {"type": "Precompiled", "precompiled_charsmap": charsmap()}, many),
            "pre_tokenizer": sequence("pretokenizers", {"type": "WhitespaceSplit"}, space), "decoder": space,
            "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False}}


def word_piece():
    tokens = ["[UNK]", "[CLS]", "[SEP]", "a", "##b", "##a", "."]
    return {"added_tokens": [added(1, "[CLS]"), added(2, "[SEP]")],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                           "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": vocabulary(tokens)}}


def word_level():
    plain = [{"type": name} for name in ("NFKD", "StripAccents", "Lowercase", "Nmt")]
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    stages = [{"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Isolated"},
              {"type": "Digits", "individual_digits": True}, {"type": "UnicodeScripts"},
              {"type": "FixedLength", "length": 3}]
    return {"added_tokens": [], "normalizer": sequence("normalizers", *plain, strip),
            "pre_tokenizer": sequence("pretokenizers", *stages),
            "post_processor": {"type": "RobertaProcessing", "sep": ["a", 1], "cls": ["b", 2],
                               "trim_offsets": True, "add_prefix_space": True},
            "decoder": {"type": "CTC", "pad_token": "<unk>", "word_delimiter_token": "|", "cleanup": True},
            "model": {"type": "WordLevel", "unk_token": "<unk>",
                      "vocab": vocabulary(["<unk>", "a", "b", "ab", ".", "|"])}}


def main():
    os.makedirs(CORPUS, exist_ok=True)
    for kind in (byte_fallback, byte_level, unigram, word_piece, word_level):
        unused = {"version": "1.0", "truncation": None, "padding": None}
        for stage in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
            unused[stage] = None
        file = json.dumps(unused | kind(), separators=(",", ":"), ensure_ascii=False).encode()
        with open(os.path.join(CORPUS, kind.__name__), "wb") as seed:
            seed.write(file + b"\0" + "ab A  b1. \u4e16<s>".encode())


main()
