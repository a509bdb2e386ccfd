/**
 * Shared parts of the scripts: arguments, drawn requests, the command's own answers, and drawn tools.
 *
 * Each script is run as `SCRIPT BASE_URL MODEL --command PATH`, and exits with another status than 0 on failure.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { drawRequests, randomNumbers } from "../../../../../npm/test-support/draw-requests.js";

const OPTIONS = {
  command: { type: "string" },
  // Without it the embedded model is served, which has no chat template.
  folder: { type: "string" },
  draws: { type: "string", default: "3" },
  calls: { type: "string", default: "6" },
  seed: { type: "string" },
};

const { values: given, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });

/** The server, without the path of an API, and the name of its model. */
export const [baseUrl, model] = positionals;

/** How many calls of tools are drawn. */
export const calls = Number(given.calls);

const seed = Number(given.seed ?? process.env.SETUN_SEED ?? 0);

/** Numbers below a bound. */
export const below = randomNumbers(seed);

/** Requests by the names of OpenAI's API and vLLM: the texts and options of all APIs and hosts. */
export const requests = drawRequests(Number(given.draws), seed).map(({ prompt, options }) => ({
  prompt,
  options: Object.fromEntries(Object.entries(options).map(([name, value]) => [snake(name), value])),
}));

function snake(name) {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** What a subcommand prints for the options of a request. */
function byCommand(subcommand, options, rest, input = "") {
  const flags = Object.entries(options).map(([name, value]) => `--${name.replaceAll("_", "-")}=${value}`);
  const source = given.folder === undefined ? [] : ["--model", given.folder];
  const words = [subcommand, ...source, ...flags, ...rest];
  return execFileSync(given.command, words, { encoding: "utf8", input });
}

/** The text of `setun run`, and why it ended. */
export function run({ prompt, options }) {
  const lines = byCommand("run", options, ["--json", "--", prompt]).split("\n");
  const events = lines.filter((line) => line !== "").map((line) => JSON.parse(line));
  const text = events.filter(({ type }) => type === "text").map(({ text }) => text);
  return { text: text.join(""), reason: events.at(-1).finish_reason };
}

/** The text of `setun chat`. */
export function chat({ options }, messages) {
  return byCommand("chat", options, ["--messages", "-"], JSON.stringify(messages)).replace(/\n$/, "");
}

/** The text of a request as a user's message. */
export const conversation = ({ prompt }) => [{ role: "user", content: prompt }];

const one = (values) => values[below(values.length)];

/** An object of some fields of drawn types, each with an end. */
export function drawObject() {
  const kinds = [
    () => z.enum(["Oslo", "Rome", 'a "b"']),
    () => z.boolean(),
    () => z.int().min(-below(51)).max(below(5001)),
    // Zod counts a string's characters otherwise than JSON schema does.
    () => z.string().regex(new RegExp(`^[a-z"é ]{0,${1 + below(12)}}$`)),
    () => z.array(z.enum(["x", "y"])).max(3),
    () => z.array(z.boolean()).min(1).max(2),
  ];
  const fields = Array.from({ length: 1 + below(3) }, (_, index) => [`f${index}`, one(kinds)()]);
  return z.strictObject(Object.fromEntries(fields));
}

/** One tool or two: names and arguments. */
export const drawTools = () =>
  ["weather", "look_up"].slice(below(2)).map((name) => ({ name, parameters: drawObject() }));

/** A bias for the tokens that end strings, lists and objects, which a model of random weights seldom writes. */
export function endsSoon() {
  const tokenizer = JSON.parse(readFileSync(join(given.folder, "tokenizer.json"), "utf8"));
  const ends = ['"', '▁"', "]"].map((text) => tokenizer.model.vocab[text]);
  return Object.fromEntries(ends.filter((token) => token !== undefined).map((token) => [token, 5]));
}

/** Runs tests one after the other, those of chats for a model with a template, and counts them. */
export async function main(tests, ofChats) {
  const numbers = `${requests.length} draws, ${calls} calls, --seed ${seed}`;
  console.log(`${basename(process.argv[1])}: ${numbers}`);
  const all = given.folder === undefined ? tests : [...tests, ...ofChats];
  for (const test of all) await test();
  console.log(`# pass ${all.length}`);
}
