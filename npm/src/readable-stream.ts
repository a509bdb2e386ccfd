/** Web streams over a generation. */

/** A stream of the values of an iterable, which is read as the stream is. Cancelling it calls `stop`. */
export function toStream<Value>(iterable: AsyncIterable<Value>, stop: () => void): ReadableStream<Value> {
  const iterator = iterable[Symbol.asyncIterator]();
  return new ReadableStream<Value>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        stop();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** The texts of deltas that have one. */
export async function* textsOf(deltas: AsyncIterable<{ readonly text: string }>): AsyncGenerator<string> {
  for await (const { text } of deltas) if (text !== "") yield text;
}
