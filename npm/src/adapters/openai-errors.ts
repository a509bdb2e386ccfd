/** Errors in the shape of the official client, with the codes of setun. */

import { codeOf } from "./core.js";

/** HTTP status of each code as a server would answer it; 500 for others. */
const STATUS: Readonly<Record<string, number>> = {
  "bad-option": 400,
  "context-full": 400,
  "unsupported-model": 400,
  "not-found": 404,
  busy: 429,
  disposed: 503,
};

/** An error with the properties of `OpenAI.APIError`. Its `cause` is the error of setun. */
export class APIError extends Error {
  /** HTTP status as a server would answer it; absent for an aborted request. */
  readonly status: number | undefined;
  /** Code of the error of setun, such as `"context-full"`. */
  readonly code: string | null | undefined;
  /** The parameter at fault. */
  readonly param: string | null | undefined;
  /** `invalid_request_error`, `rate_limit_error` or `server_error`. */
  readonly type: string | undefined;
  /** The body that a server would answer. */
  readonly error: object | undefined;
  /** Always absent: nothing is requested. */
  readonly headers: undefined;
  /** Always absent. */
  readonly requestID: undefined;

  constructor(
    status: number | undefined,
    message: string,
    { code, param = null, cause }: { code?: string; param?: string | null; cause?: unknown } = {},
  ) {
    super(
      status === undefined ? message : `${status} ${message}`,
      cause === undefined ? undefined : { cause },
    );
    this.name = status === undefined ? "APIUserAbortError" : "APIError";
    this.status = status;
    if (status === undefined) return;
    this.type = status === 429 ? "rate_limit_error" : status < 500 ? "invalid_request_error" : "server_error";
    this.code = code ?? null;
    this.param = param;
    this.error = { message, type: this.type, param, code: this.code };
  }
}

/** A parameter that is refused. */
export function refused(param: string, message: string): APIError {
  return new APIError(400, `${param}: ${message}`, { code: "bad-option", param });
}

/** Methods of the official client that are not here, by what to use instead. */
export function absent<Name extends string>(advice: Record<Name, string>) {
  const methods: Record<string, () => Promise<never>> = {};
  for (const [name, instead] of Object.entries<string>(advice))
    methods[name] = () => Promise.reject(refused(name, `not supported: ${instead}`));
  return methods as Record<Name, () => Promise<never>>;
}

/** The error of the client for what the engine throws. */
export function asApiError(thrown: unknown, signal: AbortSignal): unknown {
  if (thrown instanceof APIError) return thrown;
  if (signal.aborted) return abortError(signal.reason);
  const code = codeOf(thrown);
  if (code === undefined) return thrown;
  const [message, param] = named((thrown as Error).message);
  return new APIError(STATUS[code] ?? 500, message, { code, param, cause: thrown });
}

function abortError(reason: unknown): APIError {
  const isLate = reason instanceof Error && reason.name === "TimeoutError";
  const error = new APIError(undefined, isLate ? "Request timed out." : "Request was aborted.", {
    cause: reason,
  });
  if (isLate) error.name = "APIConnectionTimeoutError";
  return error;
}

/** Messages of the engine begin with the option in camel case: "topP: expected …", "option `topP` is …". */
function named(message: string): readonly [string, string | null] {
  const [all, before = "", option] = /^(option `)?([a-z][a-zA-Z]*)(?=`? is |: )/.exec(message) ?? [];
  if (all === undefined || option === undefined) return [message, null];
  const param = option.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return [`${before}${param}${message.slice(all.length)}`, param];
}
