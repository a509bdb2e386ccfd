/** Requests to the server that the page comes from. */

/** Where the key is kept until the tab is closed. */
const KEY = "setun-api-key";

/** An error that the server answered with. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(message: string, code: string, status: number) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** The key of this tab. */
export const apiKey = {
  get value(): string {
    return sessionStorage.getItem(KEY) ?? "";
  },
  set value(key: string) {
    if (key === "") sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, key);
  },
};

/** Sends a request; what is no success is an {@link ApiError}. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey.value !== "") headers.set("authorization", `Bearer ${apiKey.value}`);
  const response = await fetch(path, { ...init, headers });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: {} }));
  const message = error.message ?? `the server answered with status ${response.status}`;
  throw new ApiError(message, error.code ?? "unknown", response.status);
}

/** Sends fields as JSON. A seed may have more bits than a number. */
export function post(path: string, fields: Record<string, unknown>, signal?: AbortSignal): Promise<Response> {
  const { seed, ...others } = fields;
  const body = JSON.stringify(others);
  const withSeed = seed === undefined ? body : `${body.slice(0, -1)},"seed":${seed}}`;
  const headers = { "content-type": "application/json" };
  return send(path, { method: "POST", headers, body: withSeed, ...(signal && { signal }) });
}

/** The JSON of the events of an answer, up to its end. An event with an error is thrown. */
export async function* events(response: Response): AsyncGenerator<unknown> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    const lines = (text + piece.value).split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const event = JSON.parse(line.slice("data: ".length));
      if (event.error) throw new ApiError(event.error.message, event.error.code, response.status);
      yield event;
    }
  }
}
