/** A model that is downloaded into the store. The creator holds the model's lock until the download has ended. */

import type { CrossOriginFiles } from "../cross-origin-files.js";
import { SetunError } from "../errors.js";
import type { HubSource } from "../hub-name.js";
import type { LoadProgress, OnProgress } from "../load-progress.js";
import type { ModelContents, OpenModel } from "../open-model.js";
import type { UrlSource } from "../sources.js";
import type { Damage, StoredFolder } from "../store/damage.js";
import { type Manifest, now } from "../store/manifest.js";
import { modelIdText, modelPath, revisionPath } from "../store/names.js";
import { checkQuota } from "../store/quota.js";
import {
  completeRevision,
  folders,
  readManifest,
  removeRevision,
  saveReference,
  writeManifest,
} from "../store/revisions.js";
import type { Storage, WithLock } from "../store/storage.js";
import { FileChangedError } from "./errors.js";
import type { HttpClient } from "./http.js";
import { entryOfStored, type StoredMatch } from "./lookup.js";
import { ModelDownload } from "./model-download.js";
import { isCommit, type Plan } from "./plan.js";
import { planHub } from "./plan-hub.js";
import { planUrl } from "./plan-url.js";
import { SharedProgress } from "./shared-progress.js";
import {
  findPlanned,
  forgetShared,
  removeCopies,
  type SharedFiles,
  sharedFilesOf,
  shareFiles,
} from "./shared-weights.js";
import { DownloadingFiles, StoredFiles } from "./stored-model.js";

/** Maximum number of restarts after changed files. */
const MAX_RESTARTS = 4;

/** Where a download is stored. */
export interface DownloadContext {
  readonly storage: Storage;
  readonly withLock: WithLock;
  readonly crossOrigin?: CrossOriginFiles | undefined;
}

/** An {@link OpenModel} whose files arrive while they are read. It restarts when they change on the server. */
export class StoreDownload implements OpenModel {
  readonly readPhase = "packing";
  readonly fromStore = false;
  readonly damages: readonly Damage[];
  onProgress: OnProgress | undefined;
  /** Resolves when nothing is pending, with or without an error. */
  readonly ended: Promise<void>;
  readonly #source: UrlSource | HubSource;
  readonly #storage: Storage;
  readonly #context: DownloadContext;
  readonly #http: HttpClient;
  readonly #mismatches = new Map<string, readonly string[]>();
  readonly #sizes = new Map<string, number>();
  #end: () => void = () => undefined;
  /** The current download; replaced after a change. */
  #download: Promise<ModelDownload>;
  /** The download that is read from. */
  #readFrom: ModelDownload | undefined;
  #restarts = 0;
  #isPrefetching = false;
  #isEnded = false;
  #committed: StoredMatch | undefined;
  /** Files of the committed model that are not in its folder. */
  #shared: SharedFiles = new Map();
  #lastProgress: LoadProgress | undefined;
  readonly #others: SharedProgress;

