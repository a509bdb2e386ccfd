/**
 * One draw of requests in every host, through the core and each adapter: the tokens are those of the `setun` command.
 *
 * `SETUN_COMMAND` is the command's path, `SETUN_DRAWS` the number of requests, and `SETUN_SEED` what they are drawn from.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openInFirefox, openPage } from "../test-support/browsers.js";
import { embeddedModel } from "../test-support/checkpoint.js";
import { drawRequests } from "../test-support/draw-requests.js";
import { INDEX_HTML } from "../test-support/page.js";
import { makeProject, writeFiles } from "../test-support/project.js";
import { REPEAT, SEED } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";
import { IMPORT_MAP, PLAIN_TEMPLATE, SHAPES_MAIN, tellShapes, useTools } from "../test-support/shapes.js";
import { hasWebKit, openInWebKit } from "../test-support/webkit.js";

const REQUESTS = drawRequests(Number(process.env.SETUN_DRAWS ?? 6), SEED);

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {{ tokens: number[], text: string }[]} */
let expected;

beforeAll(async () => {
  project = await makeProject(
    {
      "index.html": INDEX_HTML.replace(
        "<body>",
        `<body><script type="importmap">${JSON.stringify(IMPORT_MAP)}</script>`,
      ),
      "main.js": SHAPES_MAIN,
    },
    { "@ai-sdk/provider": "4.0.38" },
  );
  const { folder } = embeddedModel(project.folder);
  const files = Object.entries({ ...folder, "chat_template.jinja": PLAIN_TEMPLATE });
  const named = Object.fromEntries(files.map(([name, bytes]) => [`model/${name}`, bytes]));
  await writeFiles(project.folder, /** @type {any} */ (named));
  server = await startServer({ root: project.folder, isolated: true });
  expected = REQUESTS.map(tellByCommand);
});
afterAll(async () => {
  await server?.stop();
  await project?.remove();
});

/** @param {typeof REQUESTS[number]} request */
function tellByCommand({ prompt, options }) {
  const command = process.env.SETUN_COMMAND;
  if (!command) throw new Error("SETUN_COMMAND is not set: it is the path of the command `setun`");
  const kebab = (/** @type {string} */ name) =>
    name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const flags = Object.entries(options).map(([name, value]) => `--${kebab(name)}=${value}`);
  const args = ["run", "--json", "--model", join(project.folder, "model"), ...flags, "--", prompt];
  const lines = execFileSync(command, args, { encoding: "utf8" }).trim().split("\n");
  const deltas = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === "text");
  return { tokens: deltas.map(({ token }) => token), text: deltas.map(({ text }) => text).join("") };
}

/** @param {unknown} given */
async function inNode(given) {
  const [text, tasks] = [JSON.stringify(given), [tellShapes, useTools]];
  const script = `import "./main.js";
    console.log(JSON.stringify([${tasks.map((task) => `await (${task})(${text})`)}]));`;
  await writeFiles(project.folder, { "script.js": script });
  const options = { encoding: /** @type {const} */ ("utf8"), maxBuffer: 2 ** 26 };
  return JSON.parse(execFileSync(process.execPath, [join(project.folder, "script.js")], options));
}

/** Each opens the page of the package. @type {Record<string, (url: string) => Promise<{ page: any, close: () => Promise<unknown> }>>} */
const BROWSERS = {
  Chromium: async (url) => {
    const browser = await launchChromium();
    const { page } = await openPage(browser, url);
    return { page, close: () => browser.close() };
  },
  Firefox: openInFirefox,
  WebKit: openInWebKit,
};

/** @param {string} host */
async function tellIn(host) {
  const open = BROWSERS[host];
  if (open === undefined) return inNode({ source: join(project.folder, "model"), requests: REQUESTS });
  const { page, close } = await open(`${server.url}/index.html`);
  try {
    const given = { source: "/model/", requests: REQUESTS };
    const told = await page.evaluate(tellShapes, given);
    return host === "Firefox" ? [told, await page.evaluate(useTools, given)] : [told];
  } finally {
    await close();
  }
}

/** @param {unknown} tokens */
const hashOf = (tokens) => createHash("sha256").update(JSON.stringify(tokens)).digest("hex").slice(0, 16);

/** What adapters call the tool with, with one seed, how they are aborted, and what the model says then. */
const CALL = { city: "Bern", days: 1 };
const USED = {
  calls: [CALL, CALL, CALL],
  aborted: ["ended", "AbortError", "AbortError"],
  after: " and a dog were",
};

describe(`${REQUESTS.length} drawn requests (${REPEAT})`, () => {
  it("give some text", () => {
    const tokens = expected.flatMap(({ tokens }) => tokens);
    console.log(`${REQUESTS.length} requests, ${REPEAT}: ${tokens.length} tokens, ${hashOf(tokens)}`);
    expect(tokens.length).toBeGreaterThan(REQUESTS.length);
  });

  for (const host of ["Node", ...Object.keys(BROWSERS)]) {
    const isAbsent = host === "WebKit" && !hasWebKit && process.env.CI === undefined;
    it.skipIf(isAbsent)(`have the command's tokens and text in ${host}`, async () => {
      const [{ build, told }, used] = await tellIn(host);
      expect(told).toEqual({ core: expected, openai: expected, aiSdk: expected, promptApi: expected });
      const tokens = told.core.flatMap((/** @type {any} */ { tokens }) => tokens);
      console.log(`${host}, ${build}: ${hashOf(tokens)}`);
      // Tools and aborts are of JavaScript alone, and take seconds in a browser.
      expect(used).toEqual(["Node", "Firefox"].includes(host) ? USED : undefined);
    });
  }
});
