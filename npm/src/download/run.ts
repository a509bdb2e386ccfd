/** The downloads of a plan: some connections share its files, and whoever reads comes first. */

import { SetunError } from "../errors.js";
import type { LoadProgress } from "../messages.js";
import type { Manifest } from "../store/manifest.js";
import { storageFull } from "../store/quota.js";
import type { Storage } from "../store/storage.js";
import { beginPart } from "./begin.js";
import { checkFile, type Doubted, isSame } from "./check.js";
import { Changed } from "./faults.js";
import { FileDownload, nextJob } from "./file-download.js";
import type { Http } from "./http.js";
import { KnownFiles } from "./known-files.js";
import type { Plan, Wanted } from "./plan.js";
import { gone, readBlob } from "./stored-files.js";

/** Where a plan's files go. */
export interface Place {
  readonly storage: Storage;
  readonly folder: string;
  /** What is known of the folder's files. */
  readonly manifest: Manifest;
  readonly doubted: Doubted;
}

/** See the module. */
export class Run {
  readonly plan: Plan;
  readonly #http: Http;
  readonly #place: Place;
  readonly #progress: (progress: LoadProgress) => void;
  readonly #controller = new AbortController();
  readonly #known: KnownFiles;
  readonly #downloads = new Map<string, FileDownload>();
  readonly #blobs = new Map<string, Blob>();
  readonly #wanted = new Map<string, Wanted>();
  readonly #more = new Map<string, Promise<boolean>>();
  /** Files that are not whole yet. */
  readonly #pending = new Set<Promise<void>>();
  readonly #failure: Promise<never>;
  #reject: (reason: unknown) => void = () => undefined;
  #failed: { readonly reason: unknown; readonly closed: Promise<unknown> } | undefined;
  #connections = 0;
  #isAhead = false;
  #loadedBytes = 0;
  /** Told once when it fails, before those who read; `closed` resolves once nothing is under way any more. */
  onFailure: ((reason: unknown, closed: Promise<unknown>) => void) | undefined;

  constructor(http: Http, plan: Plan, place: Place, progress: (progress: LoadProgress) => void) {
    this.#http = http;
    this.plan = plan;
    this.#place = place;
    this.#known = new KnownFiles(place.storage, place.folder, place.manifest, this.#controller.signal);
    this.#progress = progress;
    this.#failure = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.#failure.catch(() => undefined);
  }

  /** Takes up what is there. */
  async begin(): Promise<void> {
    for (const wanted of this.plan.files) await this.#beginFile(wanted);
    this.#tell(this.plan.files.at(-1)?.name ?? "");
  }

  /** Brings what is missing, though nobody reads it. */
  ahead(): void {
    this.#isAhead = true;
    this.#fill();
  }

