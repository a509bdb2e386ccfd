/** Models whose files are kept: taken from the store, or downloaded into it. */

import type { HubSource } from "../hub-name.js";
import type { Coming, OpenModel } from "../open-model.js";
import type { UrlSource } from "../sources.js";
import { modelOf, modelText } from "../store/names.js";
import type { Storage, WithLock } from "../store/storage.js";
import { findStored, isFresh, type Stored } from "./find-stored.js";
import { credentials, Http } from "./http.js";
import { Pull } from "./pull.js";
import { DEFAULT_SETTINGS, type DownloadSettings } from "./settings.js";
import { StoredModel } from "./stored-model.js";

/** Where models are kept. */
export interface Keeper {
  readonly storage: Storage;
  readonly withLock: WithLock;
  readonly settings?: Partial<DownloadSettings>;
}

/** Opens a model from the store, or while it is downloaded. */
export async function openKept(
  source: UrlSource | HubSource,
  coming: Coming,
  { storage, withLock, settings: own = {} }: Keeper,
  signal: AbortSignal,
): Promise<OpenModel> {
  const { connections } = coming;
  const settings = { ...DEFAULT_SETTINGS, ...own, ...(connections !== undefined && { connections }) };
  const http = new Http(settings, signal, credentials(source, coming));
  const there = await findStored(storage, source);
  if (there !== undefined && (source.kind === "hub" || (await isUnchanged(http, source, there)))) {
    return new StoredModel(storage, withLock, there);
  }
  const id = await modelOf(source);
  return new Promise((resolve, reject) => {
    const held = withLock(modelText(id), signal, async () => {
      // Another tab may have brought it while this one waited.
      const brought = source.kind === "hub" ? await findStored(storage, source) : undefined;
      if (brought !== undefined) return resolve(new StoredModel(storage, withLock, brought));
      const pull = new Pull(source, storage, http);
      const found = await pull.start();
      resolve(found === undefined ? pull : new StoredModel(storage, withLock, found));
      // The lock is let go once all is named, or the download has ended otherwise.
      if (found === undefined) await pull.ended;
    });
    held.catch(reject);
  });
}

/** Asks once, and not for long: what is there serves without a network too. */
async function isUnchanged(http: Http, source: UrlSource, there: Stored): Promise<boolean> {
  const { settings, signal } = http;
  return isFresh(new Http({ ...settings, silence: settings.freshness }, signal), source, there);
}
