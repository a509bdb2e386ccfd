/** All methods of a model. */

/** Runs in the page: calls each method. */
export async function useAll() {
  const { model } = /** @type {any} */ (globalThis);
  const options = { maxTokens: 8, seed: 3, temperature: 0.8 };
  const ids = await model.tokenize("Once upon a time");
  const session = model.session();
  await session.push("Once upon a time");
  const { tokens } = await session.generate(options).result;
  await session.push(tokens);
  const restored = await model.restore(await session.save());
  const code = (/** @type {any} */ error) => error?.code ?? error;
  const aborted = new AbortController();
  const running = model.generate("Once", { signal: aborted.signal }).text();
  aborted.abort("mine");
  const { devices } = model.deviceReport();
  const format = { type: "grammar", syntax: "regex", definition: "[a-z]{3} [0-9]{2}" };
  return {
    ids: [...ids],
    text: await model.detokenize(ids),
    tokens,
    session: [...restored.tokens],
    beams: await model.beamSearch("Once upon", { numBeams: 3, maxTokens: 5 }),
    scores: await model.score("Once upon", [" a time", " a dog"]),
    labels: await model.classify("It was a", [" cat", " dog"]),
    structured: await model.generate("Once", { ...options, responseFormat: format }).text(),
    passed: (await model.selfTest()).passed,
    metrics: Object.keys(await model.metrics()).length,
    released: typeof (await model.releaseMemory("moderate")),
    devices: devices.length,
    errors: [
      await Promise.resolve()
        .then(() => model.generate("a", { maxTokens: 0 }))
        .catch(code),
      await model
        .chat([{ role: "user", content: "a" }])
        .text()
        .catch(code),
      await model.generate("Once upon a time. ".repeat(4000)).text().catch(code),
      await running.catch(code),
    ],
  };
}
