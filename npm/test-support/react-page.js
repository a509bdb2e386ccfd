/** A page in Strict Mode with the hooks of `setun/react`. */

import { join } from "node:path";
import { build } from "rolldown";
import { INDEX_HTML } from "./page.js";
import { writeFiles } from "./project.js";

/**
 * Its script. `window.show` gives the component a source, or unmounts it. `window.seen` counts its effects, loads and
 * disposals, and has the end of each text. `window.statuses` has each status that was shown.
 */
const MAIN = `import { createElement as h, StrictMode, useEffect, useState, version } from "react";
import { createRoot } from "react-dom/client";
import { useGeneration, useModel } from "setun/react";
import * as setun from "/node_modules/setun/dist/index.js";

const statuses = [];
const seen = { version, effects: 0, loads: 0, disposals: 0, ends: [] };

async function load(source, options) {
  seen.loads += 1;
  const model = await setun.load(source, options);
  const { dispose, generate } = Object.getPrototypeOf(model);
  model.dispose = () => {
    seen.disposals += 1;
    return dispose.call(model);
  };
  model.generate = (...request) => {
    const generation = generate.apply(model, request);
    const keep = (end) => seen.ends.push(end);
    generation.result.then(({ finishReason }) => keep(finishReason), ({ code }) => keep(code));
    return generation;
  };
  return model;
}

// What is ended is ended in its midst.
const ENDLESS = { temperature: 1, minTokens: 1e6, contextOverflow: { type: "sliding_window", sinks: 4, window: 64 } };

function Story({ source }) {
  const { model, status, error, retry } = useModel(load, source, { store: false });
  const { text, isStreaming, result, error: failure, generate, stop } = useGeneration(model);
  useEffect(() => {
    seen.effects += 1;
  }, []);
  useEffect(() => {
    statuses.push(status);
  }, [status]);
  const press = (name, onClick) => h("button", { onClick }, name);
  const end = isStreaming ? "none" : (result?.finishReason ?? failure?.code ?? "nothing");
  return h("main", { "data-status": error?.code ?? status, "data-end": end },
    press("Tell", () => generate("Once upon a time", ENDLESS)),
    press("Tell wrongly", () => generate("Once upon a time", { topK: -1 })),
    press("Stop", stop),
    press("Retry", retry),
    h("p", null, text));
}

function Page() {
  const [source, show] = useState(null);
  useEffect(() => {
    Object.assign(window, { seen, statuses, show });
  }, []);
  return source && h(Story, { source });
}

const root = document.body.appendChild(document.createElement("div"));
createRoot(root).render(h(StrictMode, null, h(Page)));
`;

/**
 * Writes the page to `FOLDER/index.html` with the React that is installed in a folder, as for development.
 * @param {string} project @param {string} folder
 */
export async function writeReactPage(project, folder) {
  const own = join(project, folder);
  await writeFiles(own, { "index.html": INDEX_HTML, "hooks.js": MAIN });
  const modules = ["react", "react-dom"].map((name) => [name, join(own, "node_modules", name)]);
  await build({
    cwd: own,
    input: "hooks.js",
    platform: "browser",
    external: /^\/node_modules\//,
    resolve: { alias: Object.fromEntries(modules) },
    transform: { define: { "process.env.NODE_ENV": '"development"' } },
    output: { file: join(own, "main.js"), format: "esm" },
  });
}
