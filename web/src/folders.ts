/** Models that the user drops on the page or chooses: folders, and files that are one. */

import type { Choice } from "./current-model.js";

/** What is dropped; `undefined` if nothing. Must be called while the event is handled: the library reads the entries. */
export function droppedModel(data: DataTransfer): Choice | undefined {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const [first] = entries;
  return first === undefined ? chosenModel(data.files) : { name: nameOf(entries), source: entries };
}

/** What a file input holds: a folder, a file or several. */
export function chosenModel(files: FileList): Choice | undefined {
  const [first] = files;
  if (first === undefined) return undefined;
  const folder = first.webkitRelativePath.split("/")[0];
  return { name: folder || nameOf([...files]), source: [...files] };
}

function nameOf(files: readonly { readonly name: string }[]): string {
  const model = files.find(({ name }) => /\.(setun|gguf|onnx|safetensors)$/i.test(name)) ?? files[0];
  return model?.name ?? "";
}
