import { beforeEach, describe, expect, it } from "vitest";
import { connectLocal } from "../src/host-links.js";
import { type Load, loadOn } from "../src/load.js";
import type { LogitsProcessorInput } from "../src/processors.js";
import { isProcessor, toSentProcessors } from "../src/processors.js";
import { countedModel, emptyLog, fakeBuild, type Log } from "./fake-wasm.js";
import { gate } from "./gate.js";

const files = { "a.safetensors": new Uint8Array(16) };
let log: Log;
let load: Load;

beforeEach(() => {
  log = emptyLog();
  load = loadOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: false,
    baseUrl: () => "http://localhost/page/",
    embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
    connect: async () => connectLocal({ build: fakeBuild(log), openModel: countedModel(log) }),
  });
});

/** A module as a URL. */
const moduleOf = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;

/** Records the tokens of each call under its option `name`. */
const NOTING = moduleOf(`
  export default async ({ name }) => {
    globalThis.noted ??= {};
    globalThis.noted[name] = [];
    return (logits, tokens) => void globalThis.noted[name].push([logits.length, ...tokens]);
  };
`);
const noted = () => (globalThis as unknown as { noted: Record<string, number[][]> }).noted;

describe("a list of processors", () => {
  it.each([
    "./a.js",
    new URL("http://localhost/a.js"),
    { module: "a.js" },
    { module: new URL("http://localhost/a.js"), options: 1 },
    () => {},
  ])("may have %s", (processor) => {
    expect(isProcessor(processor)).toBe(true);
  });

  it.each(["", null, undefined, 7, {}, { module: "" }, { module: "a.js", option: 1 }, ["a.js"]])(
    "may not have %s",
    async (processor) => {
      const model = await load(files);
      const refused = () => model.generate("a", { logitsProcessors: [processor as LogitsProcessorInput] });
      expect(refused).toThrow(expect.objectContaining({ code: "bad-option" }));
      expect(log.asked).toEqual([]);
    },
  );

  it("is sent with absolute URLs and a copy of its options", () => {
    const options = { words: ["a"] };
    const context = { worker: true, baseUrl: () => "http://localhost/page/index.html" };
    const sent = toSentProcessors([{ module: "./a.js", options }, "/b.js", new URL("blob:c")], context);
    options.words.push("b");
    expect(sent).toEqual([
      { module: "http://localhost/page/a.js", options: { words: ["a"] } },
      { module: "http://localhost/b.js", options: undefined },
      { module: "blob:c", options: undefined },
    ]);
  });

  it("is refused at once if it cannot be sent", () => {
    const context = { worker: true, baseUrl: () => "http://localhost/" };
    const refused = (processor: LogitsProcessorInput) => () => toSentProcessors(["a.js", processor], context);
    const badOption = (message: RegExp) =>
      expect.objectContaining({ code: "bad-option", message: expect.stringMatching(message) });
    expect(refused(() => {})).toThrow(
      badOption(/^logitsProcessors\[1\]: a function .* pass the URL of a module/),
    );
    expect(refused({ module: "a.js", options: () => {} })).toThrow(
      badOption(/^logitsProcessors\[1\]: .*structuredClone/),
    );
    expect(refused("http://")).toThrow(badOption(/^logitsProcessors\[1\]: expected a URL/));
  });
});

