/** Settings of downloads. Tests use shorter times. */

export interface DownloadSettings {
  /** Concurrent requests. */
  readonly connections: number;
  /** Bytes of a chunk. */
  readonly chunkBytes: number;
  /** Maximum number of attempts without progress. */
  readonly attempts: number;
  /** First retry delay in milliseconds; each further one is twice as long. */
  readonly backoff: number;
  /** Maximum retry delay in milliseconds. */
  readonly maxBackoff: number;
  /** Maximum delay that a server may demand, in milliseconds. */
  readonly maxRetryAfter: number;
  /** Milliseconds without a byte until a connection counts as broken. */
  readonly idleTimeout: number;
  /** Timeout in milliseconds of the check whether a stored model is current. */
  readonly revalidationTimeout: number;
  /** Origin of the page, where conditional requests need no CORS preflight. */
  readonly pageOrigin: string | undefined;
}

export const DEFAULT_SETTINGS: DownloadSettings = {
  connections: 4,
  chunkBytes: 8 << 20,
  attempts: 6,
  backoff: 500,
  maxBackoff: 30_000,
  maxRetryAfter: 300_000,
  idleTimeout: 30_000,
  revalidationTimeout: 5000,
  pageOrigin: globalThis.location?.origin,
};
