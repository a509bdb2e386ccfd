/**
 * Milliseconds after which a step or a test of a browser counts as one that never ends: many times what the longest
 * takes on a busy machine, as a limit only turns a hang into a failure.
 */
export const PATIENCE_MS = 900_000;
