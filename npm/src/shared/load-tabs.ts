/** `load` with the options `shared` and `resume`. */

import { engineLimits } from "../check-options.js";
import { type Connect, Connection } from "../connection.js";
import { SetunError } from "../errors.js";
import type { Open, Opened } from "../load.js";
import { Model, type ModelHost } from "../model.js";
import type { LoadOptions } from "../options.js";
import type { FromHost, ModelRequest } from "../protocol.js";
import { isDownload } from "../sources.js";
import { KeptGenerations, type TextStorage } from "./kept-generations.js";
import type { OpenForAll } from "./leader.js";
import { Ledger } from "./ledger.js";
import { watchPage } from "./page-lifecycle.js";
import type { Place } from "./ports.js";
import { Tab } from "./tab.js";

/** A model to load, and how. */
export interface TabsRequest {
  readonly open: Open;
  readonly model: ModelRequest;
  readonly draft: ModelRequest | undefined;
  readonly inWorker: boolean;
  readonly options: LoadOptions;
  /** Version of this package: tabs of different ones do not share. */
  readonly version: string;
  readonly host: ModelHost;
}

/** Loads a model for all tabs, or one whose generations go on after a reload. */
export async function loadTabs(request: TabsRequest): Promise<Model> {
  const { open, options, host } = request;
  const place = options.shared ? placeOf(request) : undefined;
  const storage = options.resume ? storageOfTab() : undefined;
  const ledger = new Ledger();
  const name = modelName(request);
  const kept = storage && new KeptGenerations(storage, name, ledger);
  try {
    const opened = await (place
      ? joinTabs(place, name, ledger, open, options)
      : alone(ledger, open, options));
    const offer = kept?.offer.bind(kept);
    return new Model(opened.connection, opened.info, opened.report, host, offer);
  } catch (thrown) {
    kept?.end();
    throw thrown;
  }
}

/** Loads the model in this tab, with a ledger of its requests. */
function alone(ledger: Ledger, open: Open, options: LoadOptions): Promise<Opened> {
  const noted =
    (connect: Connect): Connect =>
    (receive, fail) => {
      const link = connect((message) => {
        const { news, reply } = ledger.received(message);
        if (reply !== undefined) link.send(reply);
        if (news !== undefined) receive(news);
      }, fail);
      return {
        send: (message) => link.send(ledger.sent(message)),
        close: () => {
          ledger.end();
          link.close();
        },
      };
    };
  return open(options, noted);
}

/** Uses the model of the tab that leads, or leads. */
export function joinTabs(
  place: Place,
  name: string,
  ledger: Ledger,
  open: Open,
  options: LoadOptions,
): Promise<Opened> {
  const { onProgress, signal } = options;
  return new Promise((resolve, reject) => {
    let opened: Opened | undefined;
    let heard: { receive(message: FromHost): void; fail(error: Error): void } | undefined;
    const openForAll = openerOf(open, () => optionsNow(options, opened));
    const tab = new Tab(place, name, ledger, openForAll, {
      opened: ({ info, report }) => {
        if (opened !== undefined) return;
        stopListening();
        const connection = new Connection((receive, fail) => {
          heard = { receive, fail };
          return { send: (message) => tab.send(message), close: end };
        });
        opened = { connection, info, report };
        resolve(opened);
      },
      loads: (progress) => {
        if (opened === undefined) onProgress?.(progress);
      },
      received: (message) => heard?.receive(message),
      failed: (error) => (heard === undefined ? refuse(error) : heard.fail(error as Error)),
    });
    const unwatch = watchPage({ freeze: () => tab.freeze(), resume: () => tab.resume() });
    const end = () => {
      stopListening();
      ledger.end();
      void tab.leave().then(unwatch);
    };
    const refuse = (reason: unknown) => {
      end();
      reject(reason);
    };
    const abort = () => refuse(signal?.reason);
    const stopListening = () => signal?.removeEventListener("abort", abort);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Loads for all tabs, with the options of the moment. */
function openerOf(open: Open, optionsNow: () => LoadOptions): OpenForAll {
  return (signal, onProgress, onFailure) => {
    const watched =
      (connect: Connect): Connect =>
      (receive, fail) =>
        connect(receive, (error) => {
          fail(error);
          onFailure(error);
        });
    return open({ ...optionsNow(), signal, onProgress }, watched);
  };
}

/** A later load takes the kind of device of the first, so that the bits stay what they are. */
function optionsNow(options: LoadOptions, opened: Opened | undefined): LoadOptions {
  const { backend = "auto" } = options;
  if (opened === undefined || backend !== "auto") return options;
  return { ...options, backend: opened.info.backend === "webgpu" ? "webgpu" : "cpu" };
}

/** What tabs have that load the same: the source and all that a model's texts and limits depend on. */
function modelName({ model, draft, options, version }: TabsRequest): string {
  const { backend = "auto", threads, endpoint } = options;
  const parts = [model.source, draft?.source, backend, threads, endpoint, engineLimits(options)];
  return `setun:${version}:${JSON.stringify(parts)}`;
}

/** @throws {SetunError} `bad-option` where tabs cannot share the model. */
function placeOf({ model, draft, inWorker }: TabsRequest): Place {
  const refuse = (why: string) => new SetunError("bad-option", `shared: ${why}`);
  if (!inWorker) throw refuse("the model of all tabs runs in a worker; leave out worker: false");
  if (!isDownload(model.source) || (draft && !isDownload(draft.source))) {
    throw refuse("expected a URL or a Hub name as source, from which any tab can load");
  }
  const locks: LockManager | undefined = globalThis.navigator?.locks;
  if (locks === undefined || typeof BroadcastChannel !== "function") {
    throw refuse("there are no Web Locks here; serve the page over HTTPS or from localhost");
  }
  return {
    openChannel: (name) => new BroadcastChannel(name),
    withLock: (name, signal, work) => locks.request(name, { signal }, work),
  };
}

/** @throws {SetunError} `bad-option` where the tab has no storage. */
function storageOfTab(): TextStorage {
  try {
    if (globalThis.sessionStorage) return globalThis.sessionStorage;
  } catch {
    // Sandboxed frames refuse it.
  }
  throw new SetunError("bad-option", "resume: there is no session storage here, as there is in pages");
}
