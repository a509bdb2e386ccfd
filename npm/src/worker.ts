/** Worker entry: a host for the page, or a thread of a host. */

import { openModel } from "./download/open-stored.js";
import { asSetunError, toWire } from "./errors.js";
import { grammarBuild } from "./grammar-build.js";
import { Host } from "./host.js";
import { onnxBuild } from "./onnx-build.js";
import type { FromHost, ToHost } from "./protocol.js";
import type { WasmModule } from "./wasm.js";
import { compileFrom } from "./wasm-instance.js";
import { type HoldLock, holdLock } from "./worker-end.js";

/** The used part of a worker's global scope. TypeScript's own types conflict with the page's. */
interface WorkerScope {
  postMessage(message: unknown): void;
  addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
}

/** Functions of a threaded build. */
export interface ThreadedBuild {
  /** Has the page start `count` thread workers; each gets a {@link ThreadMessage} first. */
  startThreads(count: number): Promise<void>;
  /** Makes this worker a thread. */
  joinPool(message: ThreadMessage): Promise<void>;
}

/** First message to a thread worker. */
export interface ThreadMessage {
  readonly type: "setun-thread";
  /** Has the module and the memory, which the generated code reads. */
  readonly source: MessagePort;
}

/** Serves one build. Called at the top of a worker file, before any message arrives. */
export function serve(glue: WasmModule, code: URL, threaded?: ThreadedBuild): void {
  const scope = globalThis as unknown as WorkerScope;
  const send = (message: FromHost) => post(scope, message);
  const startThreads = threaded && ((count: number) => threaded.startThreads(count));
  const build = { glue, compile: () => compileFrom(code), ...(startThreads && { startThreads }) };
  const host = new Host({ build, openModel, grammars: grammarBuild, onnx: onnxBuild }, send);
  scope.addEventListener("message", ({ data }: MessageEvent<ToHost | ThreadMessage | HoldLock>) => {
    if (data.type === "setun-thread") void threaded?.joinPool(data);
    else if (data.type === "setun-hold") holdLock(data, (held) => scope.postMessage(held));
    else void host.receive(data);
  });
}

/** A message that cannot be cloned would be lost, and its receiver would wait forever. */
function post(scope: WorkerScope, message: FromHost): void {
  try {
    scope.postMessage(message);
  } catch (thrown) {
    const error = { ...toWire(asSetunError(thrown)), cause: undefined };
    scope.postMessage({ type: "failed", id: message.id, error } satisfies FromHost);
  }
}
