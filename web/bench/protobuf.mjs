/** The part of protocol buffers that an ONNX file needs: fields of numbers, texts, bytes and messages. */

/** Type of a field on the wire. */
const [VARINT, LENGTH, FIXED] = [0, 2, 5];

/** @param {number} value */
function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
}

const key = (field, type) => varint(field * 8 + type);

/** A field with a whole number. */
export const integer = (field, value) => Buffer.concat([key(field, VARINT), varint(value)]);

/** A field with a text, bytes, or the fields of a message. */
export function message(field, ...content) {
  const body = Buffer.concat(content.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
  return Buffer.concat([key(field, LENGTH), varint(body.length), body]);
}

/** A field with a number in `f32`. */
export function float(field, value) {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([key(field, FIXED), bytes]);
}
