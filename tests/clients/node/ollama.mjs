// Ollama's client for Node against a running server: node ollama.mjs URL. Leaves with 1 at the first thing that is wrong.
import assert from "node:assert/strict";
import { Ollama } from "ollama";

const host = process.argv[2].replace(/\/$/, "");
const key = process.env.OCTAVO_API_KEY;
const client = new Ollama({ host, headers: key ? { Authorization: `Bearer ${key}` } : {} });
const model = (await client.list()).models[0].model;
const options = { temperature: 0, num_predict: 24 };
const messages = [{ role: "user", content: "What is the capital of France?" }];
const size = { type: "object", properties: { size: { enum: [1, 22, 333] } }, required: ["size"], additionalProperties: false };

const steps = {
  async "chat, whole and streamed"() {
    const whole = await client.chat({ model, messages, options });
    assert.ok(whole.message.content.length > 0 && whole.done && whole.eval_count <= 24 && whole.total_duration > 0);
    let text = "", last = null;
    for await (const part of await client.chat({ model: `${model}:latest`, messages, options, stream: true })) {
      text += part.message.content;
      last = part;
    }
    assert.equal(text, whole.message.content);
    assert.ok(last.done && last.eval_count === whole.eval_count && last.done_reason === whole.done_reason);
  },
  async "generate, streamed, raw and loaded"() {
    const whole = await client.generate({ model, prompt: messages[0].content, options });
    assert.equal(whole.response, (await client.chat({ model, messages, options })).message.content);
    let text = "";
    for await (const part of await client.generate({ model, prompt: messages[0].content, options, stream: true })) text += part.response;
    assert.equal(text, whole.response);
    assert.ok((await client.generate({ model, prompt: "One, two,", raw: true, options })).response.length > 0);
    assert.equal((await client.generate({ model, prompt: "" })).done_reason, "load");
  },
  async "format is enforced"() {
    const answer = await client.chat({ model, messages, format: size, options: { ...options, num_predict: 100 } });
    assert.ok([1, 22, 333].includes(JSON.parse(answer.message.content).size));
  },
  async "an aborted stream leaves the server well"() {
    const stream = await client.chat({ model, messages, options: { num_predict: 200 }, stream: true });
    for await (const _ of stream) { stream.abort(); break; }
    assert.ok((await client.chat({ model, messages, options })).done);
  },
  async "list, ps, show and version"() {
    assert.equal((await client.ps()).models[0].name, model);
    const shown = await client.show({ model });
    assert.ok(shown.capabilities.includes("completion") && shown.details.family.length > 0);
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
  },
  async "errors have their status and name the field"() {
    const refused = (fields) => client.chat({ model, messages, ...fields });
    await assert.rejects(refused({ options: { mirostat: 1 } }), (e) => e.status_code === 400 && e.message.startsWith("options.mirostat: "));
    await assert.rejects(refused({ model: "llama3" }), (e) => e.status_code === 404);
    await assert.rejects(client.pull({ model: "llama3" }), (e) => e.status_code === 403 && e.message.includes("octavo pull"));
    await assert.rejects(client.delete({ model }), (e) => e.status_code === 403);
  },
};

for (const [name, step] of Object.entries(steps)) {
  await step();
  console.log(`ok  ollama: ${name}`);
}
