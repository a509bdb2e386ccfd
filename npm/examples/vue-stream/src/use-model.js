/** A model as reactive state, with one text at a time. */

import { load } from "setun";
import { onUnmounted, ref } from "vue";

export function useModel(source) {
  const status = ref("Loading…");
  const text = ref("");
  const isRunning = ref(false);
  let generation;

  const loading = load(source);
  loading.then(
    ({ info }) => {
      status.value = `${info.name} on ${info.backend}`;
    },
    (error) => {
      status.value = `${error.code}: ${error.message}`;
    },
  );
  onUnmounted(() =>
    loading.then(
      (model) => model.dispose(),
      () => {},
    ),
  );

  async function run(prompt, options) {
    isRunning.value = true;
    text.value = "";
    try {
      generation = (await loading).generate(prompt, options);
      for await (const delta of generation) text.value += delta.text;
      const { finishReason, usage } = await generation.result;
      status.value = `finished: ${finishReason}, ${usage.completionTokens} tokens`;
    } catch (error) {
      status.value = `${error.code}: ${error.message}`;
    } finally {
      isRunning.value = false;
    }
  }

  return { status, text, isRunning, run, stop: () => generation?.stop() };
}
