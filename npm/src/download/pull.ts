/** A model that is being downloaded into the store. Whoever makes one holds the model's lock until it has ended. */

import { SetunError } from "../errors.js";
import type { HubSource } from "../hub-name.js";
import type { LoadProgress } from "../messages.js";
import type { Beginning, OpenModel } from "../open-model.js";
import type { UrlSource } from "../sources.js";
import { type Manifest, now } from "../store/manifest.js";
import { modelPath, modelText, revisionPath } from "../store/names.js";
import { checkRoom } from "../store/quota.js";
import {
  folders,
  readManifest,
  refer,
  removeRevision,
  wholeRevision,
  writeManifest,
} from "../store/revisions.js";
import type { Storage } from "../store/storage.js";
import { Changed } from "./faults.js";
import { type Stored, storedEntry } from "./find-stored.js";
import { planAddress } from "./folder.js";
import type { Http } from "./http.js";
import { planHub } from "./hub.js";
import { isCommit, type Plan } from "./plan.js";
import { Run } from "./run.js";
import { ComingFiles, StoredFiles } from "./stored-files.js";

/** Times that a download begins before its source counts as one that keeps changing. */
const BEGINNINGS = 4;

/** Milliseconds between two words of progress. */
const PACE = 50;

/** See the module. */
export class Pull implements OpenModel {
  readonly tellsProgress = true;
  onProgress: ((progress: LoadProgress) => void) | undefined;
  /** Resolves once nothing is under way any more, however it went. */
  readonly ended: Promise<void>;
  readonly #source: UrlSource | HubSource;
  readonly #storage: Storage;
  readonly #http: Http;
  readonly #doubted = new Map<string, readonly string[]>();
  readonly #sizes = new Map<string, number>();
  #end: () => void = () => undefined;
  /** The run of this beginning; after a change the one of the next. */
  #run: Promise<Run>;
  /** The one that is read from. */
  #read: Run | undefined;
  #beginnings = 0;
  #isAhead = false;
  #isOver = false;
  #kept: Stored | undefined;
  #told = 0;
  #last: LoadProgress | undefined;

