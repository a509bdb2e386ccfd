/** Checkpoints as the explorer reads them: headers, codes, warnings, and files that are none. */

import assert from "node:assert/strict";
import { openAsBlob } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { importModule } from "./modules.mjs";
import { WEB } from "./preview.mjs";

const FIXTURES = join(WEB, "../tests/fixtures");
const { signal } = new AbortController();

/** @type {any} */
let codes;
/** @type {any} */
let checkpoint;
/** @type {any} */
let findings;
before(async () => {
  codes = await importModule("explorer/codes.ts");
  checkpoint = await importModule("explorer/checkpoint.ts");
  findings = await importModule("explorer/findings.ts");
});

/** Files of a folder whose names match. @param {string} folder @param {RegExp} names */
async function files(folder, names) {
  const found = (await readdir(join(FIXTURES, folder))).filter((name) => names.test(name));
  const blobs = found.map(
    async (name) => /** @type {const} */ ([name, await openAsBlob(join(FIXTURES, folder, name))]),
  );
  return new Map(await Promise.all(blobs));
}

/** A safetensors file. @param {Record<string, [dtype: string, shape: number[], bytes: Uint8Array]>} tensors */
function safetensors(tensors) {
  let end = 0;
  const entries = Object.entries(tensors).map(([name, [dtype, shape, bytes]]) => {
    const start = end;
    end += bytes.length;
    return [name, { dtype, shape, data_offsets: [start, end] }];
  });
  return withHeader(
    JSON.stringify(Object.fromEntries(entries)),
    ...Object.values(tensors).map(([, , bytes]) => bytes),
  );
}

/** @param {string} header @param {Uint8Array[]} data */
function withHeader(header, ...data) {
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(Buffer.byteLength(header)), true);
  return new Blob([length, header, .../** @type {any} */ (data)]);
}

/** @param {[string, Blob][]} all */
const read = (...all) => checkpoint.readCheckpoint(new Map(all));

/** Counts of every matrix that is ternary, added. @param {any} tensors */
async function countAll(tensors) {
  const all = [];
  for (const tensor of tensors.filter(findings.isCounted)) {
    const counts = await findings.countTensor(tensor, signal, () => undefined);
    if (counts !== undefined) all.push(counts);
  }
  return { matrices: all.length, ...findings.sum(all) };
}

