/** What lies at an address: a file, a folder with the store's own manifest, or one in Hugging Face's layout. */

import { SetunError } from "../errors.js";
import type { UrlSource } from "../sources.js";
import { sha256 } from "../store/digest.js";
import { MANIFEST, parseManifest } from "../store/manifest.js";
import { isSafeFile, modelOfAddress } from "../store/names.js";
import { chooseStored, EXPECTED, entryOf, INDEX, WEIGHTS } from "./choice.js";
import { networkError, Unkeepable } from "./faults.js";
import type { Http } from "./http.js";
import {
  type Entry,
  escapePath,
  inFolder,
  MOST_PARTS,
  type Plan,
  partsOf,
  revisionOf,
  type Wanted,
} from "./plan.js";
import { probe } from "./probe.js";

/** Most bytes of a manifest, of a list of shards, and of a file that is read whole. */
const MOST_BYTES = 32 << 20;

/** Most bytes of a chunk: each connection holds one until it is whole. */
const MOST_CHUNK_BYTES = 64 << 20;

/** A model in one file, in a folder. */
const CONTAINER = "model.setun";

/** What the reader asks for beside a folder's weights, or a lone file's. */
const BESIDE = [
  "config.json",
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "chat_template.jinja",
  "chat_template.json",
];

/** Sizes that files were found to have where their server had told another. */
export type Sizes = ReadonlyMap<string, number>;

/** What is found at an address. */
interface Found {
  readonly entry: Entry;
  readonly files: readonly Wanted[];
  readonly licence?: string;
  /** Whether more than these files may be there. */
  readonly isOpen: boolean;
}

/** Finds out what an address has. */
export async function planAddress(http: Http, source: UrlSource, sizes: Sizes): Promise<Plan> {
  const look = new Look(http, source, sizes);
  const { entry, files, licence, isOpen } = await look.find();
  return {
    id: await modelOfAddress(source.url),
    revision: await revisionOf(files),
    source: source.url,
    ...(licence !== undefined && { licence }),
    entry,
    files,
    more: async (name) => (isOpen && isSafeFile(name) ? look.wanted(name) : undefined),
  };
}

class Look {
  readonly #http: Http;
  readonly #source: UrlSource;
  readonly #sizes: Sizes;

  constructor(http: Http, source: UrlSource, sizes: Sizes) {
    this.#http = http;
    this.#source = source;
    this.#sizes = sizes;
  }

  async find(): Promise<Found> {
    const { layout, name } = this.#source;
    if (layout === "folder") return (await this.#mirrored()) ?? (await this.#folder());
    if (!isSafeFile(name)) throw new Unkeepable(`${this.#source.url}: "${name}" is no name of a stored file`);
    const files = await Promise.all(partsOf(name).map((part) => this.#needed(part)));
    return { entry: { layout, name }, files, isOpen: true };
  }

  /** What the server tells of a file; `undefined` where there is none. Small files come at once. */
  async wanted(name: string): Promise<Wanted | undefined> {
    const address = this.#address(name);
    if (isSmall(name)) {
      const found = await this.#http.small(address, MOST_BYTES);
      if (found === undefined) return undefined;
      const { bytes: content, identity } = found;
      return { name, address, bytes: content.length, content, identity, sha256: await sha256(content) };
    }
    const found = await probe(this.#http, address);
    if (found === undefined) return undefined;
    const bytes = this.#sizes.get(address) ?? found.bytes;
    if (bytes === undefined) throw new Unkeepable(`${address}: the server does not tell its size`);
    return { name, address, bytes, identity: found.identity, condition: found.condition };
  }

  async #needed(name: string): Promise<Wanted> {
    const wanted = await this.wanted(name);
    if (wanted === undefined) throw new SetunError("not-found", `${this.#address(name)}: no such file`);
    return wanted;
  }

  /** The manifest of a folder that is a store's, or was made like one: it tells hashes. */
  async #mirrored(): Promise<Found | undefined> {
    const address = inFolder(this.#source.url, MANIFEST);
    const found = await this.#http.small(address, MOST_BYTES);
    const manifest = found && readManifest(new TextDecoder().decode(found.bytes), address);
    if (manifest === undefined || !manifest.complete || manifest.files.length === 0) return undefined;
    const large = manifest.files.find((file) => Math.min(file.chunkBytes, file.bytes) > MOST_CHUNK_BYTES);
    if (large !== undefined) {
      throw new Unkeepable(`${address}: ${large.name} has chunks of ${large.chunkBytes} bytes`);
    }
    const files = manifest.files.map(({ name, bytes, sha256, etag, chunkBytes, chunks }): Wanted => {
      const told = chunks.length === 0 ? undefined : { bytes: chunkBytes, digests: chunks };
      // Its etag is of where it came from, so it tells nothing of this server's answers.
      const identity = sha256 === undefined ? etag : `"${sha256}"`;
      return { name, address: this.#address(name), bytes, sha256, chunks: told, identity, isPinned: true };
    });
    const names = files.map(({ name }) => name);
    const entry = entryOf(chooseStored(manifest.model, this.#source.url, names), this.#source.name);
    const { licence } = manifest;
    return { entry, files, isOpen: false, ...(licence !== undefined && { licence }) };
  }

  async #folder(): Promise<Found> {
    const [weights, ...beside] = await Promise.all([
      this.#weights(),
      ...BESIDE.map((name) => this.wanted(name)),
    ]);
    const found = beside.filter((file) => file !== undefined);
    const [first] = weights;
    const isContainer = first?.name === CONTAINER;
    if (first === undefined || (found[0]?.name !== "config.json" && !isContainer)) {
      const names = [...found, ...weights].map(({ name }) => name).join(", ") || "nothing";
      const message = `${this.#source.url} has no model: looked for ${EXPECTED}, found ${names}`;
      throw new SetunError("not-found", message);
    }
    const entry = { layout: "folder", name: this.#source.name } as const;
    return { entry, files: [...found, ...weights], isOpen: true };
  }

  /** The files that have the weights, in the order in which the reader looks for them. */
  async #weights(): Promise<Wanted[]> {
    const whole = await this.wanted(WEIGHTS);
    if (whole !== undefined) return [whole];
    const index = await this.wanted(INDEX);
    if (index?.content === undefined)
      return [await this.wanted(CONTAINER)].filter((file) => file !== undefined);
    const shards = shardsOf(index.address, new TextDecoder().decode(index.content));
    return [index, ...(await Promise.all(shards.map((shard) => this.#needed(shard))))];
  }

  /** The lone file keeps the query of its address; its neighbours do without. */
  #address(name: string): string {
    const { layout, name: main, url } = this.#source;
    if (layout === "folder") return inFolder(url, name);
    return name === main ? url.replace(/#.*$/, "") : new URL(escapePath(name), url).href;
  }
}

/** Other software has files of this name too. */
function readManifest(text: string, address: string) {
  try {
    return parseManifest(text, address);
  } catch {
    return undefined;
  }
}

function isSmall(name: string): boolean {
  return BESIDE.includes(name) || name === INDEX;
}

function shardsOf(address: string, text: string): string[] {
  let map: unknown;
  try {
    map = JSON.parse(text)?.weight_map;
  } catch (cause) {
    throw new SetunError("bad-checkpoint", `${address}: the index cannot be read`, { cause });
  }
  const names = [...new Set(Object.values(map ?? {}))].map(String).sort();
  const bad = names.find((name) => !isSafeFile(name));
  if (bad !== undefined) throw networkError(address, `the index names the file "${bad}"`);
  if (names.length > MOST_PARTS) throw networkError(address, `the index names ${names.length} files`);
  return names;
}
