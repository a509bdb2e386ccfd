/** Models of the store: opened from it, or downloaded into it. */

import { type CrossOriginFiles, filesOfPage } from "../cross-origin-files.js";
import { hostName, remedy } from "../environment.js";
import type { HubSource } from "../hub-name.js";
import type { OnProgress } from "../load-progress.js";
import { type FetchOptions, type OpenModel, type OpenSource, openStreamed } from "../open-model.js";
import { isDownload, type UrlSource } from "../sources.js";
import { openStorage, withLock } from "../store/browser-storage.js";
import { type Damage, findWrongBytes, findWrongSizes, removeDamaged } from "../store/damage.js";
import { modelIdOf, modelIdText } from "../store/names.js";
import type { Storage, WithLock } from "../store/storage.js";
import { NotStorableError, repairError } from "./errors.js";
import { credentials, HttpClient } from "./http.js";
import { isUpToDate, lookupDamaged, lookupStored, type StoredMatch } from "./lookup.js";
import { DEFAULT_SETTINGS, type DownloadSettings } from "./settings.js";
import { reportWait } from "./shared-progress.js";
import { forgetShared, sharedFilesOf } from "./shared-weights.js";
import { StoreDownload } from "./store-download.js";
import { StoredModel } from "./stored-model.js";

/** The store and its settings. */
export interface StoreContext {
  readonly storage: Storage;
  readonly withLock: WithLock;
  readonly settings?: Partial<DownloadSettings>;
  /** Files that all sites share, where they are used. */
  readonly crossOrigin?: CrossOriginFiles;
}

/** Opens a model from the store, or while it is downloaded. `known` are damages that were found before. */
export async function openStored(
  source: UrlSource | HubSource,
  fetchOptions: FetchOptions,
  { storage, withLock, settings: overrides = {}, crossOrigin }: StoreContext,
  signal: AbortSignal,
  onProgress: OnProgress = () => undefined,
  known: readonly Damage[] = [],
): Promise<OpenModel> {
  const { connections, verify = false } = fetchOptions;
  const settings = { ...DEFAULT_SETTINGS, ...overrides, ...(connections !== undefined && { connections }) };
  const http = new HttpClient(settings, signal, credentials(source, fetchOptions));
  const stored = await lookupStored(storage, source);
  const model = modelIdText(await modelIdOf(source));
  let damages = known;
  if (stored !== undefined && (source.kind === "hub" || (await isUpToDateOnServer(http, source, stored)))) {
    const shared = await sharedFilesOf(stored.model, crossOrigin, signal);
    const found = new StoredModel(storage, withLock, { ...stored, ...(shared && { shared }) });
    found.onProgress = onProgress;
    damages = verify ? await found.discard(signal) : [];
    if (shared !== undefined && damages.length === 0) return found;
    signal.throwIfAborted();
    if (shared === undefined) {
      const gone = await withLock(model, signal, () => forgetShared(storage, stored.model));
      damages = [...damages, ...gone];
    }
  }
  return new Promise((resolve, reject) => {
    const endWait = reportWait(model, source.name, onProgress);
    const locked = withLock(model, signal, async () => {
      endWait();
      // Another tab may have completed the download meanwhile.
      const completed = source.kind === "hub" ? await lookupStored(storage, source) : undefined;
      const shared = completed && (await sharedFilesOf(completed.model, crossOrigin, signal));
      if (completed && shared) return resolve(new StoredModel(storage, withLock, { ...completed, shared }));
      const isNew = ({ name }: Damage) => !damages.some((one) => one.name === name);
      damages = [...damages, ...(await removeDamages(storage, source, verify, signal)).filter(isNew)];
      const context = { storage, withLock, crossOrigin };
      const pull = new StoreDownload(source, context, http, model, damages);
      const found = await pull.start();
      resolve(found === undefined ? pull : new StoredModel(storage, withLock, found));
      // The lock is held until the download has ended.
      if (found === undefined) await pull.ended;
    });
    locked.catch((thrown) => reject(repairError(thrown, damages))).finally(endWait);
  });
}

/** Removes files of the stored copy that have another size, with `verify` also those with other bytes. */
async function removeDamages(
  storage: Storage,
  source: UrlSource | HubSource,
  verify: boolean,
  signal: AbortSignal,
): Promise<readonly Damage[]> {
  const model = await lookupDamaged(storage, source);
  if (model === undefined) return [];
  const damages = await (verify ? findWrongBytes(storage, model, signal) : findWrongSizes(storage, model));
  await removeDamaged(storage, model.folder, damages);
  return damages;
}

/** One request with a short timeout, since a stored model works offline. */
async function isUpToDateOnServer(
  http: HttpClient,
  source: UrlSource,
  stored: StoredMatch,
): Promise<boolean> {
  const { settings, signal } = http;
  return isUpToDate(
    new HttpClient({ ...settings, idleTimeout: settings.revalidationTimeout }, signal),
    source,
    stored,
  );
}

export const openModel: OpenSource = async (source, fetchOptions, signal, onProgress, damages) => {
  if (!isDownload(source)) return openStreamed(source, fetchOptions, signal, onProgress);
  if (!fetchOptions.store) return openStreamed(source, fetchOptions, signal, onProgress);
  const storage = await openStorage();
  try {
    if (storage === undefined)
      throw new NotStorableError(`${hostName()} gives no storage; ${remedy("storage")}`);
    const context = {
      storage,
      withLock,
      ...(fetchOptions.crossOriginStorage && { crossOrigin: filesOfPage }),
    };
    return await openStored(source, fetchOptions, context, signal, onProgress, damages);
  } catch (thrown) {
    if (!(thrown instanceof NotStorableError)) throw thrown;
    console.warn(`setun: the model is not kept: ${thrown.message}`);
    return openStreamed(source, fetchOptions, signal, onProgress);
  }
};
