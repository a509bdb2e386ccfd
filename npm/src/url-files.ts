/** Model files behind a URL, each streamed by one request. */

import { DEFAULT_SETTINGS } from "./download/settings.js";
import type { ByteRange, ModelFiles } from "./model-files.js";
import { folderOf, type UrlSource } from "./sources.js";
import { type StreamOptions, UrlStream } from "./url-stream.js";

/** Maximum number of open streams; browsers allow six HTTP/1.1 connections to a host. */
const MAX_OPEN_STREAMS = 4;

/** Finds the size of a file that is not open yet. */
type Measure = (name: string, address: string) => Promise<number | undefined>;

/** The files of a folder, or a single file and those beside it. */
export class UrlFiles implements ModelFiles {
  readonly #source: UrlSource;
  readonly #options: StreamOptions;
  /** Open streams, the most recently used last. */
  readonly #streams = new Map<string, UrlStream>();
  readonly #sizes = new Map<string, number | undefined>();
  readonly #measure: Measure;

  constructor(
    source: UrlSource,
    signal: AbortSignal,
    options: Partial<StreamOptions> = {},
    measure: Measure = async () => undefined,
  ) {
    const { idleTimeout } = DEFAULT_SETTINGS;
    this.#source = source;
    this.#measure = measure;
    this.#options = { signal, idleTimeout, headers: {}, ...options };
  }

  async read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined> {
    const stream = await this.#streamAt(name, range?.start ?? 0);
    if (stream === undefined) return undefined;
    this.#sizes.set(name, stream.totalBytes ?? this.#sizes.get(name));
    if (range !== undefined) return stream.read(range.end - range.start);
    const bytes = await stream.readAll();
    await this.#close(name);
    // The size is known at the end at the latest.
    this.#sizes.set(name, bytes.length);
    return bytes;
  }

  /** The sizes are requested one after the other, beside what is read. */
  async expect(names: readonly string[]): Promise<void> {
    const missing = names.filter((name) => !this.#sizes.has(name));
    for (const name of missing) this.#sizes.set(name, undefined);
    void this.#measureAll(missing);
  }

  totalBytes(): number | undefined {
    let total = 0;
    for (const size of this.#sizes.values()) {
      if (size === undefined) return undefined;
      total += size;
    }
    return total;
  }

  where(name: string): string {
    return this.#address(name).href;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#streams.keys()].map((name) => this.#close(name)));
  }

  async #measureAll(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const bytes = await this.#measure(name, this.#address(name).href).catch(() => undefined);
      if (this.#sizes.get(name) === undefined) this.#sizes.set(name, bytes);
    }
  }

  /** A stream at byte `start`. The reader mostly continues where it stopped. */
  async #streamAt(name: string, start: number): Promise<UrlStream | undefined> {
    let stream = this.#streams.get(name);
    if (stream === undefined || stream.position > start) {
      await this.#close(name);
      stream = await UrlStream.open(this.#address(name), start, this.#options);
      if (stream === undefined) return undefined;
    }
    this.#streams.delete(name);
    this.#streams.set(name, stream);
    await stream.skipTo(start);
    await this.#closeOldest();
    return stream;
  }

  async #closeOldest(): Promise<void> {
    const [oldest] = this.#streams.keys();
    if (oldest !== undefined && this.#streams.size > MAX_OPEN_STREAMS) await this.#close(oldest);
  }

  async #close(name: string): Promise<void> {
    const stream = this.#streams.get(name);
    this.#streams.delete(name);
    await stream?.close();
  }

  /** A single file keeps the query of its URL; files beside it have none. */
  #address(name: string): URL {
    const { layout, name: main, url } = this.#source;
    if (layout === "file" && name === main) return new URL(url);
    return new URL(name.split("/").map(encodeURIComponent).join("/"), folderOf(this.#source));
  }
}
