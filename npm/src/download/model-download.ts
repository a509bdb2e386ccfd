/** The download of all files of a plan over a few connections. Readers have priority. */

import { SetunError } from "../errors.js";
import type { OnProgress } from "../load-progress.js";
import { BlobFile } from "../store/blob-file.js";
import type { Manifest } from "../store/manifest.js";
import { storageFull } from "../store/quota.js";
import type { Storage } from "../store/storage.js";
import { FileChangedError } from "./errors.js";
import { FileDownload, nextChunkJob } from "./file-download.js";
import type { HttpClient } from "./http.js";
import { ManifestWriter } from "./manifest-writer.js";
import type { Plan, PlannedFile } from "./plan.js";
import { resumePart } from "./resume.js";
import { entryOf, type SharedFiles } from "./shared-weights.js";
import { missingFileError, readFile } from "./stored-model.js";
import { type ChunkMismatches, matchesPlan, verifyFile } from "./verify.js";

/** The folder of a download. */
export interface DownloadTarget {
  readonly storage: Storage;
  readonly folder: string;
  /** Known files of the folder. */
  readonly manifest: Manifest;
  readonly mismatches: ChunkMismatches;
  /** Files that are not downloaded, because sites share them. */
  readonly shared: SharedFiles;
}

/** A set of file downloads that share the connections. */
export class ModelDownload {
  readonly plan: Plan;
  readonly #http: HttpClient;
  readonly #target: DownloadTarget;
  readonly #progress: OnProgress;
  readonly #controller = new AbortController();
  readonly #manifestWriter: ManifestWriter;
  readonly #downloads = new Map<string, FileDownload>();
  readonly #blobs = new Map<string, Blob>();
  readonly #planned = new Map<string, PlannedFile>();
  readonly #more = new Map<string, Promise<boolean>>();
  /** Files that are not complete. */
  readonly #pending = new Set<Promise<void>>();
  readonly #failure: Promise<never>;
  #reject: (reason: unknown) => void = () => undefined;
  #failed: { readonly reason: unknown; readonly closed: Promise<unknown> } | undefined;
  #connections = 0;
  #isPrefetching = false;
  #loadedBytes = 0;
  /** Called once on failure, before readers get the error; `closed` resolves when no request is pending. */
  onFailure: ((reason: unknown, closed: Promise<unknown>) => void) | undefined;

