/** The seed of a check, and whether it is a full one. */

/** The seed of every draw. Without `SETUN_SEED` it is 0, so that a run by hand is the same twice. */
export const SEED = Number(process.env.SETUN_SEED ?? 0);
if (!Number.isSafeInteger(SEED) || SEED < 0) throw new Error("SETUN_SEED: expected a number from 0");

/** For the names of tests that draw, so that a failure says how to repeat it. */
export const REPEAT = `SETUN_SEED=${SEED}`;

/** Whether all is run that exists, as `cargo xtask test --full` does. */
export const IS_FULL = process.env.SETUN_FULL === "1";
