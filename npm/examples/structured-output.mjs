/** Generates JSON that is valid under a schema, and one of two answers. */

import { load } from "setun";

const schema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    age: { type: "integer", minimum: 1, maximum: 99 },
    pets: { type: "array", items: { enum: ["cat", "dog"] }, maxItems: 3 },
  },
  required: ["name", "age", "pets"],
  additionalProperties: false,
};

const model = await load();

const json = await model
  .generate("Once upon a time", {
    responseFormat: { type: "json_schema", schema },
    seed: 1,
  })
  .text();
console.log(JSON.parse(json));

const answer = await model
  .generate("The sky is", {
    responseFormat: { type: "choice", choices: [" blue", " made of cheese"] },
  })
  .text();
console.log(answer);

await model.dispose();
