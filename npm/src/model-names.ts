/** What the names of files say of a model. */

/** Ends of the names of files that are a model by themselves, the best first. */
export const MODEL_ENDS = [".setun", ".safetensors", ".gguf"] as const;

/** Where a model is one file beside others, this is in words what is looked for. */
export const EXPECTED_MODEL =
  "a .setun, .safetensors or .gguf file, or a folder with config.json and model.safetensors";

/** True for the name of a file that is a model by itself. */
export function isModelFile(name: string): boolean {
  return MODEL_ENDS.some((end) => hasEnd(name, end));
}

/** Whether a name ends so, in letters of any size. */
export function hasEnd(name: string, end: string): boolean {
  return name.toLowerCase().endsWith(end);
}

/** `-00002-of-00003` before the ending, or nothing: which part of a model in several files this is. */
export function partNumber(name: string): number | undefined {
  const [, number] = /-(\d{1,9})-of-\d{1,9}\.[a-z]+$/i.exec(name) ?? [];
  return number === undefined ? undefined : Number(number);
}
