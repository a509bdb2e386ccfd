/** The requests of `requests/*.json`, and what their answers have to be: as `public_requests.py` has it. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { below, endsSoon } from "./common.mjs";

const FOLDER = new URL("../requests/", import.meta.url);
const DRAFT_07 = "http://json-schema.org/draft-07/schema#";

/** Requests at a time: the server batches them. */
const WORKERS = 4;

/** A full check. */
const isFull = process.env.SETUN_FULL !== undefined;

function read() {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));
  const files = new Map(names.map((name) => [name.slice(0, -5), JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"))]));
  return [...files].map(([name, fields]) => {
    const tools = typeof fields.tools === "string" ? files.get(fields.tools).tools : fields.tools;
    const options = { temperature: 1, logit_bias: endsSoon(), ...fields.options };
    return { name, max_tokens: 240, ...fields, tools, options };
  });
}

/**
 * Sends each request: in a full check with drawn seeds, whole and streamed; else with fixed ones, every second one
 * streamed. `send` resolves to `{ text, calls: [[name, json]], isCut }`, or rejects with an
 * error with its status and the field.
 */
export async function checkRequests(send, schemaField) {
  const requests = read();
  assert.ok(requests.length >= 30);
  const waiting = requests.map((request, index) => ({
    request,
    seed: isFull ? below(2 ** 31) : index,
    ways: isFull ? [false, true] : [index % 2 === 0],
  }));
  const work = async () => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      await checkOne(next, send, schemaField);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
}

async function checkOne({ request, seed, ways }, send, schemaField) {
  const answers = [];
  try {
    for (const isStreamed of ways) answers.push(await send(request, seed, isStreamed));
  } catch (error) {
    assert.ok(request.refused !== undefined && error.status === 400, `${request.name}: ${error}`);
    assert.equal(error.param, schemaField, error.message);
    assert.ok(error.message.includes(request.refused), error.message);
    return;
  }
  const [answer, ...others] = answers;
  const where = `${request.name}, seed ${seed}: ${JSON.stringify(answer)}`;
  assert.equal(request.refused, undefined, where);
  for (const other of others) assert.deepEqual(other, answer, where);
  checkAnswer(request, answer, where);
}

/** Calls are of the tools that are offered, and valid; a text has its format. */
function checkAnswer({ choice, parallel, format, tools = [], free = [], ...request }, answer, where) {
  const isForced = choice === "required" || typeof choice === "object";
  if (isForced) {
    assert.ok(answer.calls.length > 0 || answer.isCut, where);
    const isRight = request.is_cut === "maybe" || answer.isCut === (request.is_cut ?? false);
    assert.ok(isRight, where);
  }
  const names = choice?.among ?? (choice?.name === undefined ? tools.map(({ name }) => name) : [choice.name]);
  const whole = answer.isCut ? answer.calls.slice(0, -1) : answer.calls;
  for (const [name, json] of whole) {
    assert.ok(names.includes(name), where);
    checkDocument(json, tools.find((tool) => tool.name === name).parameters ?? {}, free, where);
  }
  if (choice === "none") assert.equal(answer.calls.length, 0, where);
  if (parallel === false) assert.ok(answer.calls.length <= 1, where);
  if (format !== undefined && answer.calls.length === 0) {
    assert.ok(!answer.isCut || format === "json", where);
    checkDocument(answer.text, format === "json" ? { type: "object" } : format.schema, [], where);
  }
}

function checkDocument(json, schema, free, where) {
  const document = JSON.parse(json);
  assert.equal(Object.prototype.toString.call(document), "[object Object]", where);
  const Validator = schema.$schema === DRAFT_07 ? Ajv : Ajv2020;
  // Formats are judged in Python.
  const validator = new Validator({ strict: false, validateFormats: false, allErrors: true });
  const isValid = validator.validate(without(schema, free), document);
  assert.ok(isValid, `${where}: ${validator.errorsText()}`);
}

/** A schema without some keywords. */
function without(schema, keywords) {
  if (Array.isArray(schema)) return schema.map((one) => without(one, keywords));
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(([name]) => !keywords.includes(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, without(value, keywords)]));
}
