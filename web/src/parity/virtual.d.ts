/** What `parity.js` computes while the page is built. */
declare module "virtual:parity" {
  interface Step {
    readonly token: number;
    readonly logprob: number;
    readonly text: string;
  }
  const expected: { readonly prompt: string; readonly maxTokens: number; readonly steps: readonly Step[] };
  export default expected;
}
