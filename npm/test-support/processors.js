/** Modules of processors, as files of a project. */

export const PROCESSORS = {
  // What the option `bannedTokens` does.
  "ban.js": `
    export default async ({ tokens }) => (logits) => {
      for (const token of tokens) logits[token] = -Infinity;
    };`,
  // What the option \`logitBias\` does, in the same precision.
  "bias.js": `
    export default (biases) => (logits) => {
      for (const [token, bias] of Object.entries(biases)) logits[token] += Math.fround(bias);
    };`,
  // Keeps what it has seen, for whoever imports it on the same thread.
  "seen.js": `
    export const seen = [];
    export default () => (logits, tokens) => void seen.push([logits.slice(), tokens.slice()]);`,
  // Fails once a text is so long.
  "late.js": `
    export default ({ tokens: most }) => (_, tokens) => {
      if (tokens.length > most) throw new RangeError("that is enough");
    };`,
  "nothing.js": "export const processor = () => {};",
};

/**
 * Runs in the page: a text without its likeliest tokens, by the module `ban.js` at this address, and by the option.
 * @param {{ module: string, load: object }} given
 */
export async function bannedTexts({ module, load }) {
  const { setun } = /** @type {any} */ (globalThis);
  const model = await setun.load(undefined, load);
  const options = { temperature: 0, maxTokens: 20, logprobs: true };
  const tokens = (await model.generate("Once upon a time", options).result).tokens.slice(0, 5);
  const told = async (/** @type {object} */ more) => {
    const deltas = [];
    for await (const delta of model.generate("Once upon a time", { ...options, ...more })) deltas.push(delta);
    return deltas;
  };
  const own = await told({ logitsProcessors: [{ module, options: { tokens } }] });
  const option = await told({ bannedTokens: tokens });
  await model.dispose();
  return { own, option };
}
