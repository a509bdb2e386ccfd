/** Requests: with the token where it may go, and an end to silence. */

import { SetunError } from "../errors.js";
import { DEFAULT_ENDPOINT, type HubSource } from "../hub-name.js";
import type { UrlSource } from "../sources.js";
import { networkError, RetryableError } from "./errors.js";
import { DownloadResponse } from "./response.js";
import { retryAfter, withRetries } from "./retry.js";
import type { DownloadSettings } from "./settings.js";

/** Statuses after which another attempt may go well. */
const RETRYABLE_STATUSES = [408, 425, 429, 500, 502, 503, 504];

/** Attempts at a server that has never answered: an address that is blocked or wrong is told of soon. */
const MAX_UNREACHED_ATTEMPTS = 2;

/** What is asked for. */
export interface RangeRequest {
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
export function credentials(source: UrlSource | HubSource, fetchOptions: Credentials): Credentials {
  if (source.kind === "hub") return source;
  return { endpoint: fetchOptions.endpoint ?? DEFAULT_ENDPOINT, token: fetchOptions.token };
}

/** Asks servers. */
export class HttpClient {
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
  async send(address: string, request: RangeRequest, signal = this.signal): Promise<DownloadResponse> {
    const controller = new AbortController();
    const { idleTimeout } = this.settings;
    const response = await DownloadResponse.from(address, this.#request(address, request), {
      controller,
      signal,
      idleTimeout,
    }).catch((thrown: unknown) => {
      signal.throwIfAborted();
      if (!(thrown instanceof RetryableError)) throw thrown;
      throw this.#hasAnswered
        ? thrown
        : new RetryableError(thrown.error, { maxAttempts: MAX_UNREACHED_ATTEMPTS });
    });
    this.#hasAnswered = true;
    return response;
  }

  /** A small file, whole; `undefined` if there is none, or it is not small. */
  async fetchSmall(address: string, maxBytes: number): Promise<SmallFile | undefined> {
    return withRetries(this.settings, this.signal, async () => {
      const response = await this.send(address, {});
      if (response.isMissing) return response.cancel();
      await expectStatus(response, [200]);
      const bytes = await response.readAll(maxBytes);
      return bytes && { bytes, identity: response.identity };
    });
  }

  /** Headers that no other site needs permission for, except for the token. */
  #request(address: string, { head = false, start, end, ifRange }: RangeRequest): RequestInit {
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

/** @throws {SetunError} or {@link RetryableError}, unless the answer has one of these statuses. */
export async function expectStatus(response: DownloadResponse, accepted: readonly number[]): Promise<void> {
  const { status, address } = response;
  if (accepted.includes(status)) return;
  await response.cancel();
  if (status === 404 || status === 410) throw new SetunError("not-found", `${address}: no such file`);
  const hint =
    status === 401 || status === 403
      ? "; it may need the option `token` of somebody who has accepted the model's terms"
      : "";
  const error = networkError(address, `the server answered ${status}${hint}`);
  if (!RETRYABLE_STATUSES.includes(status)) throw error;
  throw new RetryableError(error, { wait: retryAfter(response.header("retry-after")) });
}

/** What a server tells of a file. */
export interface FileProbe {
  /** Its size, where the page may see it. */
  readonly bytes: number | undefined;
  /** What the file is known by. */
  readonly identity: string | undefined;
  /** What its parts can be asked for on condition of. */
  readonly condition: string | undefined;
}

/** Asks for what comes before a file's bytes; `undefined` where there is no file. */
export function probeFile(http: HttpClient, address: string): Promise<FileProbe | undefined> {
  return withRetries(http.settings, http.signal, () => probeOnce(http, address));
}

/** The same, without a second attempt. */
export async function probeOnce(http: HttpClient, address: string): Promise<FileProbe | undefined> {
  const response = await http.send(address, { head: true });
  const { isMissing, identity, condition, length } = response;
  await response.cancel();
  if (isMissing) return undefined;
  if (response.status === 200 && length !== undefined) return { bytes: length, identity, condition };
  // Addresses that are signed are so for one method, and some servers know no other.
  if (response.status !== 200 && ![400, 401, 403, 405, 501].includes(response.status)) {
    await expectStatus(response, [200]);
  }
  const part = await http.send(address, { start: 0, end: 1 }).catch((thrown: unknown) => {
    // Browsers refuse parts that are compressed, which some servers send nevertheless.
    if (!(response.isCompressed && thrown instanceof RetryableError)) throw thrown;
  });
  if (part === undefined) return { bytes: undefined, identity, condition };
  const found = ofPart(part);
  await part.cancel();
  if (part.isMissing) return undefined;
  if (found === undefined) await expectStatus(part, [200]);
  return found ?? { bytes: part.length, identity: part.identity, condition: part.condition };
}

function ofPart(response: DownloadResponse): FileProbe | undefined {
  const { status, range, identity, condition } = response;
  if (status === 206) return { bytes: range?.total, identity, condition };
  // A file without a byte has no first one.
  return status === 416 && range?.total === 0 ? { bytes: 0, identity, condition } : undefined;
}
