/** How downloads behave; tests choose shorter waits. */

export interface DownloadSettings {
  /** Requests at once. */
  readonly connections: number;
  /** Bytes of a chunk. */
  readonly chunkBytes: number;
  /** Attempts without a byte between them. */
  readonly attempts: number;
  /** Milliseconds of the first wait; each one after it is twice as long. */
  readonly backoff: number;
  /** The longest wait of its own, in milliseconds. */
  readonly maxBackoff: number;
  /** The longest wait that a server may ask for, in milliseconds. */
  readonly maxRetryAfter: number;
  /** Milliseconds without a byte after which a connection counts as broken. */
  readonly idleTimeout: number;
  /** Milliseconds to ask whether what is stored is still what the server has. */
  readonly revalidationTimeout: number;
  /** Scheme, host and port of the page: there, conditions need no permission. */
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
