/** The message of entry points without the story model, to a request without a source. */
export const NO_MODEL =
  'source: "setun/no-model" has no built-in model; give a source, or import "setun" instead';
