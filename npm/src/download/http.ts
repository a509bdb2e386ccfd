/** HTTP requests with authorization, timeouts and range headers. */

import { DEFAULT_ENDPOINT, type HubSource } from "../hub-name.js";
import type { UrlSource } from "../sources.js";
import { networkError, noFileError, RetryableError } from "./errors.js";
import { DownloadResponse } from "./response.js";
import { retryAfter, withRetries } from "./retry.js";
import type { DownloadSettings } from "./settings.js";

/** Status codes after which another attempt may succeed. */
const RETRYABLE_STATUSES = [408, 425, 429, 500, 502, 503, 504];

/** Maximum number of attempts at a server that has never answered: the URL may be blocked or wrong. */
const MAX_UNREACHED_ATTEMPTS = 2;

/** A request of a file or of a range. */
export interface RangeRequest {
  /** Whether to request the headers only. */
  readonly head?: boolean;
  /** First byte of the range. */
  readonly start?: number;
  /** End of the range; without it all bytes that follow. */
  readonly end?: number | undefined;
  /** Entity tag for `If-Range`. */
  readonly ifRange?: string | undefined;
}

/** Access token, and the endpoint that receives it. */
export interface Credentials {
  readonly endpoint?: string | undefined;
  readonly token?: string | undefined;
}

/** Credentials of a source. A URL on the endpoint's origin gets the token too. */
export function credentials(source: UrlSource | HubSource, fetchOptions: Credentials): Credentials {
  if (source.kind === "hub") return source;
  return { endpoint: fetchOptions.endpoint ?? DEFAULT_ENDPOINT, token: fetchOptions.token };
}

/** An HTTP client for one download. */
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

  /** Sends one request. `signal` aborts this request only. */
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

  /** A whole small file; `undefined` if it does not exist or has more than `maxBytes`. */
  async fetchSmall(address: string, maxBytes: number): Promise<SmallFile | undefined> {
    return withRetries(this.settings, this.signal, async () => {
      const response = await this.send(address, {});
      if (response.isMissing) return response.cancel();
      await expectStatus(response, [200]);
      const bytes = await response.readAll(maxBytes);
      return bytes && { bytes, identity: response.identity };
    });
  }

  /** Headers that need no CORS preflight, except for the token. */
  #request(address: string, { head = false, start, end, ifRange }: RangeRequest): RequestInit {
    const headers: Record<string, string> = {};
    if (start !== undefined) headers.range = `bytes=${start}-${end === undefined ? "" : end - 1}`;
    if (ifRange !== undefined && new URL(address).origin === this.settings.pageOrigin) {
      headers["if-range"] = ifRange;
    }
    Object.assign(headers, this.authorization(address));
    // The store replaces the browser's HTTP cache.
    return { method: head ? "HEAD" : "GET", headers, cache: "no-store" };
  }

  /** The authorization header, for the endpoint's own origin only. */
  authorization(address: string): Record<string, string> {
    const isTrusted = this.#token !== undefined && new URL(address).origin === this.#trusted;
    return isTrusted ? { authorization: `Bearer ${this.#token}` } : {};
  }
}

/** A file in memory with its entity tag. */
export interface SmallFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly identity: string | undefined;
}

/** @throws {SetunError} or {@link RetryableError}, unless the response has an accepted status. */
export async function expectStatus(response: DownloadResponse, accepted: readonly number[]): Promise<void> {
  const { status, address } = response;
  if (accepted.includes(status)) return;
  await response.cancel();
  if (status === 404 || status === 410) throw noFileError(address);
  const hint =
    status === 401 || status === 403
      ? "; the model may require the option `token` of an account that accepted its terms"
      : "";
  const error = networkError(address, `the server answered ${status}${hint}`);
  if (!RETRYABLE_STATUSES.includes(status)) throw error;
  throw new RetryableError(error, { wait: retryAfter(response.header("retry-after")) });
}

/** Properties of a remote file. */
export interface FileProbe {
  /** Size, if the page may read it. */
  readonly bytes: number | undefined;
  /** Entity tag or modification date. */
  readonly identity: string | undefined;
  /** Strong entity tag for `If-Range`. */
  readonly condition: string | undefined;
}

/** Requests the headers of a file; `undefined` if it does not exist. */
export function probeFile(http: HttpClient, address: string): Promise<FileProbe | undefined> {
  return withRetries(http.settings, http.signal, () => probeOnce(http, address));
}

/** {@link probeFile} without retries. */
export async function probeOnce(http: HttpClient, address: string): Promise<FileProbe | undefined> {
  const response = await http.send(address, { head: true });
  const { isMissing, identity, condition, length } = response;
  await response.cancel();
  if (isMissing) return undefined;
  if (response.status === 200 && length !== undefined) return { bytes: length, identity, condition };
  // Signed URLs are valid for one method, and some servers support GET only.
  if (response.status !== 200 && ![400, 401, 403, 405, 501].includes(response.status)) {
    await expectStatus(response, [200]);
  }
  const part = await http.send(address, { start: 0, end: 1 }).catch((thrown: unknown) => {
    // Browsers refuse compressed partial responses, which some servers send.
    if (!(response.isCompressed && thrown instanceof RetryableError)) throw thrown;
  });
  if (part === undefined) return { bytes: undefined, identity, condition };
  const found = ofPart(part);
  await part.cancel();
  if (part.isMissing) return undefined;
  if (found === undefined) await expectStatus(part, [200]);
  const probe = found ?? { bytes: part.length, identity: part.identity, condition: part.condition };
  return probe.bytes === undefined ? { ...probe, bytes: await lengthOfAll(http, address) } : probe;
}

/**
 * The size by a request of all bytes, which ends after its headers. Other origins hide `Content-Range`, not
 * `Content-Length`, and a range is of the file, never of a compressed transfer.
 */
export async function lengthOfAll(http: HttpClient, address: string): Promise<number | undefined> {
  const all = await http.send(address, { start: 0 });
  const { status, isMissing, length } = all;
  await all.cancel();
  return (status === 206 || status === 200) && !isMissing ? length : undefined;
}

function ofPart(response: DownloadResponse): FileProbe | undefined {
  const { status, range, identity, condition } = response;
  if (status === 206) return { bytes: range?.total, identity, condition };
  // An empty file has no first byte.
  return status === 416 && range?.total === 0 ? { bytes: 0, identity, condition } : undefined;
}