  constructor(source: UrlSource | HubSource, storage: Storage, http: Http) {
    this.#source = source;
    this.#storage = storage;
    this.#http = http;
    this.#run = notUnderWay();
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    http.signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** Finds out what is to come. What turns out to be there whole is returned. */
  async start(): Promise<Stored | undefined> {
    try {
      const plan = await this.#plan();
      const model = await wholeRevision(this.#storage, plan.id, plan.revision);
      const has =
        model && plan.files.every(({ name }) => model.manifest.files.some((file) => file.name === name));
      if (has) {
        await this.#refer(plan);
        const entry = storedEntry(this.#source, model) ?? plan.entry;
        await this.#finish(undefined);
        return { model, entry };
      }
      this.#run = this.#begin(plan);
      await this.#run;
      return undefined;
    } catch (thrown) {
      await this.#finish(thrown);
      throw thrown;
    }
  }

  async begin(): Promise<Beginning> {
    const kept = this.#kept;
    if (kept !== undefined) {
      return { entry: kept.entry, files: () => new StoredFiles(this.#storage, kept.model) };
    }
    const run = await this.#run;
    this.#read = run;
    return { entry: run.plan.entry, files: () => new ComingFiles(run) };
  }

  ahead(): void {
    this.#isAhead = true;
    if (this.#last !== undefined) this.#tell(this.#last);
    this.#run.then(
      (run) => run.ahead(),
      () => undefined,
    );
  }

  /** A change while this waits rejects with it: what was read is of the file before. */
  async keep(): Promise<void> {
    if (this.#kept !== undefined) return;
    const run = await this.#run;
    if (run !== this.#read) throw new Changed("it changed after all of it was read");
    const found = await run.complete();
    const { id, revision } = run.plan;
    const folder = await revisionPath(id, revision);
    const manifest = { ...found, complete: true, pulled: now() };
    await writeManifest(this.#storage, folder, manifest);
    await this.#refer(run.plan);
    this.#kept = { model: { id, folder, manifest }, entry: run.plan.entry };
    if (!isCommit(revision)) await this.#removeOthers(run.plan, () => true);
    if (this.#last !== undefined) this.onProgress?.(this.#last);
    await this.#finish(undefined);
    this.#read = undefined;
    this.#run = notUnderWay(); // with all that it keeps in memory
  }

  async refuse(): Promise<void> {
    const run = await this.#run.catch(() => undefined);
    if (run === undefined || this.#kept !== undefined) return;
    await run.forget().catch(() => undefined);
    await run.stop(new SetunError("disposed", "what came is no model"));
    await this.#removeUnfinished(run.plan).catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.#finish(new SetunError("disposed", "the download was ended"));
  }

  readonly #abort = () => void this.#finish(this.#http.signal.reason);

  /** Nothing is to come any more. */
  async #finish(reason: unknown): Promise<void> {
    this.#isOver = true;
    this.#http.signal.removeEventListener("abort", this.#abort);
    if (this.#kept === undefined) await this.#run.then((run) => run.stop(reason)).catch(() => undefined);
    this.#end();
  }

  #plan(): Promise<Plan> {
    const source = this.#source;
    return source.kind === "hub" ? planHub(this.#http, source) : planAddress(this.#http, source, this.#sizes);
  }

  async #begin(plan: Plan): Promise<Run> {
    const storage = this.#storage;
    const folder = await revisionPath(plan.id, plan.revision);
    if (!isCommit(plan.revision)) await this.#removeOthers(plan, (manifest) => manifest?.complete !== true);
    const manifest = await this.#manifest(plan, folder);
    const place = { storage, folder, manifest, doubted: this.#doubted };
    const run = new Run(this.#http, plan, place, (progress) => this.#tell(progress));
    run.onFailure = (reason, closed) => this.#fail(reason, closed);
    try {
      await run.begin();
      await checkRoom(plan.source, run.missingBytes);
    } catch (thrown) {
      await run.stop(thrown);
      throw thrown;
    }
    if (this.#isAhead) run.ahead();
    return run;
  }

  /** What is known of the folder, or else what is under way. */
  async #manifest(plan: Plan, folder: string): Promise<Manifest> {
    const { id, revision, source, licence } = plan;
    const found = await readManifest(this.#storage, folder);
    const isWhole =
      found?.complete === true && (await wholeRevision(this.#storage, id, revision)) !== undefined;
    if (found !== undefined && (isWhole || !found.complete)) return found;
    const manifest = {
      model: modelText(id),
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

  /** A changed source begins anew, a few times; anything else is the end. */
  #fail(reason: unknown, closed: Promise<unknown>): void {
    this.#run = closed.then(() => this.#beginAgain(reason));
    this.#run.catch((thrown: unknown) => this.#finish(thrown));
  }

  async #beginAgain(reason: unknown): Promise<Run> {
    if (!(reason instanceof Changed)) throw reason;
    this.#beginnings += 1;
    if (this.#isOver || this.#beginnings === BEGINNINGS) {
      throw new SetunError("network", `${this.#where}: changes while it is read: ${reason.message}`);
    }
    if (reason.size !== undefined) this.#sizes.set(reason.size.address, reason.size.bytes);
    return this.#begin(await this.#plan());
  }

  get #where(): string {
    return this.#source.kind === "url" ? this.#source.url : `hf:${this.#source.model}`;
  }

  async #refer({ id, reference, revision }: Plan): Promise<void> {
    if (reference !== undefined) await refer(this.#storage, id, reference, revision);
  }

  async #removeUnfinished({ id, revision }: Plan): Promise<void> {
    const folder = await revisionPath(id, revision);
    const manifest = await readManifest(this.#storage, folder);
    if (manifest?.complete !== true) await removeRevision(this.#storage, folder);
  }

  /** Removes other revisions of an address: nobody has those files any more. */
  async #removeOthers(plan: Plan, isOver: (manifest: Manifest | undefined) => boolean): Promise<void> {
    const keep = await revisionPath(plan.id, plan.revision);
    for (const name of await folders(this.#storage, modelPath(plan.id))) {
      const folder = `${modelPath(plan.id)}/${name}`;
      if (folder === keep) continue;
      const manifest = await readManifest(this.#storage, folder).catch(() => undefined);
      if (isOver(manifest)) await removeRevision(this.#storage, folder);
    }
  }

  #tell(progress: LoadProgress): void {
    this.#last = progress;
    const time = performance.now();
    if (this.onProgress === undefined || time - this.#told < PACE) return;
    this.#told = time;
    this.onProgress(progress);
  }
}

function notUnderWay(): Promise<never> {
  const run = Promise.reject(new Error("no download is under way"));
  run.catch(() => undefined);
  return run;
}
