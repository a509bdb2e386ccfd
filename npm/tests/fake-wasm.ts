/** A fake WebAssembly module for tests of the protocol. Browser and packaging tests use the real one. */

import type { BeamOptions } from "../src/beam-options.js";
import { SetunError } from "../src/errors.js";
import type { ModelFiles } from "../src/model-files.js";
import { type OpenSource, openStreamed, StreamedModel } from "../src/open-model.js";
import type {
  BeamText,
  DeviceReport,
  HeadType,
  Score,
  TextDelta,
  WasmBeamSearch,
  WasmDeviceOptions,
  WasmEvent,
  WasmFiles,
  WasmGenerateOptions,
  WasmGeneration,
  WasmLoader,
  WasmModel,
  WasmModule,
  WasmPrompt,
} from "../src/wasm.js";

/** Calls of the fake module. */
export interface Log {
  turns: number;
  freed: string[];
  /** Number of opened and closed file sources. */
  opened: number;
  closed: number;
  /** Options of the engine. */
  place: WasmDeviceOptions | undefined;
  asked: { readonly prompt: WasmPrompt; readonly count: number }[];
  /** Option `parseSpecial` of each generation. */
  special: (boolean | undefined)[];
  /** Arguments of each call of `embed`. */
  embedded: object[];
  /** Options of each call of `countTokens`. */
  counted: object[];
  /** Option `lookahead` of each generation. */
  lookaheads: (number | undefined)[];
  /** Option `tools` of each generation that has it. */
  tools: string[];
  /** Options of the latest beam search. */
  searched: BeamOptions | undefined;
}

/** An empty log. */
export const emptyLog = (): Log => ({
  turns: 0,
  freed: [],
  opened: 0,
  closed: 0,
  place: undefined,
  asked: [],
  special: [],
  embedded: [],
  counted: [],
  lookaheads: [],
  tools: [],
  searched: undefined,
});

/** Behaviour of a fake build. */
export interface FakeOptions {
  /** Report of a probe; without one the probe fails. */
  readonly report?: DeviceReport;
  /** Error of reading the weights, or a check of what is read. */
  readonly refusal?: Error | (() => Error | undefined);
  /** Error of reading the weights of a draft model. */
  readonly draftRefusal?: () => Promise<Error>;
  /** Assumptions about the model's files. */
  readonly warnings?: readonly string[];
  /** Bytes of the weights by the option `headType`. */
  readonly weights?: Readonly<Record<HeadType, number>>;
  /** Called for each created model. */
  readonly onModel?: () => void;
  /** Compiles the module. */
  readonly compile?: () => Promise<WebAssembly.Module>;
}

/** A loader whose weights are read together with those of another. */
interface FakeLoader extends WasmLoader {
  weights(): Promise<void>;
}

const EMPTY_MODULE = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

const NONE = { count: 0, mean: undefined, p50: undefined, p90: undefined, p99: undefined };

const NO_METRICS = {
  rows: 0,
  promptRows: 0,
  admissions: 0,
  prefixHits: 0,
  tokens: 0,
  finished: 0,
  aborted: 0,
  timedOut: 0,
  failed: 0,
  queueTime: NONE,
  timeToFirstToken: NONE,
  prefillTime: NONE,
  decodeTime: NONE,
  interTokenLatency: NONE,
  stepTime: NONE,
  stepRows: NONE,
  memory: { layers: 0, head: 0, prefilter: 0, kvCache: 0 },
  cachedPromptTokens: 0,
  preemptions: 0,
  preemptedTokens: 0,
  drafts: 0,
  draftTokens: 0,
  acceptedTokens: 0,
  waiting: 0,
  running: 0,
  blocks: 0,
  usedBlocks: 0,
  cachedBlocks: 0,
};

const NO_REPORT: DeviceReport = {
  devices: [{ device: "cpu", level: "fake", verdict: "chosen", reason: "nothing else is here" }],
};