  /** `model` as its lock names it; `damages` are why stored files are downloaded again. */
  constructor(
    source: UrlSource | HubSource,
    context: DownloadContext,
    http: HttpClient,
    model: string,
    damages: readonly Damage[] = [],
  ) {
    this.#others = new SharedProgress(model);
    this.damages = damages;
    this.#source = source;
    this.#storage = context.storage;
    this.#context = context;
    this.#http = http;
    this.#download = noDownload();
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    http.signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** Whether bytes are still to come. Then reads follow them. */
  get reportsProgress(): boolean {
    const { loadedBytes = 0, totalBytes } = this.#lastProgress ?? {};
    return loadedBytes !== totalBytes;
  }

  /** Plans the download. Returns the stored model if it turns out to be complete. */
  async start(): Promise<StoredMatch | undefined> {
    try {
      const plan = await this.#plan();
      const model = await completeRevision(this.#storage, plan.id, plan.revision);
      const has =
        model && plan.files.every(({ name }) => model.manifest.files.some((file) => file.name === name));
      const shared = has && (await sharedFilesOf(model, this.#context.crossOrigin, this.#http.signal));
      if (has && shared) {
        await this.#saveReference(plan);
        const entry = entryOfStored(this.#source, model) ?? plan.entry;
        await this.#finish(undefined);
        return { model, entry, shared };
      }
      if (has) await forgetShared(this.#storage, model);
      this.#download = this.#open(plan);
      await this.#download;
      return undefined;
    } catch (thrown) {
      await this.#finish(thrown);
      throw thrown;
    }
  }

  async open(): Promise<ModelContents> {
    const committed = this.#committed;
    if (committed !== undefined) {
      const modelNow = () => (this.#committed ?? committed).model;
      return {
        entry: committed.entry,
        files: () => new StoredFiles(this.#storage, modelNow(), this.#shared),
      };
    }
    const download = await this.#download;
    this.#readFrom = download;
    return { entry: download.plan.entry, files: () => new DownloadingFiles(download) };
  }

  prefetch(): void {
    this.#isPrefetching = true;
    if (this.#lastProgress !== undefined) this.#reportProgress(this.#lastProgress);
    this.#download.then(
      (download) => download.prefetch(),
      () => undefined,
    );
  }

  /** A change meanwhile rejects: the bytes read belong to the previous version. */
  async commit(): Promise<void> {
    if (this.#committed !== undefined) return;
    const download = await this.#download;
    if (download !== this.#readFrom) throw new FileChangedError("changed after it was read");
    if (this.#lastProgress !== undefined) this.#reportProgress({ ...this.#lastProgress, phase: "checking" });
    const found = await download.complete();
    const { id, revision } = download.plan;
    const folder = await revisionPath(id, revision);
    const manifest = { ...found, complete: true, pulled: now() };
    await writeManifest(this.#storage, folder, manifest);
    await this.#saveReference(download.plan);
    this.#committed = { model: { id, folder, manifest }, entry: download.plan.entry };
    if (!isCommit(revision)) await this.#removeOthers(download.plan, () => true);
    await this.#finish(undefined);
    void this.#share(this.#committed, download.plan).catch(() => undefined);
    this.#readFrom = undefined;
    this.#download = noDownload(); // frees its buffers
  }

  /** Gives the weights to all sites. The copies here are removed once they can be read from there. */
  async #share({ model, entry }: StoredMatch, { id, files }: Plan): Promise<void> {
    const { storage, withLock, crossOrigin } = this.#context;
    const { signal } = this.#http;
    if (crossOrigin === undefined) return;
    const shared = await shareFiles(storage, model, files, crossOrigin, signal);
    if (shared === undefined) return;
    await withLock(modelIdText(id), signal, async () => {
      if (!(await removeCopies(storage, model.folder, shared))) return;
      this.#shared = new Map([...this.#shared, ...shared.files]);
      this.#committed = { model: { ...model, manifest: shared.manifest }, entry };
    });
  }

  async discard(): Promise<readonly Damage[]> {
    const download = await this.#download.catch(() => undefined);
    if (download === undefined || this.#committed !== undefined) return [];
    await download.reset().catch(() => undefined);
    await download.stop(new SetunError("disposed", "the downloaded files are no model"));
    await this.#removeUnfinished(download.plan).catch(() => undefined);
    return [];
  }

  async close(): Promise<void> {
    await this.#finish(new SetunError("disposed", "the download was ended"));
  }

  readonly #abort = () => void this.#finish(this.#http.signal.reason);

  /** Ends the download. */
  async #finish(reason: unknown): Promise<void> {
    this.#isEnded = true;
    this.#http.signal.removeEventListener("abort", this.#abort);
    if (this.#committed === undefined)
      await this.#download.then((download) => download.stop(reason)).catch(() => undefined);
    this.#others.close();
    this.#end();
  }

  #plan(): Promise<Plan> {
    const source = this.#source;
    return source.kind === "hub" ? planHub(this.#http, source) : planUrl(this.#http, source, this.#sizes);
  }

  async #open(plan: Plan): Promise<ModelDownload> {
    const storage = this.#storage;
    const folder = await revisionPath(plan.id, plan.revision);
    if (!isCommit(plan.revision)) await this.#removeOthers(plan, (manifest) => manifest?.complete !== true);
    const manifest = await this.#manifest(plan, folder);
    const shared = await this.#findShared(plan, { folder, manifest });
    const target = { storage, folder, manifest, mismatches: this.#mismatches, shared };
    const download = new ModelDownload(this.#http, plan, target, this.#reportProgress);
    download.onFailure = (reason, closed) => this.#fail(reason, closed);
    try {
      await download.start();
      await checkQuota(plan.source, download.missingBytes);
    } catch (thrown) {
      await download.stop(thrown);
      // Without a byte of it the model is not listed.
      if (download.missingBytes === download.totalBytes)
        await this.#removeUnfinished(plan).catch(() => undefined);
      throw thrown;
    }
    if (this.#isPrefetching) download.prefetch();
    return download;
  }

  async #findShared({ files }: Plan, stored: StoredFolder): Promise<SharedFiles> {
    const { storage, crossOrigin } = this.#context;
    const totalBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
    let loadedBytes = 0;
    const onRead = (bytes: number, file: string) => {
      loadedBytes += bytes;
      this.#reportProgress({ phase: "checking", loadedBytes, totalBytes, file });
    };
    this.#shared = await findPlanned(storage, stored, files, crossOrigin, this.#http.signal, onRead);
    return this.#shared;
  }

  /** The folder's manifest, or a new one of an incomplete model. */
  async #manifest(plan: Plan, folder: string): Promise<Manifest> {
    const { id, revision, source, licence } = plan;
    const found = await readManifest(this.#storage, folder);
    const isComplete =
      found?.complete === true && (await completeRevision(this.#storage, id, revision)) !== undefined;
    if (found !== undefined && (isComplete || !found.complete)) return found;
    const manifest = {
      model: modelIdText(id),
      revision,
      source,
      ...(licence !== undefined && { licence }),
      pulled: now(),
      complete: false,
      files: found?.files ?? [],
    };
    await writeManifest(this.#storage, folder, manifest);
    return manifest;
  }

  /** Restarts a few times if the source has changed; any other error is final. */
  #fail(reason: unknown, closed: Promise<unknown>): void {
    this.#download = closed.then(() => this.#restart(reason));
    this.#download.catch((thrown: unknown) => this.#finish(thrown));
  }

  async #restart(reason: unknown): Promise<ModelDownload> {
    if (!(reason instanceof FileChangedError)) throw reason;
    this.#restarts += 1;
    if (this.#isEnded || this.#restarts === MAX_RESTARTS) {
      throw new SetunError(
        "network",
        `${this.#where}: keeps changing during the download: ${reason.message}`,
      );
    }
    if (reason.size !== undefined) this.#sizes.set(reason.size.address, reason.size.bytes);
    return this.#open(await this.#plan());
  }

  get #where(): string {
    return this.#source.kind === "url" ? this.#source.url : `hf:${this.#source.model}`;
  }

  async #saveReference({ id, reference, revision }: Plan): Promise<void> {
    if (reference !== undefined) await saveReference(this.#storage, id, reference, revision);
  }

  async #removeUnfinished({ id, revision }: Plan): Promise<void> {
    const folder = await revisionPath(id, revision);
    const manifest = await readManifest(this.#storage, folder);
    if (manifest?.complete !== true) await removeRevision(this.#storage, folder);
  }

  /** Removes other revisions of a URL, whose files no server has any more. */
  async #removeOthers(plan: Plan, isEnded: (manifest: Manifest | undefined) => boolean): Promise<void> {
    const commit = await revisionPath(plan.id, plan.revision);
    for (const name of await folders(this.#storage, modelPath(plan.id))) {
      const folder = `${modelPath(plan.id)}/${name}`;
      if (folder === commit) continue;
      const manifest = await readManifest(this.#storage, folder).catch(() => undefined);
      if (isEnded(manifest)) await removeRevision(this.#storage, folder);
    }
  }

  readonly #reportProgress: OnProgress = (progress) => {
    this.#lastProgress = progress;
    this.onProgress?.(progress);
    this.#others.tell(progress);
  };
}

function noDownload(): Promise<never> {
  const download = Promise.reject(new Error("no download is running"));
  download.catch(() => undefined);
  return download;
}