describe("the codes of a matrix", () => {
  it("are counted as another decoder reads them, in every type of GGUF", async () => {
    const { blockOf } = await importModule("explorer/gguf-types.ts");
    const file = await readFile(join(FIXTURES, "gguf/blocks.safetensors"));
    const start = 8 + Number(file.readBigUInt64LE(0));
    const header = JSON.parse(file.toString("utf8", 8, start));
    /** @param {string} name */
    const bytesOf = (name) =>
      file.subarray(...header[name].data_offsets.map((/** @type {number} */ at) => start + at));
    const types = {
      i2_s: 36,
      i2_s_narrow: 36,
      tq1_0: 34,
      tq2_0: 35,
      q2_0: 42,
      q2_0_wide: 42,
      iq1_bn: 134,
      iq2_bn: 135,
    };
    // 142 has the bytes of 42 in groups of 128.
    for (const [name, type] of [...Object.entries(types), ["q2_0_wide", 142]]) {
      const data = bytesOf(`${name}.bytes`);
      const block = blockOf(
        type,
        header[`${name}.values`].shape,
        (/** @type {number} */ bytes) => bytes === data.length,
      );
      assert.equal(block.bytes, data.length, name);
      const blob = new Blob([Uint8Array.from(data.subarray(0, data.length - block.tail))]);
      const found = await codes.countCodes(blob, { ...block, padding: 0 }, signal, () => undefined);
      const values = bytesOf(`${name}.values`);
      let [minus, zero, plus] = [0, 0, 0];
      for (let at = 0; at < values.length; at += 4) {
        const value = values.readFloatLE(at);
        if (value === 0) zero += 1;
        else if (value < 0) minus += 1;
        else plus += 1;
      }
      assert.deepEqual([found.zero, found.minus + found.plus, found.invalid], [zero, minus + plus, 0], name);
      // Scales of the other types may be negative.
      if (type === 36 || type === 135) assert.deepEqual([found.minus, found.plus], [minus, plus], name);
    }
  });

  it("are those of the format's own files", async () => {
    for (const [folder, names, format] of /** @type {const} */ ([
      ["families/qwen3-packed", /^model\.safetensors$/, "safetensors"],
      ["families/qwen3-mlx", /^model\.safetensors$/, "safetensors"],
      ["families/trilm-shards", /^model\.safetensors$/, "safetensors"],
      ["gguf", /^tq1_0\.gguf$/, "GGUF"],
      ["gguf", /^llama-f16\.gguf$/, "GGUF"],
      ["setun", /^v1\.setun$/, ".setun container"],
    ])) {
      const found = await checkpoint.readCheckpoint(await files(folder, names));
      assert.equal(found.format, format);
      const { matrices, minus, zero, plus, invalid } = await countAll(found.tensors);
      const ternary = found.tensors.filter(findings.isCounted);
      const weights = findings.parameters(ternary);
      assert.ok(matrices > 0, folder);
      assert.equal(minus + zero + plus, weights, `${folder} ${names}`);
      assert.equal(invalid, 0);
      for (const count of [minus, zero, plus])
        assert.ok(count > weights / 5, `${folder}: ${count} of ${weights}`);
    }
  });

  it("are read in portions, and not after a stop", async () => {
    const bytes = new Blob([new Uint8Array(10 << 20).fill(0b01_00_10_01)]);
    const sizes = /** @type {number[]} */ ([]);
    const onBytes = (/** @type {number} */ size) => sizes.push(size);
    const coding = codes.everyByte(codes.twoBits);
    assert.deepEqual(await codes.countCodes(bytes, coding, signal, onBytes), {
      ...{ minus: 10 << 20, zero: 20 << 20, plus: 10 << 20, invalid: 0 },
    });
    assert.deepEqual(sizes, [4 << 20, 4 << 20, 2 << 20]);
    const stopped = AbortSignal.abort(new Error("stopped"));
    await assert.rejects(codes.countCodes(bytes, coding, stopped, onBytes), /stopped/);
  });
});

