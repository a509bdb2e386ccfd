/** What the names of files say of a model. */

/** Ends of the names of files that are a model by themselves, the best first. */
export const MODEL_ENDS = [".setun", ".gguf", ".safetensors"] as const;

/** What a model may be, in words. */
export const EXPECTED_MODEL =
  "a .setun, .gguf or .safetensors file, or a folder with config.json and model.safetensors";

/** What to do about a pickle, behind its name. */
export const PICKLE_ADVICE =
  "is a pickle, which can run anything when it is read; save the model as safetensors: " +
  "model.save_pretrained(folder, safe_serialization=True)";

/** True for the name of a file that is a model by itself. */
export function isModelFile(name: string): boolean {
  return MODEL_ENDS.some((end) => hasEnd(name, end));
}

/** True for the name of a file as `torch.save` writes it. */
export function isPickle(name: string): boolean {
  return /\.(bin|pt|pth|ckpt)$/i.test(name);
}

/** Whether a name ends so, in letters of any size. */
export function hasEnd(name: string, end: string): boolean {
  return name.toLowerCase().endsWith(end);
}

/** Which part of a model in several files this is, by `-00002-of-00003` before the ending; nothing of a whole one. */
export function partNumber(name: string): number | undefined {
  const [, number] = /-(\d{1,9})-of-\d{1,9}\.[a-z]+$/i.exec(name) ?? [];
  return number === undefined ? undefined : Number(number);
}
