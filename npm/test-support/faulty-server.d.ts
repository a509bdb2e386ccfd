import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";

/** How a server behaves in all of its answers. */
export interface Manners {
  /** Whether it gives parts; by default it does. */
  ranges?: boolean;
  /** Whether it has etags; by default it has. */
  etags?: boolean;
  /** Whether nothing says what a part is of, as where another site's headers are hidden. */
  bare?: boolean;
  /** Whether it compresses what is requested as a whole, and tells the length of that. */
  gzip?: boolean | "told";
  /** The status of its answers to HEAD. */
  head?: number;
  /** Whether it answers unknown addresses with a page. */
  pages?: boolean;
  /** Whether other sites may ask, see etags and ranges, and send headers (a list, as in the answer to OPTIONS). */
  cors?: { exposes: boolean; allows?: string };
}

/** How it misbehaves in one answer. */
export interface Act {
  status?: number;
  headers?: OutgoingHttpHeaders;
  redirect?: string;
  /** Drops the connection after this many bytes of the body. */
  breakAfter?: number;
  /** Sends this many bytes, and then nothing. */
  stall?: number;
  /** Announces this many bytes more than it sends. */
  saysMore?: number;
  /** Sends this many bytes more, or fewer, than it should. */
  more?: number;
  fewer?: number;
  /** Does not report the length. */
  chunked?: boolean;
  ignoreRange?: boolean;
  ignoreCondition?: boolean;
  /** One byte of the body is another. */
  wrong?: boolean;
  gzip?: boolean;
  /** Tells the length of a compressed body. */
  lies?: boolean;
  /** What it waits for before the answer. */
  after?: Promise<unknown>;
  /** The file is another one from this answer on. */
  become?: { bytes: Uint8Array; etag?: string };
}

export interface Asked {
  path: string;
  method: string;
  /** First byte that was requested; `undefined` for the whole. */
  start: number | undefined;
  headers: IncomingHttpHeaders;
  /** Bytes of the body that were sent. */
  sent?: number;
}

export declare class FaultyServer {
  manners: Manners;
  requests: Asked[];
  sent: number;
  readonly url: string;
  at(path: string): string;
  put(path: string, content: Uint8Array | string, etag?: string): this;
  remove(path: string): void;
  rule(path: string, times: number, act: Act): void;
  ruleAt(path: string, start: number, times: number, act: Act): void;
  ruleOfAll(path: string, times: number, act: Act): void;
  clearRules(): void;
  cutAt(path: string, bytes: number[]): void;
  takeRequests(): Asked[];
  starts(path: string): (number | undefined)[];
  putHub(model: string, files: Record<string, Uint8Array | string>): void;
  hubPath(model: string, file: string): string;
  listPath(model: string, revision: string): string;
  /** Answers a request, of another server's pages too. */
  answer(request: IncomingMessage, response: ServerResponse): Promise<unknown>;
  stop(): Promise<unknown>;
}

export declare const COMMIT: string;
export declare function startFaultyServer(manners?: Manners): Promise<FaultyServer>;
