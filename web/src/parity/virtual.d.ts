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
