/** Requests: with the token where it may go, and an end to silence. */

import { SetunError } from "../errors.js";
import { DEFAULT_ENDPOINT, type HubSource } from "../hub-name.js";
import type { UrlSource } from "../sources.js";
import { Answer } from "./answer.js";
import { Later, networkError } from "./faults.js";
import { retried, retryAfter } from "./retry.js";
import type { DownloadSettings } from "./settings.js";

/** Statuses after which another attempt may go well. */
const PASSING = [408, 425, 429, 500, 502, 503, 504];

/** Attempts at a server that has never answered: an address that is blocked or wrong is told of soon. */
const UNANSWERED = 2;

/** What is asked for. */
export interface Ask {
  /** Only what comes before the bytes. */
  readonly head?: boolean;
  /** First byte that is wanted. */
  readonly start?: number;
  /** The byte after the last one; without it all that follow. */
  readonly end?: number | undefined;
  /** Only of a file that the server knows by this. */
  readonly ifRange?: string | undefined;
}

/** Who may hear the token. */
export interface Credentials {
  readonly endpoint?: string | undefined;
  readonly token?: string | undefined;
}

/** Of a hub those of its name; an address that is of the hub is told them too. */
export function credentials(source: UrlSource | HubSource, coming: Credentials): Credentials {
  if (source.kind === "hub") return source;
  return { endpoint: coming.endpoint ?? DEFAULT_ENDPOINT, token: coming.token };
}

/** Asks servers. */
export class Http {
  readonly settings: DownloadSettings;
  readonly signal: AbortSignal;
  readonly #trusted: string | undefined;
  readonly #token: string | undefined;
  #hasAnswered = false;

  constructor(settings: DownloadSettings, signal: AbortSignal, { endpoint, token }: Credentials = {}) {
    this.settings = settings;
    this.signal = signal;
    this.#trusted = endpoint === undefined ? undefined : new URL(endpoint).origin;
    this.#token = token;
  }

  /** Asks once. `signal` ends this request alone. */
  async send(address: string, ask: Ask, signal = this.signal): Promise<Answer> {
    const controller = new AbortController();
    const { silence } = this.settings;
    const answer = await Answer.from(address, this.#request(address, ask), {
      controller,
      signal,
      silence,
    }).catch((thrown: unknown) => {
      signal.throwIfAborted();
      if (!(thrown instanceof Later)) throw thrown;
      throw this.#hasAnswered ? thrown : new Later(thrown.error, { most: UNANSWERED });
    });
    this.#hasAnswered = true;
    return answer;
  }

  /** A small file, whole; `undefined` if there is none, or it is not small. */
  async small(address: string, most: number): Promise<SmallFile | undefined> {
    return retried(this.settings, this.signal, async () => {
      const answer = await this.send(address, {});
      if (answer.isMissing) return answer.cancel();
      await expectStatus(answer, [200]);
      const bytes = await answer.all(most);
      return bytes && { bytes, identity: answer.identity };
    });
  }

  /** Headers that no other site needs permission for, except for the token. */
  #request(address: string, { head = false, start, end, ifRange }: Ask): RequestInit {
    const headers: Record<string, string> = {};
    if (start !== undefined) headers.range = `bytes=${start}-${end === undefined ? "" : end - 1}`;
    if (ifRange !== undefined && new URL(address).origin === this.settings.pageOrigin) {
      headers["if-range"] = ifRange;
    }
    Object.assign(headers, this.authorization(address));
    // What is kept in the store is not kept in the browser's cache as well.
    return { method: head ? "HEAD" : "GET", headers, cache: "no-store" };
  }

  /** The header that proves who asks, for the endpoint's own scheme, host and port. */
  authorization(address: string): Record<string, string> {
    const isTrusted = this.#token !== undefined && new URL(address).origin === this.#trusted;
    return isTrusted ? { authorization: `Bearer ${this.#token}` } : {};
  }
}

/** A file in memory, and what its server knows it by. */
export interface SmallFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly identity: string | undefined;
}

/** @throws {SetunError} or {@link Later}, unless the answer has one of these statuses. */
export async function expectStatus(answer: Answer, good: readonly number[]): Promise<void> {
  const { status, address } = answer;
  if (good.includes(status)) return;
  await answer.cancel();
  if (status === 404 || status === 410) throw new SetunError("not-found", `${address}: no such file`);
  const hint =
    status === 401 || status === 403
      ? "; it may need the option `token` of somebody who has accepted the model's terms"
      : "";
  const error = networkError(address, `the server answered ${status}${hint}`);
  if (!PASSING.includes(status)) throw error;
  throw new Later(error, { wait: retryAfter(answer.header("retry-after")) });
}
