/** The declarations of the packed package in strict projects, without `skipLibCheck`: with and without the DOM's library. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeProject, writeFiles } from "../test-support/project.js";

/** The oldest compiler. The AI SDK's own declarations need those of JSON Schema. */
const DEPENDENCIES = {
  "@ai-sdk/provider": "4.0.38",
  "@langchain/core": "1.4.0",
  "@types/json-schema": "7.0.15",
  "@types/node": "20.19.25",
  typescript: "5.4.5",
};

/** What every host may do. */
const ANYWHERE = `
  import {
    type BeamText, type ChatMessage, type GenerationResult, type LoadOptions, load, type LogitsProcessorFactory, models, SetunError,
  } from "setun";
  import { load as loadForCpu } from "setun/cpu";
  import { load as loadFrom } from "setun/no-model";
  import { load as loadInServiceWorker } from "setun/service-worker";
  import { addIsolationHeaders, isolate, type Isolation, type IsolationPolicy } from "setun/isolate";
  import { createClient } from "setun/openai";
  import { LanguageModel, provideModel } from "setun/prompt-api";
  import { useGeneration, useModel } from "setun/react";

  const model = await load("https://example.org/model/", { onProgress: ({ loadedBytes }) => loadedBytes.toFixed() });
  for await (const { text, token } of model.generate("a", { maxTokens: 3 })) text.at(token);
  export const result: GenerationResult = await model.chat([{ role: "user", content: "b" }]).result;
  // @ts-expect-error there is no such option
  model.generate("a", { temprature: 1 });
  // @ts-expect-error there is no such backend
  await load("a", { backend: "gpu" });
  // @ts-expect-error content is text
  export const message: ChatMessage = { role: "user", content: 1 };
  // @ts-expect-error a property is there or not
  export const options: LoadOptions = { backend: undefined };
  const factory: LogitsProcessorFactory = ({ window }: { window: number }) => (logits, tokens) => {
    for (const token of tokens.subarray(-window)) logits[token] = -Infinity;
  };
  const own = { logitsProcessors: [await factory({ window: 2 })] };
  const [best]: readonly BeamText[] = await model.beamSearch("a", { numBeams: 2, earlyStopping: "never", ...own });
  best?.score.toFixed();
  // @ts-expect-error a search does not sample
  await model.beamSearch("a", { temperature: 1 });
  (await model.metrics()).timeToFirstToken.p99?.toFixed();
  export const code = new SetunError("network", "m").code;
  const { embedding } = await model.embed("a");
  export const vector: Float32Array = embedding;
  export const bytes: Uint8Array = await model.session().save();
  for (const { name } of await models.list()) name.at(0);
  for (const load of [loadForCpu, loadInServiceWorker]) await (await load()).dispose();
  const isolation: Isolation = await isolate({ policy: "document", mayReload: () => true });
  if (isolation.status === "unsupported") isolation.message.at(0);
  export const policy: IsolationPolicy = "credentialless";
  // @ts-expect-error there is no such policy
  await isolate({ policy: "coep" });
  await loadFrom("hf:owner/name");
  // @ts-expect-error it needs a source
  await loadFrom();
  const client = createClient(model);
  for await (const { choices } of await client.chat.completions.create({ messages: [], stream: true })) choices.at(0);
  provideModel(model);
  const session = await LanguageModel.create();
  export const answer: string = await session.prompt("a");
  export const Story = ({ source }: { source: string | null }) => {
    const { model, retry } = useModel(load, source, { threads: 2 });
    useModel(loadFrom, "hf:owner/name").progress?.loadedBytes.toFixed();
    // @ts-expect-error it needs a source
    useModel(loadFrom, undefined);
    // @ts-expect-error the hook has a signal of its own
    useModel(load, undefined, { signal: new AbortController().signal });
    return [useGeneration(model).text.at(0), retry];
  };
`;

/** What needs the DOM's library. */
const ON_A_PAGE = `${ANYWHERE}
  declare const input: HTMLInputElement, event: DragEvent, file: FileSystemFileHandle, folder: FileSystemDirectoryHandle;
  const { signal } = new AbortController();
  await load(input.files ?? [], { signal });
  for (const source of [event.dataTransfer?.items ?? [], file, folder, new URL("https://example.org/")]) await load(source, { signal });
  export const stream: ReadableStream<string> = model.generate("a", { signal }).textStream();
  await isolate({ serviceWorker: await navigator.serviceWorker.register("./own.js") });
  export const headed: Response = addIsolationHeaders(new Response(""), policy);
  export const response = new Response(model.generate("a").textStream().pipeThrough(new TextEncoderStream()));
  export const blob = new Blob([await model.session().save(), embedding]);
  session.addEventListener("contextoverflow", (event) => event.preventDefault());
  export const target: EventTarget = session;
`;