/** Reads an optional file, and `a.safetensors` in two ranges. Generates "0 1 2 …", two tokens per batch. */
export function fakeBuild(
  log: Log,
  { report, refusal, draftRefusal, weights: byHead, warnings = [], onModel, compile }: FakeOptions = {},
) {
  const open = async (_kind: string, name: string, files: WasmFiles): Promise<FakeLoader> => {
    files.rewind();
    await closing(files, async () => {
      await read(files, "config.json", undefined, undefined, false);
      await read(files, "a.safetensors", 0, 8, true);
    });
    const weights = async () => {
      await closing(files, () => read(files, "a.safetensors", 8, 16, true));
      files.close();
    };
    return {
      totalBytes: 16,
      needsProcessor: false,
      estimate: (onGpu, head = "auto") => {
        const bytes = byHead?.[head] ?? 1000;
        const numbers = [512, bytes, 200, 100, 400, 300, bytes + 400, 50];
        return Float64Array.from(numbers, (n) => (onGpu ? 2 * n : n));
      },
      probe: async () => {
        if (report === undefined) throw new Error("the driver is odd");
        return report;
      },
      weights,
      finish: async (place, draft) => {
        log.place = place;
        const refused = typeof refusal === "function" ? refusal() : refusal;
        if (refused !== undefined) throw refused;
        await weights();
        await (draft as FakeLoader | undefined)?.weights();
        if (draft !== undefined && draftRefusal !== undefined) throw await draftRefusal();
        onModel?.();
        return fakeModel(log, files, { name, backend: place.backend, warnings });
      },
      free: () => void log.freed.push("loader"),
    };
  };
  const glue: WasmModule = { default: async () => undefined, Loader: { open } };
  return { glue, compile: compile ?? compileNothing };
}

async function compileNothing(): Promise<WebAssembly.Module> {
  return new WebAssembly.Module(EMPTY_MODULE);
}

/** Opens a source and counts its files. */
export function countedModel(log: Log): OpenSource {
  return async (source, fetchOptions, signal) => {
    const model = await openStreamed(source, fetchOptions, signal);
    const { entry, files } = await model.open();
    return new StreamedModel(entry, () => counted(files(), log), model.readPhase);
  };
}

function counted(files: ModelFiles, log: Log): ModelFiles {
  let isOpen = false;
  const open = () => {
    if (!isOpen) log.opened += 1;
    isOpen = true;
  };
  open();
  return {
    read: (name, range) => {
      open();
      return files.read(name, range);
    },
    expect: (names) => files.expect(names),
    totalBytes: () => files.totalBytes(),
    where: (name) => files.where(name),
    close: async () => {
      if (isOpen) log.closed += 1;
      isOpen = false;
      await files.close();
    },
  };
}

/** As in the engine, files are closed after a failed read, and the error keeps only the message. */
async function closing(files: WasmFiles, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    files.close();
    throw thrown;
  }
}

async function read(
  files: WasmFiles,
  file: string,
  start: number | undefined,
  end: number | undefined,
  required: boolean,
): Promise<void> {
  const bytes = await files.read(file, start, end, required).catch((thrown: unknown) => {
    throw Object.assign(new Error(`cannot read \`${file}\`: ${thrown}`), { code: "network" });
  });
  if (bytes === undefined || end === undefined || bytes.length === 8) return;
  throw Object.assign(new Error(`${file}: too short`), { code: "truncated" });
}

function fakeModel(log: Log, files: WasmFiles, info: object): WasmModel {
  return {
    info: info as never,
    deviceReport: NO_REPORT,
    selfTest: async () => ({ device: "cpu", level: "fake", passed: true, reason: "", seconds: 0.5 }),
    generate: (prompt, options, count) => {
      log.asked.push({ prompt, count });
      log.lookaheads.push(options.lookahead);
      log.special.push(options.parseSpecial);
      if (options.tools !== undefined) log.tools.push(options.tools);
      const text = textOf(prompt);
      return Array.from({ length: count }, () => fakeGeneration(text, options, log, files));
    },
    beamSearch: (prompt, beams, options) => fakeSearch(textOf(prompt), beams, options, log),
    push: (tokens, more) => Uint32Array.of(...tokens, ...letters(textOf(more))),
    save: async (tokens) => Uint8Array.from(tokens),
    restore: async (bytes) => {
      if (bytes.length > 0) return Uint32Array.from(bytes);
      throw Object.assign(new Error("these bytes are no session"), { code: "bad-checkpoint" });
    },
    classify: async (prompt, labels) => {
      if (labels.length === 0) throw Object.assign(new Error("no labels"), { code: "bad-option" });
      const scores = labels.map((text) => fakeScore(textOf(prompt) + text, text.length));
      return { best: 0, probabilities: labels.map(() => 1 / labels.length), scores };
    },
    embed: async (texts, isMean, isNormalized) => {
      log.embedded.push({ texts, isMean, isNormalized });
      const bad = texts.find((text) => text.startsWith("bad"));
      if (bad) throw Object.assign(new Error(`${bad} is too long`), { code: "context-full" });
      const tokens = texts.join("").length;
      return [...texts.map((text) => Float32Array.of(text.length, 0.5)), tokens];
    },
    countTokens: (prompt, options) => {
      log.counted.push(options);
      return textOf(prompt).length;
    },
    toolFormat: "hermes",
    tokenTable: () => new Uint8Array(8),
    metrics: async () => ({ steps: log.turns, ...NO_METRICS }),
    resetPrefixCache: () => void log.freed.push("prefixes"),
    releaseMemory: async (isCritical) => (isCritical ? 2048 : 1024),
    tokenize: letters,
    detokenize: (ids) => String.fromCodePoint(...ids),
    free: () => void log.freed.push("model"),
  };
}