  constructor(http: HttpClient, plan: Plan, target: DownloadTarget, progress: OnProgress) {
    this.#http = http;
    this.plan = plan;
    this.#target = target;
    this.#manifestWriter = new ManifestWriter(
      target.storage,
      target.folder,
      target.manifest,
      this.#controller.signal,
    );
    this.#progress = progress;
    this.#failure = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.#failure.catch(() => undefined);
  }

  /** Resumes the files of the plan. */
  async start(): Promise<void> {
    for (const planned of this.plan.files) await this.#startFile(planned);
    this.#reportProgress(this.plan.files.at(-1)?.name ?? "");
  }

  /** Downloads missing chunks without a reader. */
  prefetch(): void {
    this.#isPrefetching = true;
    this.#startFetches();
  }

  /** Bytes of a file when they have arrived; `undefined` if there is no such file. */
  async read(
    name: string,
    range: { start: number; end: number } | undefined,
  ): Promise<Uint8Array | undefined> {
    if (!(await this.#hasFile(name))) return undefined;
    const { bytes } = this.#planned.get(name) ?? { bytes: 0 };
    const { start, end } = range ?? { start: 0, end: bytes };
    const download = this.#downloads.get(name);
    if (download !== undefined) return this.#orFail(download.read(start, end));
    const blob = this.#blobs.get(name);
    return blob && readFile(new BlobFile(blob), name, start, end);
  }

  /** Bytes of all files. */
  get totalBytes(): number {
    return [...this.#planned.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Bytes that are not downloaded yet. */
  get missingBytes(): number {
    return this.totalBytes - this.#loadedBytes;
  }

  /** URL of a file, for messages. */
  where(name: string): string {
    return this.#planned.get(name)?.address ?? `${this.plan.source.replace(/\/$/, "")} (${name})`;
  }

  /** Resolves with the manifest when all files are complete, verified and renamed. */
  async complete(): Promise<Manifest> {
    this.prefetch();
    while (this.#pending.size > 0) await this.#orFail(Promise.all(this.#pending));
    if (this.#failed !== undefined) throw this.#failed.reason;
    return this.#manifestWriter.manifest;
  }

  /** Ends all requests. Stored chunks stay. */
  stop(reason: unknown): Promise<unknown> {
    this.#failed ??= { reason, closed: this.#close(reason) };
    return this.#failed.closed;
  }

  /** Deletes the chunks of incomplete files: the reader has refused the model. */
  async reset(): Promise<void> {
    await Promise.all([...this.#downloads.values()].map((download) => download.reset()));
  }

  async #close(reason: unknown): Promise<void> {
    this.#controller.abort(reason);
    this.#reject(reason);
    const closing = [...this.#downloads.values()].map((download) => download.close(reason));
    // Pending writes must not interfere with the next download.
    await Promise.allSettled([...closing, ...this.#pending, this.#manifestWriter.written]);
  }

  #fail(thrown: unknown): void {
    if (this.#failed !== undefined) return;
    const reason = this.#explain(thrown);
    this.onFailure?.(reason, this.stop(reason));
  }

  /** Adds the number of missing bytes to a full storage's error. */
  #explain(thrown: unknown): unknown {
    if (!(thrown instanceof SetunError) || thrown.code !== "storage-full") return thrown;
    const left = [...this.#downloads.values()].reduce(
      (sum, { header, downloadedBytes }) => sum + header.bytes - downloadedBytes,
      0,
    );
    return storageFull(this.plan.source, `${left} bytes are still to be written`, thrown);
  }

  /** Looks for a file that is not in the plan, once. */
  async #hasFile(name: string): Promise<boolean> {
    if (this.#planned.has(name)) return true;
    const manifestWriter = this.#more.get(name);
    if (manifestWriter !== undefined) return manifestWriter;
    const lookup = this.#orFail(this.#planMore(name));
    this.#more.set(name, lookup);
    return lookup;
  }

  async #planMore(name: string): Promise<boolean> {
    const planned = await this.plan.more(name);
    if (planned !== undefined) await this.#startFile(planned);
    return planned !== undefined;
  }

  async #startFile(planned: PlannedFile): Promise<void> {
    const { storage, folder } = this.#target;
    const path = `${folder}/${planned.name}`;
    const shared = this.#target.shared.get(planned.name);
    if (shared !== undefined) await this.#manifestWriter.add(entryOf(planned));
    const entry = this.#manifestWriter.manifest.files.find(({ name }) => name === planned.name);
    const blob = entry && matchesPlan(entry, planned) ? (shared ?? (await storage.open(path))) : undefined;
    if (blob !== undefined && blob.size === planned.bytes) {
      this.#blobs.set(planned.name, blob);
      this.#planned.set(planned.name, planned);
      this.#loadedBytes += planned.bytes;
      return;
    }
    const { signal } = this.#controller;
    signal.throwIfAborted();
    const part = await storage.openPartial(path);
    const onBytes = (bytes: number) => this.#countBytes(planned.name, bytes);
    const resumed = await resumePart(part, planned, this.#http.settings).catch(async (thrown: unknown) => {
      await part.close();
      throw thrown;
    });
    const download = new FileDownload(this.#http, planned, resumed, signal, onBytes);
    if (signal.aborted) return download.close(signal.reason);
    download.arrivals.onWake = () => this.#startFetches();
    this.#downloads.set(planned.name, download);
    this.#planned.set(planned.name, planned);
    this.#loadedBytes += download.downloadedBytes;
    const pending = this.#finish(download, path);
    this.#pending.add(pending);
    pending.then(
      () => this.#pending.delete(pending),
      (reason: unknown) => this.#fail(reason),
    );
    this.#startFetches();
  }

  /** Waits for a file, verifies it, and renames it. */
  async #finish(download: FileDownload, path: string): Promise<void> {
    const { storage, mismatches } = this.#target;
    const { name } = download.planned;
    const entry = await verifyFile(download, mismatches);
    // The manifest entry comes before the rename.
    await this.#manifestWriter.add(entry);
    const blob = await download.finish(async () => {
      const stored = await storage.open(path);
      if (stored === undefined) throw missingFileError(name);
      return stored;
    });
    this.#blobs.set(name, blob);
    this.#downloads.delete(name);
  }

  /** Gives each free connection a chunk; chunks with waiting readers come first. */
  #startFetches(): void {
    while (!this.#controller.signal.aborted && this.#connections < this.#http.settings.connections) {
      const job = nextChunkJob([...this.#downloads.values()], this.#isPrefetching);
      if (job === undefined) return;
      void this.#fetchChunk(job.download, job.chunk);
    }
  }

  async #fetchChunk(download: FileDownload, chunk: number): Promise<void> {
    this.#connections += 1;
    try {
      await download.fetchChunk(chunk);
    } catch (reason) {
      // Stored chunks belong to the previous version of the file.
      const isFirst = reason instanceof FileChangedError && this.#failed === undefined;
      if (isFirst) await download.reset().catch(() => undefined);
      this.#fail(reason);
    } finally {
      this.#connections -= 1;
      this.#startFetches();
    }
  }

  #countBytes(file: string, bytes: number): void {
    this.#loadedBytes += bytes;
    this.#reportProgress(file);
  }

  #reportProgress(file: string): void {
    if (this.#failed !== undefined) return;
    const { totalBytes } = this;
    // Bytes that arrive twice, by range and in the full file, count once.
    const loadedBytes = Math.min(this.#loadedBytes, totalBytes);
    this.#progress({ phase: "downloading", loadedBytes, totalBytes, file });
  }

  #orFail<Result>(work: Promise<Result>): Promise<Result> {
    return Promise.race([work, this.#failure]);
  }
}
