/** Download plans for URLs: a file, a folder with a manifest of the store, or a folder in Hugging Face's layout. */

import { SetunError } from "../errors.js";
import { EXPORT, type ModelEntry } from "../model-layout.js";
import { folderOf, type UrlSource } from "../sources.js";
import { MANIFEST, parseManifest } from "../store/manifest.js";
import { isSafeFile, urlModelId } from "../store/names.js";
import { sha256 } from "../store/sha256.js";
import { pageAdvice } from "./answers.js";
import { NotStorableError, noFileError } from "./errors.js";
import type { HttpClient } from "./http.js";
import { probeFile } from "./http.js";
import { escapePath, inFolder, type Plan, type PlannedFile, partsOf, revisionOf, shardsOf } from "./plan.js";
import {
  EXPECTED,
  entryOfSelection,
  SHARD_INDEX,
  SINGLE_WEIGHTS,
  selectStoredFiles,
} from "./select-files.js";

/** Maximum size of a manifest, a shard index or a configuration file. */
const MAX_METADATA_BYTES = 32 << 20;

/** Maximum size of a chunk, since each connection holds one in memory. */
const MAX_CHUNK_BYTES = 64 << 20;

/** Name of a `.setun` file in a folder. */
const CONTAINER = "model.setun";

/** Files beside the weights that the reader requests. */
const COMPANION_FILES = [
  "config.json",
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "chat_template.jinja",
  "chat_template.json",
];

/** Sizes found to differ from what the server stated, by URL. */
export type KnownSizes = ReadonlyMap<string, number>;

/** Contents of a URL. */
interface UrlContents {
  readonly entry: ModelEntry;
  readonly files: readonly PlannedFile[];
  readonly licence?: string;
  /** Whether the URL may have further files. */
  readonly mayHaveMore: boolean;
}

/** Finds out which files a URL has. */
export async function planUrl(http: HttpClient, source: UrlSource, sizes: KnownSizes): Promise<Plan> {
  const inspector = new UrlInspector(http, source, sizes);
  const { entry, files, licence, mayHaveMore } = await inspector.find();
  return {
    id: await urlModelId(source.url),
    revision: await revisionOf(files),
    source: source.url,
    ...(licence !== undefined && { licence }),
    entry,
    files,
    more: async (name) => (mayHaveMore && isSafeFile(name) ? inspector.planned(name) : undefined),
  };
}

class UrlInspector {
  readonly #http: HttpClient;
  readonly #source: UrlSource;
  readonly #sizes: KnownSizes;

  constructor(http: HttpClient, source: UrlSource, sizes: KnownSizes) {
    this.#http = http;
    this.#source = source;
    this.#sizes = sizes;
  }

  async find(): Promise<UrlContents> {
    const { layout, name } = this.#source;
    if (layout === "folder") return (await this.#storeFolder()) ?? (await this.#huggingFaceFolder());
    if (!isSafeFile(name)) throw new NotStorableError(`${this.#source.url}: "${name}" is no valid file name`);
    const files = await Promise.all(partsOf(name).map((part) => this.#required(part)));
    return { entry: { layout, name }, files, mayHaveMore: true };
  }

  /** Properties of a file; `undefined` if it does not exist. Configuration files are downloaded at once. */
  async planned(name: string): Promise<PlannedFile | undefined> {
    const address = this.#address(name);
    if (isMetadataFile(name)) {
      const found = await this.#http.fetchSmall(address, MAX_METADATA_BYTES);
      if (found === undefined) return undefined;
      const { bytes: content, identity } = found;
      return { name, address, bytes: content.length, content, identity, sha256: await sha256(content) };
    }
    const found = await probeFile(this.#http, address);
    if (found === undefined) return undefined;
    const bytes = this.#sizes.get(address) ?? found.bytes;
    if (bytes === undefined) throw new NotStorableError(`${address}: the server does not state its size`);
    return { name, address, bytes, identity: found.identity, condition: found.condition };
  }

  async #required(name: string): Promise<PlannedFile> {
    const planned = await this.planned(name);
    if (planned === undefined) throw noFileError(this.#address(name));
    return planned;
  }

  /** Contents by a store's manifest, which has hashes; `undefined` without a valid one. */
  async #storeFolder(): Promise<UrlContents | undefined> {
    const address = inFolder(this.#source.url, MANIFEST);
    const found = await this.#http.fetchSmall(address, MAX_METADATA_BYTES);
    const manifest = found && readManifest(new TextDecoder().decode(found.bytes), address);
    if (manifest === undefined || !manifest.complete || manifest.files.length === 0) return undefined;
    const large = manifest.files.find((file) => Math.min(file.chunkBytes, file.bytes) > MAX_CHUNK_BYTES);
    if (large !== undefined) {
      throw new NotStorableError(`${address}: ${large.name} has chunks of ${large.chunkBytes} bytes`);
    }
    const files = manifest.files.map(({ name, bytes, sha256, etag, chunkBytes, chunks }): PlannedFile => {
      const knownChunks = chunks.length === 0 ? undefined : { bytes: chunkBytes, digests: chunks };
      // The entity tag belongs to the original server, not to this one.
      const identity = sha256 === undefined ? etag : `"${sha256}"`;
      return {
        name,
        address: this.#address(name),
        bytes,
        sha256,
        chunks: knownChunks,
        identity,
        isPinned: true,
      };
    });
    const names = files.map(({ name }) => name);
    const entry = entryOfSelection(
      selectStoredFiles(manifest.model, this.#source.url, names),
      this.#source.name,
    );
    const { licence } = manifest;
    return { entry, files, mayHaveMore: false, ...(licence !== undefined && { licence }) };
  }

  async #huggingFaceFolder(): Promise<UrlContents> {
    const [weights, ...companions] = await Promise.all([
      this.#weights(),
      ...COMPANION_FILES.map((name) => this.planned(name)),
    ]);
    const found = companions.filter((file) => file !== undefined);
    const [first] = weights;
    const isContainer = first?.name === CONTAINER;
    if (first === undefined || (found[0]?.name !== "config.json" && !isContainer)) {
      const names = [...found, ...weights].map(({ name }) => name).join(", ") || "nothing";
      const message = `${this.#source.url} has no model: looked for ${EXPECTED}, found ${names}`;
      const advice = pageAdvice(this.#address("config.json"));
      throw new SetunError("not-found", message + advice);
    }
    const entry: ModelEntry =
      first.name === EXPORT
        ? { layout: "file", name: EXPORT }
        : { layout: "folder", name: this.#source.name };
    return { entry, files: [...found, ...weights], mayHaveMore: true };
  }

  /** The files with weights, in the order in which the reader looks for them. */
  async #weights(): Promise<PlannedFile[]> {
    const whole = await this.planned(SINGLE_WEIGHTS);
    if (whole !== undefined) return [whole];
    const index = await this.planned(SHARD_INDEX);
    if (index?.content === undefined)
      return [(await this.planned(CONTAINER)) ?? (await this.planned(EXPORT))].filter(
        (file) => file !== undefined,
      );
    const shards = shardsOf(index.address, new TextDecoder().decode(index.content));
    return [index, ...(await Promise.all(shards.map((shard) => this.#required(shard))))];
  }

  /** A single file keeps the query of its URL; files beside it have none. */
  #address(name: string): string {
    const { layout, name: main, url } = this.#source;
    if (layout === "folder") return inFolder(url, name);
    return name === main ? url.replace(/#.*$/, "") : new URL(escapePath(name), folderOf(this.#source)).href;
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

function isMetadataFile(name: string): boolean {
  return COMPANION_FILES.includes(name) || name === SHARD_INDEX;
}