describe("processors", () => {
  it("are loaded before the first token, and called with all tokens for each choice", async () => {
    const model = await load(files);
    const own: number[][] = [];
    const logitsProcessors: LogitsProcessorInput[] = [
      { module: NOTING, options: { name: "one" } },
      (_, tokens) => void own.push([...tokens]),
    ];
    expect(await model.generate("ab", { logitsProcessors, maxTokens: 2 }).text()).toBe("0 1 ");
    expect(noted().one).toEqual([
      [4, 97, 98, 0],
      [4, 97, 98, 1],
    ]);
    expect(own).toEqual([
      [97, 98, 0],
      [97, 98, 1],
    ]);
  });

  it("are created for each generation, session and beam search", async () => {
    const model = await load(files);
    const at = (name: string) => ({
      logitsProcessors: [{ module: NOTING, options: { name } }],
      maxTokens: 1,
    });
    const session = model.session();
    await session.push([7]);
    await Promise.all([
      model.generate("a", at("two")).text(),
      model.generate("b", at("three")).text(),
      session.generate(at("four")).text(),
      model.beamSearch("c", at("five")),
    ]);
    expect(noted()).toMatchObject({
      two: [[4, 97, 0]],
      three: [[4, 98, 0]],
      four: [[4, 7, 0]],
      five: [[4, 99]],
    });
  });

  it("may be stopped and aborted while they are loaded", async () => {
    const model = await load(files);
    const SLOW = moduleOf("await globalThis.held; export default () => () => {};");
    /** Has modules wait that are loaded from now on. */
    const hold = () => {
      const { opened, open } = gate();
      Object.assign(globalThis, { held: opened });
      return open;
    };
    let release = hold();
    const stopped = model.generate("a", { logitsProcessors: [`${SLOW}//1`] });
    stopped.stop();
    release();
    expect(await stopped.result).toMatchObject({ finishReason: "aborted", text: "" });
    const controller = new AbortController();
    release = hold();
    const aborted = model.generate("a", { logitsProcessors: [`${SLOW}//2`], signal: controller.signal });
    const read = expect(aborted.text()).rejects.toBe("enough");
    controller.abort("enough");
    await read;
    release();
    const text = model.generate("a", { logitsProcessors: [`${SLOW}//3`], maxTokens: 40 }).text();
    expect(await text).toMatch(/ 39 $/);
    release = hold();
    const disposed = expect(model.generate("a", { logitsProcessors: [`${SLOW}//4`] }).text()).rejects;
    await model.dispose();
    release();
    await disposed.toMatchObject({ code: "disposed" });
  });

  it.each([
    ["throw new Error('no');", /^logitsProcessors\[0\]: data:.* cannot be loaded: Error: no$/],
    ["export const name = 1;", /has undefined as its default export, expected a function$/],
    [
      "export default () => { throw new TypeError('odd'); };",
      /has thrown TypeError: odd instead of returning/,
    ],
    ["export default async () => { throw 'odd'; };", /has thrown odd instead of returning/],
    ["export default () => { throw { odd: 1 }; };", /has thrown \{"odd":1\} instead of returning/],
    ["export default () => 7;", /has returned number, expected a function$/],
  ])("that cannot be created end the generation before it starts: %s", async (code, message) => {
    const model = await load(files);
    const logitsProcessors = [moduleOf(code)];
    const refused = { name: "SetunError", code: "bad-option", message: expect.stringMatching(message) };
    for (const sample of model.generateMany("a", { n: 2, logitsProcessors }))
      await expect(sample.text()).rejects.toMatchObject(refused);
    await expect(model.beamSearch("a", { logitsProcessors })).rejects.toMatchObject(refused);
    expect(log.asked).toEqual([]);
    expect(await model.generate("a", { maxTokens: 1 }).text()).toBe("0 ");
  });

  it("that fail end only their generation, with their error as its cause", async () => {
    const model = await load(files);
    const thrown = new RangeError("too far");
    const fails: [LogitsProcessorInput, object][] = [
      [
        (_, tokens) => {
          if (tokens.at(-1) === 2) throw thrown;
        },
        {
          message: "a logits processor failed: logitsProcessors[0] has thrown RangeError: too far",
          cause: thrown,
        },
      ],
      [async () => {}, { message: expect.stringMatching(/logitsProcessors\[0\] has returned a promise/) }],
      [
        (logits) => void logits.fill(Number.NaN, 1, 2),
        { message: expect.stringMatching(/gave token 1 the logit NaN, expected a number or -Infinity$/) },
      ],
      [
        (logits) => void logits.fill(Number.POSITIVE_INFINITY, 3),
        { message: expect.stringMatching(/gave token 3 the logit Infinity/) },
      ],
      [
        (logits) => void structuredClone(logits, { transfer: [logits.buffer] }),
        { message: expect.stringMatching(/has transferred its logits array$/) },
      ],
    ];
    for (const [processor, error] of fails) {
      const failed = model.generate("a", { logitsProcessors: [processor] }).text();
      const beside = model.generate("a", { maxTokens: 5, logitsProcessors: [() => {}] }).text();
      await expect(failed).rejects.toMatchObject({ name: "SetunError", code: "bad-option", ...error });
      expect(await beside).toBe("0 1 2 3 4 ");
      const searched = model.beamSearch("\u0002", { logitsProcessors: [processor] });
      await expect(searched).rejects.toMatchObject({ code: "bad-option", ...error });
    }
  });
});