/** Node declares few of the platform's types, and the AI SDK needs some of them. */
const IN_NODE = `${ANYWHERE}
  import type { LanguageModelV4 } from "@ai-sdk/provider";
  import { createSetun } from "setun/ai-sdk";
  await load(new URL("file:///model/"), { signal: AbortSignal.timeout(1000) });
  export const language: LanguageModelV4 = createSetun(model)();
  await model[Symbol.asyncDispose]();
  await using other = await load();
  other.info.name.at(0);
`;

/** Without any library of a platform, its types are the parts that are needed. */
const BARE = `${ANYWHERE}
  // @ts-expect-error no library declares it
  model[Symbol.asyncDispose];
  export const text: string = await model.generate("a").textStream().getReader().read().then(({ value }) => value ?? "");
`;

/** LangChain's own declarations have errors where optional properties are exact, and so compile in none of the projects. */
const WITH_LANGCHAIN = `
  import type { EmbeddingsInterface } from "@langchain/core/embeddings";
  import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
  import { load } from "setun";
  import { ChatSetun, SetunEmbeddings } from "setun/langchain";
  const model = await load();
  export const chat: BaseChatModel = new ChatSetun({ model, options: { maxTokens: 3 } });
  export const vectors: EmbeddingsInterface = new SetunEmbeddings({ model });
  export const text: string = (await new ChatSetun({ model }).invoke("a")).text;
  // @ts-expect-error there is no such option
  new ChatSetun({ model, options: { temprature: 1 } });
`;

const CONSUMERS = {
  page: { text: ON_A_PAGE, lib: ["es2022", "dom", "dom.iterable", "dom.asynciterable"], types: [] },
  bare: { text: BARE, lib: ["es2022"], types: [] },
  node: { text: IN_NODE, lib: ["es2022"], types: ["node"] },
};

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;

beforeAll(async () => {
  project = await makeProject({}, DEPENDENCIES);
});
afterAll(() => project?.remove());

it.each(
  /** @type {const} */ ([
    ["5.4", "page", "bundler"],
    ["5.4", "bare", "nodenext"],
    ["5.4", "node", "nodenext"],
    ["newest", "page", "nodenext"],
    ["newest", "bare", "bundler"],
    ["newest", "node", "nodenext"],
  ]),
)("TypeScript %s, %s, %s", async (version, consumer, moduleResolution) => {
  const { text, lib, types } = CONSUMERS[consumer];
  expect(await findings(version, text, { moduleResolution, lib, types })).toBe("");
});

it("newest TypeScript with LangChain, whose findings are all in other packages", async () => {
  const { lib } = CONSUMERS.page;
  const found = await findings("newest", WITH_LANGCHAIN, {
    moduleResolution: "nodenext",
    lib,
    types: ["node"],
  });
  expect(found).toContain("node_modules/@langchain/core/");
  expect(found).not.toMatch(/^(program|node_modules\/setun\/)/m);
});

/**
 * What a compiler says of a program in a strict project.
 * @param {"5.4" | "newest"} version @param {string} text
 * @param {{ moduleResolution: "bundler" | "nodenext", lib: string[], types: string[] }} options
 */
async function findings(version, text, { moduleResolution, lib, types }) {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    target: "es2022",
    module: moduleResolution === "nodenext" ? "nodenext" : "esnext",
    moduleResolution,
    lib,
    types,
  };
  const config = JSON.stringify({ compilerOptions, files: ["program.ts"] });
  await writeFiles(project.folder, { "program.ts": text, "tsconfig.json": config });
  const folder = version === "5.4" ? project.folder : fileURLToPath(new URL("..", import.meta.url));
  const compiler = join(folder, "node_modules", "typescript", "bin", "tsc");
  let found = "";
  try {
    execFileSync(process.execPath, [compiler, "--project", "."], { cwd: project.folder, encoding: "utf8" });
  } catch (thrown) {
    found = /** @type {any} */ (thrown).stdout || String(thrown);
  }
  return found;
}
