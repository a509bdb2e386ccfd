/** Random requests to one model from several callers of a page, as a page in use makes them. */

/**
 * Runs in the page: `callers` make `operations` requests each, at the same time; then all that a text leaves is given back.
 * @param {{ seed: number, callers: number, operations: number }} given
 */
export async function makeRandomRequests({ seed, callers, operations }) {
  const { model, setun } = /** @type {any} */ (globalThis);
  const prompts = [
    "Once upon a time",
    "Once upon a time, there was a dog. The dog",
    "The",
    "Lily and Tom went",
  ];

  /** The generator mulberry32. @param {number} state @returns {(below: number) => number} */
  const random = (state) => (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
  /** @param {boolean} holds @param {string} what */
  const check = (holds, what) => {
    if (!holds) throw new Error(what);
  };
  /** Waits, and takes an error of one of these codes. @param {Promise<unknown>} pending @param {string[]} codes */
  const settle = (pending, ...codes) =>
    pending.catch((error) => check(codes.includes(error.code), `${error.code}: ${error.message}`));

  /** @param {(below: number) => number} below */
  async function request(below) {
    const prompt = prompts[below(prompts.length)];
    const options = { maxTokens: 1 + below(30), temperature: 0.9, seed: below(1000) };
    switch (below(14)) {
      case 0:
      case 1: {
        const [first, second] = await Promise.all(
          [1, 2].map(() => model.generate(prompts[1], { temperature: 0, maxTokens: 12 }).text()),
        );
        check(first === second, "another greedy text");
        return;
      }
      case 2: {
        const generation = model.generate(prompt, options);
        let left = below(6);
        for await (const _ of generation) if (left-- === 0) generation.stop();
        return generation.result;
      }
      case 3: {
        const reason = new Error("no more");
        const controller = new AbortController();
        const pending = model.generate(prompt, { ...options, signal: controller.signal }).text();
        setTimeout(() => controller.abort(reason), below(20));
        return pending.catch((/** @type {unknown} */ error) => check(error === reason, String(error)));
      }
      case 4:
        // Nobody reads it, and its end is not awaited.
        model.generate(prompt, options).stop();
        return;
      case 5: {
        const choices = ["yes", "no", "perhaps"];
        const text = await model
          .generate(prompt, { ...options, maxTokens: 40, responseFormat: { type: "choice", choices } })
          .text();
        check(choices.includes(text), text);
        return;
      }
      case 6: {
        const schema = {
          type: "object",
          properties: { a: { enum: [1, 2] } },
          required: ["a"],
          additionalProperties: false,
        };
        const format = { type: "json_schema", schema };
        const text = await model
          .generate(prompt, { ...options, maxTokens: 200, responseFormat: format })
          .text();
        check([1, 2].includes(JSON.parse(text).a), text);
        return;
      }
      case 7:
        return settle(
          model
            .generate(prompt, {
              responseFormat: { type: "grammar", syntax: "regex", definition: "(".repeat(300) },
            })
            .text(),
          "bad-option",
        );
      case 8: {
        const session = model.session();
        await session.push(prompts[1].repeat(1 + below(4)));
        await session.generate(options).result;
        const saved = await session.save();
        check((await model.restore(saved)).tokens.length === session.tokens.length, "another session");
        saved[below(saved.length)] ^= 1;
        return settle(
          model.restore(saved).then(() => check(false, "a damaged session")),
          "bad-checkpoint",
        );
      }
      case 9:
        return model.beamSearch(prompt, { numBeams: 1 + below(4), maxTokens: 1 + below(8) });
      case 10:
        return Promise.all([
          model.score(prompt, [" a", " the dog ran"]),
          model.classify(prompt, [" yes", " no"]),
        ]);
      case 11:
        return model.generate(prompt, { ...options, timeout: below(10) }).result;
      case 12:
        return settle(model.generate(prompts[1].repeat(2000), options).text(), "context-full");
      default:
        return Promise.all(
          model
            .generateMany(prompt, { ...options, n: 1 + below(3) })
            .map((/** @type {any} */ one) => one.result),
        );
    }
  }

  /** @param {number} caller */
  async function call(caller) {
    const below = random(seed * callers + caller);
    for (let count = 0; count < operations; count += 1) await request(below);
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  const other = await setun.load();
  await other.generate("A", { maxTokens: 2 }).text();
  await other.dispose();
  let metrics = await model.metrics();
  while (metrics.running + metrics.waiting > 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    metrics = await model.metrics();
  }
  await model.resetPrefixCache();
  await model.releaseMemory("critical");
  const { usedBlocks, cachedBlocks, admissions, tokens } = await model.metrics();
  return { usedBlocks, cachedBlocks, admissions, tokens };
}
