/** Values of `parity.js`, as a module. */
declare module "virtual:parity" {
  interface Step {
    readonly token: number;
    readonly logprob: number;
    readonly text: string;
  }
  const expected: { readonly prompt: string; readonly maxTokens: number; readonly steps: readonly Step[] };
  export default expected;
}

/** Values of `comparison.js`, as a module. */
declare module "virtual:comparison" {
  interface Engine {
    readonly name: string;
    readonly speed: number;
  }
  interface Comparison {
    readonly model: "story" | "2b4t";
    readonly where: string;
    readonly date: string;
    readonly engines: readonly Engine[];
  }
  export const COMPARISONS: readonly Comparison[];
}