  /** Bytes of a file once they are there; `undefined` if there is no such file. */
  async read(
    name: string,
    range: { start: number; end: number } | undefined,
  ): Promise<Uint8Array | undefined> {
    if (!(await this.#knows(name))) return undefined;
    const { bytes } = this.#wanted.get(name) ?? { bytes: 0 };
    const { start, end } = range ?? { start: 0, end: bytes };
    const download = this.#downloads.get(name);
    if (download !== undefined) return this.#orFailure(download.read(start, end));
    const blob = this.#blobs.get(name);
    return blob && readBlob(blob, name, start, end);
  }

  /** Bytes of all files. */
  get totalBytes(): number {
    return [...this.#wanted.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Bytes that are still to come. */
  get missingBytes(): number {
    return this.totalBytes - this.#loadedBytes;
  }

  /** Where a file was looked for. */
  where(name: string): string {
    return this.#wanted.get(name)?.address ?? `${this.plan.source.replace(/\/$/, "")} (${name})`;
  }

  /** Resolves once all files are whole, checked and named, with what the manifest is to say of them. */
  async complete(): Promise<Manifest> {
    this.ahead();
    while (this.#pending.size > 0) await this.#orFailure(Promise.all(this.#pending));
    if (this.#failed !== undefined) throw this.#failed.reason;
    return this.#known.manifest;
  }

  /** Ends all requests; what is there stays. */
  stop(reason: unknown): Promise<unknown> {
    this.#failed ??= { reason, closed: this.#close(reason) };
    return this.#failed.closed;
  }

  /** Forgets what has come of files that are not whole: the reader says that they are no model. */
  async forget(): Promise<void> {
    await Promise.all([...this.#downloads.values()].map((download) => download.forget()));
  }

  async #close(reason: unknown): Promise<void> {
    this.#controller.abort(reason);
    this.#reject(reason);
    const closing = [...this.#downloads.values()].map((download) => download.close(reason));
    // What is being written of the folder must not get in the way of whoever comes next.
    await Promise.allSettled([...closing, ...this.#pending, this.#known.written]);
  }

  #fail(thrown: unknown): void {
    if (this.#failed !== undefined) return;
    const reason = this.#explain(thrown);
    this.onFailure?.(reason, this.stop(reason));
  }

  /** Of a store without room: how much is missing. */
  #explain(thrown: unknown): unknown {
    if (!(thrown instanceof SetunError) || thrown.code !== "storage-full") return thrown;
    const left = [...this.#downloads.values()].reduce(
      (sum, { subject, there }) => sum + subject.bytes - there,
      0,
    );
    return storageFull(this.plan.source, `${left} bytes are still to be written`, thrown);
  }

  /** Looks for a file that was not planned, once. */
  async #knows(name: string): Promise<boolean> {
    if (this.#wanted.has(name)) return true;
    const known = this.#more.get(name);
    if (known !== undefined) return known;
    const asked = this.#orFailure(this.#findMore(name));
    this.#more.set(name, asked);
    return asked;
  }

  async #findMore(name: string): Promise<boolean> {
    const wanted = await this.plan.more(name);
    if (wanted !== undefined) await this.#beginFile(wanted);
    return wanted !== undefined;
  }

  async #beginFile(wanted: Wanted): Promise<void> {
    const { storage, folder } = this.#place;
    const path = `${folder}/${wanted.name}`;
    const entry = this.#known.manifest.files.find(({ name }) => name === wanted.name);
    const blob = entry && isSame(entry, wanted) ? await storage.open(path) : undefined;
    if (blob !== undefined && blob.size === wanted.bytes) {
      this.#blobs.set(wanted.name, blob);
      this.#wanted.set(wanted.name, wanted);
      this.#loadedBytes += wanted.bytes;
      return;
    }
    const { signal } = this.#controller;
    signal.throwIfAborted();
    const part = await storage.openPart(path);
    const heard = (bytes: number) => this.#hear(wanted.name, bytes);
    const begun = await beginPart(part, wanted, this.#http.settings).catch(async (thrown: unknown) => {
      await part.close();
      throw thrown;
    });
    const download = new FileDownload(this.#http, wanted, begun, signal, heard);
    if (signal.aborted) return download.close(signal.reason);
    download.arrivals.onWake = () => this.#fill();
    this.#downloads.set(wanted.name, download);
    this.#wanted.set(wanted.name, wanted);
    this.#loadedBytes += download.there;
    const pending = this.#finish(download, path);
    this.#pending.add(pending);
    pending.then(
      () => this.#pending.delete(pending),
      (reason: unknown) => this.#fail(reason),
    );
    this.#fill();
  }

  /** Follows a file until it is whole, checks it, and gives it its name. */
  async #finish(download: FileDownload, path: string): Promise<void> {
    const { storage, doubted } = this.#place;
    const { name } = download.wanted;
    const entry = await checkFile(download, doubted);
    // First what is known of it, then its name.
    await this.#known.add(entry);
    const blob = await download.finish(async () => {
      const stored = await storage.open(path);
      if (stored === undefined) throw gone(name);
      return stored;
    });
    this.#blobs.set(name, blob);
    this.#downloads.delete(name);
  }

  /** Gives each free connection a chunk: first those that a reader waits for. */
  #fill(): void {
    while (!this.#controller.signal.aborted && this.#connections < this.#http.settings.connections) {
      const job = nextJob([...this.#downloads.values()], this.#isAhead);
      if (job === undefined) return;
      void this.#bring(job.download, job.chunk);
    }
  }

  async #bring(download: FileDownload, chunk: number): Promise<void> {
    this.#connections += 1;
    try {
      await download.bring(chunk);
    } catch (reason) {
      // What is there is of the file before.
      const isFirst = reason instanceof Changed && this.#failed === undefined;
      if (isFirst) await download.forget().catch(() => undefined);
      this.#fail(reason);
    } finally {
      this.#connections -= 1;
      this.#fill();
    }
  }

  #hear(file: string, bytes: number): void {
    this.#loadedBytes += bytes;
    this.#tell(file);
  }

  #tell(file: string): void {
    if (this.#failed !== undefined) return;
    const { totalBytes } = this;
    // What comes twice, in parts and in the whole, counts once.
    this.#progress({ loadedBytes: Math.min(this.#loadedBytes, totalBytes), totalBytes, file });
  }

  #orFailure<Result>(work: Promise<Result>): Promise<Result> {
    return Promise.race([work, this.#failure]);
  }
}
