#!/usr/bin/env node
/**
 * What an exchange between workers costs that share no memory: `node messages.mjs ROUNDS HELPERS…`.
 *
 * A worker sends a quantized row to helpers, computes as long as they do, and waits for a part of a product from each. Prints
 * a JSON line for each number of helpers, each length of computing and each way to wait: milliseconds of a round, and what
 * of it is not computing. A worker that stays awake sends messages to itself meanwhile. Browser in $CHROME.
 */

import { createServer } from "node:http";
import { launch } from "../browser.mjs";

/** Bytes that go out, and floats that come back: the widest exchange of 2B-4T's shape between two workers. */
const SENT = 2560;
const RETURNED = 3456;

/** Milliseconds that a worker computes between exchanges. */
const COMPUTING = [0, 0.1, 0.3, 1];

const rounds = Number(process.argv[2] ?? 2000);
const counts = process.argv.slice(3).map(Number);
const server = createServer((_, response) => response.setHeader("content-type", "text/html").end());
await new Promise((ready) => server.listen(0, "127.0.0.1", () => ready(undefined)));
const browser = await launch();
try {
  const page = await browser.newPage();
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  await page.goto(`http://127.0.0.1:${address.port}/`);
  for (const helpers of counts.length > 0 ? counts : [1]) {
    for (const milliseconds of COMPUTING) {
      for (const awake of [false, true]) {
        const job = { source: `(${worker})()`, helpers, milliseconds, awake, rounds, SENT, RETURNED };
        const found = await page.evaluate(measure, job);
        process.stdout.write(`${JSON.stringify({ helpers, milliseconds, awake, ...found })}\n`);
      }
    }
  }
} finally {
  await browser.close();
  server.close();
}

/**
 * In the page: starts the workers, and measures with them.
 *
 * @param {{ source: string, helpers: number, rounds: number } & Record<string, unknown>} job
 */
async function measure({ source, helpers, ...job }) {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const workers = Array.from({ length: helpers + 1 }, () => new Worker(url));
  const [first, ...others] = workers;
  const ports = others.map((helper) => {
    const { port1, port2 } = new MessageChannel();
    helper.postMessage(job, [port2]);
    return port1;
  });
  const found = await new Promise((resolve) => {
    first.onmessage = ({ data }) => resolve(data);
    first.postMessage({ ...job, leads: true }, ports);
  });
  for (const worker of workers) worker.terminate();
  return found;
}

/** In a worker: a helper answers every row, the one that leads sends rows to all and waits for all. */
function worker() {
  /** Divisions in a millisecond. */
  let speed = 0;

  /** @param {number} milliseconds */
  function compute(milliseconds) {
    let value = 1;
    for (let left = milliseconds * speed; left > 0; left--) value = 1 / (value + 1);
    return value;
  }

  self.onmessage = ({ data: job, ports }) => {
    const begun = performance.now();
    speed = 1;
    compute(2e7);
    speed = 2e7 / (performance.now() - begun);
    if (job.awake) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => port2.postMessage(0);
      port2.postMessage(0);
    }
    if (job.leads) return lead(job, ports);
    const [port] = ports;
    port.onmessage = () => {
      compute(job.milliseconds);
      port.postMessage(new Float32Array(job.RETURNED));
    };
  };

  /** @param {Record<string, number>} job @param {readonly MessagePort[]} ports */
  function lead({ milliseconds, rounds, SENT }, ports) {
    let [left, waiting, computing, begun] = [rounds, 0, 0, performance.now()];
    const start = () => {
      waiting = ports.length;
      for (const port of ports) port.postMessage(new Int8Array(SENT));
      compute(milliseconds);
    };
    for (const port of ports) {
      port.onmessage = () => {
        if (--waiting > 0) return;
        if (--left > 0) return start();
        const round = (performance.now() - begun) / rounds;
        begun = performance.now();
        for (left = 200; left > 0; left--) compute(milliseconds);
        computing = (performance.now() - begun) / 200;
        self.postMessage({ round, exchange: round - computing });
      };
    }
    start();
  }
}
