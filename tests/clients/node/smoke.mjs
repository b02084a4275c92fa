// OpenAI's client for Node against a running server: node smoke.mjs URL. Leaves with 1 at the first thing that is wrong.
import assert from "node:assert/strict";
import OpenAI, { AuthenticationError, BadRequestError, NotFoundError } from "openai";

const baseURL = process.argv[2].replace(/\/$/, "") + "/v1";
const apiKey = process.env.OCTAVO_API_KEY ?? "none";
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const greedy = { model, temperature: 0, max_tokens: 24 };
const messages = [{ role: "user", content: "What is the capital of France?" }];

const steps = {
  async "models.retrieve"() {
    assert.equal((await client.models.retrieve(model)).id, model);
  },
  async "chat, whole and streamed"() {
    const whole = await client.chat.completions.create({ ...greedy, messages });
    assert.ok(whole.choices[0].message.content.length > 0);
    assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
    const stream = await client.chat.completions.create({
      ...greedy, messages, stream: true, stream_options: { include_usage: true } });
    let text = "", usage = null;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  },
  async "the stream helper"() {
    const whole = await client.chat.completions.create({ ...greedy, messages });
    const runner = client.chat.completions.stream({ ...greedy, messages });
    assert.equal(await runner.finalContent(), whole.choices[0].message.content);
  },
  async "completions, whole, streamed and scored"() {
    const asked = { ...greedy, prompt: "One, two, three, four,", logprobs: 2 };
    const whole = await client.completions.create(asked);
    let text = "";
    for await (const chunk of await client.completions.create({ ...asked, stream: true }))
      text += chunk.choices[0].text;
    assert.equal(text, whole.choices[0].text);
    assert.equal(whole.choices[0].logprobs.tokens.length, whole.usage.completion_tokens);
  },
  async "an aborted stream leaves the server well"() {
    const stream = await client.chat.completions.create({ ...greedy, max_tokens: 200, messages, stream: true });
    for await (const _ of stream) break;
    assert.ok((await client.chat.completions.create({ ...greedy, messages })).choices.length === 1);
  },
  async "errors have their types and name the field"() {
    const refused = (fields) => client.chat.completions.create({ ...greedy, messages, ...fields });
    await assert.rejects(refused({ temperature: -1 }), (e) => e instanceof BadRequestError && e.param === "temperature");
    await assert.rejects(refused({ no_such_field: 1 }), (e) => e instanceof BadRequestError && e.param === "no_such_field");
    await assert.rejects(refused({ model: "gpt-4" }), (e) => e instanceof NotFoundError && e.param === "model");
    if (process.env.OCTAVO_API_KEY) {
      const stranger = new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 });
      await assert.rejects(stranger.models.list(), (e) => e instanceof AuthenticationError);
    }
  },
  async "eight at once answer as one alone"() {
    const ask = () => client.chat.completions.create({ ...greedy, messages });
    const alone = (await ask()).choices[0].message.content;
    for (const answer of await Promise.all(Array.from({ length: 8 }, ask)))
      assert.equal(answer.choices[0].message.content, alone);
  },
};

for (const [name, step] of Object.entries(steps)) {
  await step();
  console.log(`ok  ${name}`);
}