describe("a checkpoint", () => {
  it("has tensors with names, types, shapes and sizes", async () => {
    const { tensors, problems } = await read(
      ["a/config.json", new Blob(["{}"])],
      ["a/tokenizer.json", new Blob(["{}"])],
      [
        "a/model.safetensors",
        safetensors({
          "model.layers.0.mlp.up_proj.weight": ["U8", [2, 3], new Uint8Array(6)],
          "model.layers.0.mlp.up_proj.weight_scale": ["BF16", [1], new Uint8Array(2)],
        }),
      ],
    );
    assert.deepEqual(problems, []);
    const [weight, scale] = tensors;
    assert.deepEqual([weight.dtype, weight.shape, weight.bytes, weight.problems], ["U8", [2, 3], 6, []]);
    assert.deepEqual(findings.matrixShape(weight), [8, 3]);
    assert.deepEqual([scale.shape, scale.coding], [[1], undefined]);
  });

  it("of several files is one, and names the part that is missing", async () => {
    const all = await files("gguf", /^split-/);
    const { tensors, problems } = await checkpoint.readCheckpoint(all);
    assert.deepEqual(problems, []);
    all.delete("split-00002-of-00003.gguf");
    const some = await checkpoint.readCheckpoint(all);
    assert.ok(some.tensors.length < tensors.length);
    assert.deepEqual(some.problems, ["2 of 3 parts are here."]);
    const index = new Blob(['{"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}}']);
    const sharded = await read(
      ["m/model.safetensors.index.json", index],
      ["m/model-1.safetensors", safetensors({ a: ["F32", [1], new Uint8Array(4)] })],
    );
    assert.equal(sharded.problems[0], "model-2.safetensors is missing, which the index names.");
  });

  it("says what looks wrong about it", async () => {
    const { tensors, problems } = await read([
      "model.safetensors",
      safetensors({
        "a.weight": ["U8", [1, 2], Uint8Array.of(0xff, 0)],
        "b.weight": ["U8", [1, 1], Uint8Array.of(0b01_01_01_01)],
        "c.weight": ["F16", [2, 2], new Uint8Array(6)],
      }),
    ]);
    assert.match(problems.join(), /^config\.json is missing.*tokenizer\.json is missing/);
    assert.deepEqual(tensors[0].problems, ["It has no weight_scale beside it."]);
    assert.deepEqual(tensors[2].problems, ["It has 6 bytes; its type and shape need 8."]);
    const odd = async (/** @type {any} */ tensor) =>
      findings.oddities(await findings.countTensor(tensor, signal, () => undefined));
    assert.match((await odd(tensors[0])).join(), /^4 codes stand for no weight.*one sign/);
    assert.deepEqual(await odd(tensors[1]), ["Every weight is 0."]);
    const [tl1] = (await checkpoint.readCheckpoint(await files("gguf", /^tl1\.gguf$/))).tensors.filter(
      (/** @type {any} */ { dtype }) => dtype === "TL1",
    );
    assert.deepEqual(tl1.problems, ["setun does not read this type (38)."]);
  });

  it("that is none is refused with a code, the place, what was expected and what was found", async () => {
    const gguf = await readFile(join(FIXTURES, "gguf/i2_s.gguf"));
    const container = await readFile(join(FIXTURES, "setun/v1.setun"));
    /** @param {Buffer} bytes @param {number} at @param {number} value */
    const changed = (bytes, at, value) =>
      new Blob([Uint8Array.from(bytes, (byte, place) => (place === at ? value : byte))]);
    /** @type {[name: string, file: Blob, code: string, message: RegExp][]} */
    const wrongs = [
      [
        "pytorch_model.bin",
        new Blob(["x"]),
        "not-found",
        /expected a \.safetensors.*found pytorch_model\.bin; .* pickle/,
      ],
      [
        "a.safetensors",
        new Blob(["short"]),
        "truncated",
        /^a\.safetensors: its header ends at byte 8 or later.* has 5 bytes/,
      ],
      [
        "a.safetensors",
        new Blob(["version https://git-lfs.github.com/spec/v1\n"]),
        "bad-checkpoint",
        /Git LFS pointer/,
      ],
      ["a.safetensors", new Blob(["<!DOCTYPE html><html></html>"]), "bad-checkpoint", /an HTML page/],
      ["a.safetensors", withHeader("[1]"), "bad-checkpoint", /the header is not a JSON object/],
      ["a.safetensors", withHeader('{"t":'), "bad-checkpoint", /the header is not JSON: /],
      [
        "a.safetensors",
        withHeader('{"t":{"dtype":"F32","shape":[-1]}}'),
        "bad-checkpoint",
        /"t": expected a list of sizes.*\[-1\]/,
      ],
      [
        "a.safetensors",
        withHeader('{"t":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}'),
        "bad-checkpoint",
        /data_offsets, found \[4,0\]/,
      ],
      ["a.safetensors", withHeader('{"t":null}'), "bad-checkpoint", /"t": expected a text as dtype/],
      ["a.gguf", new Blob(["GGML and more"]), "bad-checkpoint", /no GGUF file/],
      ["a.gguf", changed(gguf, 4, 9), "bad-checkpoint", /GGUF version 9; versions 2 and 3/],
      [
        "a.gguf",
        new Blob([Uint8Array.from(gguf.subarray(0, 300))]),
        "truncated",
        /its header ends at byte 301 or later/,
      ],
      ["a.setun", changed(container, 6, 2), "bad-checkpoint", /version 2 of the container/],
    ];
    for (const [name, file, code, message] of wrongs)
      await assert.rejects(read([name, file]), { code, message });
  });
});