/** Finds "beam 0", "beam 1", …; the prompt "long" finds nothing until it is stopped. */
function fakeSearch(
  prompt: string,
  beams: BeamOptions,
  options: WasmGenerateOptions,
  log: Log,
): WasmBeamSearch {
  log.searched = beams;
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const texts = async (): Promise<BeamText[]> => {
    if (prompt === "long") await stopped;
    if (prompt === "bad") throw Object.assign(new Error("too long"), { code: "context-full" });
    process(options, [...letters(prompt)]);
    return Array.from({ length: beams.numReturnSequences ?? 1 }, (_, index) => {
      return { text: `beam ${index}`, tokens: [index], score: 0 - index, finishReason: "length" };
    });
  };
  return { texts, stop, free: () => void log.freed.push("search") };
}

/** Logits of four tokens after the processors. As in the engine, their errors keep only the message. */
function process({ logitsProcessors = [] }: WasmGenerateOptions, tokens: readonly number[]): Float32Array {
  const logits = Float32Array.of(0.5, 1, 0, Number.NEGATIVE_INFINITY);
  for (const call of logitsProcessors) {
    try {
      call(logits, Uint32Array.from(tokens));
    } catch (thrown) {
      const message = `a logits processor failed: ${(thrown as Error).message}`;
      throw Object.assign(new Error(message), { code: "bad-option" });
    }
  }
  return logits;
}

/** Each letter is a token with probability one half. */
function fakeScore(text: string, length: number): Score {
  const tokens = [...letters(text.slice(-length))].map((token) => fakeDelta(token));
  return { tokens, logprob: -Math.LN2 * length, meanLogprob: -Math.LN2 };
}

function fakeDelta(token: number): TextDelta {
  return { text: String.fromCodePoint(token), token, logprob: -Math.LN2 };
}

function letters(text: string): Uint32Array {
  return Uint32Array.from(text, (letter) => letter.codePointAt(0) ?? 0);
}

function textOf(prompt: WasmPrompt): string {
  if (typeof prompt === "string") return prompt;
  if (prompt instanceof Uint32Array) return String.fromCodePoint(...prompt);
  throw Object.assign(new Error("there is no chat template"), { code: "bad-option" });
}

/** A call in the first two tokens. */
const CALL = [
  { index: 0, id: "i", name: "now", arguments: "{" },
  { index: 0, arguments: "}" },
];

/** The prompt "lost" loses its device after the first batch, and the model is read again. */
function fakeGeneration(
  prompt: string,
  options: WasmGenerateOptions,
  log: Log,
  files: WasmFiles,
): WasmGeneration {
  const { maxTokens = 1000, promptLogprobs = false } = options;
  let token = 0;
  let stopped = false;
  let over = false;
  const done = (): WasmEvent => ({
    type: "done",
    finishReason: stopped ? "aborted" : "length",
    usage: {
      promptTokens: prompt.length,
      completionTokens: token,
      totalTokens: prompt.length + token,
      cachedTokens: 0,
      reasoningTokens: 0,
    },
    timings: { loadSeconds: 0, firstTokenSeconds: 0, tokensPerSecond: 0 },
    seed: 1,
    backend: "cpu",
    level: "scalar",
    model: "fake",
  });
  return {
    async next() {
      await new Promise((resolve) => setImmediate(resolve));
      if (over) return undefined;
      if (prompt === "bad") throw new SetunError("context-full", "the prompt is too long");
      if (prompt === "lost" && token === 2) {
        files.rewind();
        await closing(files, () => read(files, "a.safetensors", 0, 8, true));
      }
      log.turns += 1;
      const events: WasmEvent[] = [];
      if (promptLogprobs && token === 0)
        events.push({ type: "prompt", tokens: [...letters(prompt)].map(fakeDelta) });
      while (!stopped && token < maxTokens && events.length < 2) {
        process(options, [...letters(prompt), token]);
        const pieces = options.tools === undefined ? [] : CALL.slice(token, token + 1);
        events.push({ type: "text", text: `${token} `, token, ...(pieces[0] && { toolCalls: pieces }) });
        token += 1;
      }
      over = stopped || token >= maxTokens;
      return over ? [...events, done()] : events;
    },
    stop: () => {
      stopped = true;
    },
    free: () => void log.freed.push("generation"),
  };
}
