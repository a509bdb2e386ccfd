import { describe, expect, it } from "vitest";
import type { Load } from "../src/load.js";
import type { Model } from "../src/model.js";
import { endingReplaced } from "../src/replaced-modules.js";

const SETUN = "http://localhost:5173/node_modules/.vite/deps/setun.js?v=1234abcd";
const MAIN = "http://localhost:5173/src/main.js";

/** A stack of a call in a module, as each browser writes it. */
const STACKS: Record<string, (module: string) => string> = {
  Chromium: (module) =>
    `Error\n    at load (${SETUN}:9:1)\n    at async start (${module}:3:15)\n    at ${module}:8:1`,
  Firefox: (module) => `load@${SETUN}:9:1\nasync*start@${module}:3:15\n@${module}:8:1`,
  WebKit: (module) => `load@${SETUN}:9:1\nmodule code@${module}:8:1`,
};

/** A `load` whose models are numbered; `ended` has those that were disposed of. */
function numbered() {
  const ended: number[] = [];
  const models: Model[] = [];
  let stack: string | undefined = "";
  const load: Load = async () => {
    const number = models.length;
    models.push({ dispose: async () => void ended.push(number) } as unknown as Model);
    return models[number] as Model;
  };
  const ending = endingReplaced(load, () => stack);
  const loadIn = async (from: string | undefined, source?: string | URL) => {
    stack = from;
    await ending(source);
    await Promise.resolve();
  };
  return { ended, loadIn };
}

describe.each(Object.entries(STACKS))("in a stack of %s", (_, stack) => {
  it("the model of a module's version before is ended", async () => {
    const { ended, loadIn } = numbered();
    await loadIn(stack(MAIN));
    for (const time of [17, 18, 19]) await loadIn(stack(`${MAIN}?t=${time}`));
    expect(ended).toEqual([0, 1, 2]);
  });

  it("models of the same version, of other modules and of other sources stay", async () => {
    const { ended, loadIn } = numbered();
    await loadIn(stack(`${MAIN}?t=17`));
    await loadIn(stack(`${MAIN}?t=17`));
    await loadIn(stack("http://localhost:5173/src/other.js?t=18"));
    await loadIn(stack(`${MAIN}?t=18`), "other");
    await loadIn(stack(`${MAIN}?t=18`), new URL("http://localhost/other"));
    expect(ended).toEqual([]);
    await loadIn(stack(`${MAIN}?t=19`), "http://localhost/other");
    expect(ended).toEqual([4]);
  });

  it("models of files with other queries stay", async () => {
    const { ended, loadIn } = numbered();
    for (const query of ["", "?v=2", "?import", "?t=today"]) await loadIn(stack(MAIN + query));
    expect(ended).toEqual([]);
  });
});

it("without a stack nothing is ended", async () => {
  const { ended, loadIn } = numbered();
  await loadIn(undefined);
  await loadIn("");
  expect(ended).toEqual([]);
});
