/** Requests and other things drawn from a seed. */

const WORDS = [
  ...["Once", "upon", "a", "time", "there", "was", "little", "fox", "who", "said", "to", "his", "friend,"],
  ...["Lily", "and", "Tom", "went", "home.", "The", "dog", "ran", "very", "fast", "because", "it", "rained."],
  ...["Zoë", '"Hé!"', "🐉", "12.5", "don't", "big\nred", "  ", "Ζεύς", "小さな", "end."],
];

/**
 * Draws a number of requests: each is a prompt with options that every interface of a model takes.
 * @param {number} count @param {number} seed
 */
export function drawRequests(count, seed) {
  const below = randomNumbers(seed);
  /** @template Value @param {Value[]} values @returns {Value} */
  const one = (...values) => /** @type {Value} */ (values[below(values.length)]);
  return Array.from({ length: count }, () => ({
    prompt: Array.from({ length: 1 + below(12) }, () => one(...WORDS)).join(" "),
    options: {
      seed: below(2 ** 31),
      maxTokens: 1 + below(32),
      temperature: one(0, 0.5, 0.8, 1, 1.3),
      topP: one(1, 0.95, 0.8),
      topK: one(0, 5, 40),
      minP: one(0, 0.05),
      repetitionPenalty: one(1, 1.2),
      frequencyPenalty: one(0, 0.5),
      presencePenalty: one(0, -0.25),
      ...(below(4) === 0 && { stop: one("the", ".", "a d") }),
    },
  }));
}

/**
 * Different numbers from 1 to `end`, without it.
 * @param {number} count @param {number} seed @param {number} end
 */
export function drawNumbers(count, seed, end) {
  const below = randomNumbers(seed);
  const drawn = new Set();
  while (drawn.size < count) drawn.add(1 + below(end - 1));
  return [...drawn];
}

/** Numbers below a bound: a linear congruential generator. @param {number} seed @returns {(end: number) => number} */
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return (end) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
}
