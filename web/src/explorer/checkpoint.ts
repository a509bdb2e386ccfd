/** The tensors of chosen files: one checkpoint, in one file or several. */

import { SetunError } from "setun";
import { readContainer } from "./container.js";
import { readGguf } from "./gguf.js";
import { readSafetensors } from "./safetensors.js";
import type { Contents, Tensor } from "./tensor.js";

/** Files by their path. */
export type Files = ReadonlyMap<string, Blob>;

/** What the headers of a checkpoint say. */
export interface Checkpoint {
  readonly name: string;
  readonly format: string;
  readonly tensors: readonly Tensor[];
  /** What is wrong with the files. */
  readonly problems: readonly string[];
}

/** A format, and how its file names end. The first one that is there is read. */
interface Format {
  readonly name: string;
  readonly end: string;
  read(name: string, file: Blob, files: Files): Promise<Contents>;
}

const FORMATS: readonly Format[] = [
  { name: ".setun container", end: ".setun", read: readContainer },
  { name: "safetensors", end: ".safetensors", read: readSafetensors },
  { name: "GGUF", end: ".gguf", read: readGguf },
];

/** Files that a model needs beside its weights. */
const NEEDED = ["config.json", "tokenizer.json"];

/** Bytes that say that a file is something else. */
const IMPOSTORS: readonly [start: string, what: string][] = [
  ["version https://git-lfs", "a Git LFS pointer, not the file itself: download the file"],
  ["<!doctype html", "an HTML page, not the file itself: download the file"],
  ["<html", "an HTML page, not the file itself: download the file"],
];

/**
 * Reads the headers.
 *
 * @throws {SetunError} `not-found` without a checkpoint, `bad-checkpoint` for a header that cannot be read.
 */
export async function readCheckpoint(files: Files): Promise<Checkpoint> {
  const names = [...files.keys()].toSorted();
  const format = FORMATS.find(({ end }) => names.some((name) => name.toLowerCase().endsWith(end)));
  if (format === undefined) throw nothingFound(names);
  const found = names.filter((name) => name.toLowerCase().endsWith(format.end));
  const chosen = partsOf(found, format);
  const contents: Contents[] = [];
  for (const name of chosen) contents.push(await readOne(format, name, files));
  const tensors = contents.flatMap((one) => one.tensors);
  const inside = contents.flatMap((one) => one.files);
  const problems = [
    ...leftOut(found, chosen),
    ...(await missingShards(files)),
    ...missingParts(chosen),
    ...missingFiles(names, inside),
    ...twice(tensors),
  ];
  const [first = ""] = chosen;
  return {
    name: chosen.length === 1 ? first : `${chosen.length} files`,
    format: format.name,
    tensors,
    problems,
  };
}

async function readOne({ read }: Format, name: string, files: Files): Promise<Contents> {
  const file = files.get(name) as Blob;
  const start = (await file.slice(0, 24).text()).toLowerCase();
  const impostor = IMPOSTORS.find(([begin]) => start.startsWith(begin));
  if (impostor) throw new SetunError("bad-checkpoint", `${name}: this is ${impostor[1]}`);
  return read(name, file, files);
}

function nothingFound(names: readonly string[]): SetunError {
  const pickle = names.find((name) => /\.(bin|pt|pth|ckpt)$/i.test(name));
  const advice = pickle === undefined ? "" : `; ${pickle} is a pickle, which may run code when it is read`;
  const [first = "nothing", ...more] = names;
  const found = more.length === 0 ? first : `${first} and ${more.length} more`;
  return new SetunError(
    "not-found",
    `expected a .safetensors, .gguf or .setun file, found ${found}${advice}`,
  );
}

/** The files of one checkpoint: shards belong together, other files of a kind are models of their own. */
function partsOf(found: readonly string[], { end }: Format): string[] {
  const [first = ""] = found;
  if (end === ".setun") return [found.find((name) => /(^|\/)model\.setun$/.test(name)) ?? first];
  const shards = found.filter((name) => /-\d{5}-of-\d{5}\.\w+$/.test(name));
  if (shards.length > 0) return shards;
  return [found.find((name) => /(^|\/)model\.safetensors$/.test(name)) ?? first];
}

function leftOut(found: readonly string[], chosen: readonly string[]): string[] {
  const others = found.filter((name) => !chosen.includes(name) && !name.endsWith(".setun"));
  return others.length === 0 ? [] : [`Not shown, another model: ${others.join(", ")}.`];
}

/** Shards that the index names and that are not there. */
async function missingShards(files: Files): Promise<string[]> {
  const [name, index] = [...files].find(([path]) => path.endsWith(".safetensors.index.json")) ?? [];
  if (name === undefined || index === undefined) return [];
  const folder = name.slice(0, name.lastIndexOf("/") + 1);
  try {
    const { weight_map: map } = JSON.parse(await index.text());
    const missing = new Set(Object.values(map).map(String));
    for (const path of files.keys()) missing.delete(path.slice(folder.length));
    return [...missing].map((shard) => `${shard} is missing, which the index names.`);
  } catch {
    return [`${name} is no index of shards.`];
  }
}

/** Parts that a name counts and that are not there. */
function missingParts(chosen: readonly string[]): string[] {
  const count = Number(/-of-(\d{5})\.\w+$/.exec(chosen[0] ?? "")?.[1] ?? chosen.length);
  return count > chosen.length ? [`${chosen.length} of ${count} parts are here.`] : [];
}

function missingFiles(names: readonly string[], inside: readonly string[]): string[] {
  const there = [...names.map((name) => name.slice(name.lastIndexOf("/") + 1)), ...inside];
  const missing = NEEDED.filter((name) => !there.includes(name));
  return missing.map((name) => `${name} is missing; without it the model does not load.`);
}

function twice(tensors: readonly Tensor[]): string[] {
  const seen = new Set<string>();
  const again = tensors.filter(({ name }) => seen.size === seen.add(name).size);
  return again.map(({ name }) => `The tensor ${name} is there twice.`);
}
