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
