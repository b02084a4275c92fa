// The agent loop of tests/e2e/test_agent_loop.py by OpenAI's client for Node: node agent.mjs URL TOOLS.json. Prints the calls
// that each way led to.
import { readFileSync } from "node:fs";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2].replace(/\/$/, "") + "/v1", apiKey: "none", maxRetries: 0 });
const { specs, about, question, script, results } = JSON.parse(readFileSync(process.argv[3], "utf8"));
const model = "agent";

async function byChat(stream) {
  const tools = Object.entries(specs).map(([name, parameters]) => (
    { type: "function", function: { name, description: about[name], parameters } }));
  const messages = [{ role: "user", content: question }];
  const calls = [];
  for (const [turn, wanted] of script.entries()) {
    const asked = {
      model, messages, tools, temperature: 0, seed: 1, max_tokens: 200, parallel_tool_calls: false,
      tool_choice: wanted ? { type: "function", function: { name: wanted } } : "required" };
    const message = stream ? await client.chat.completions.stream(asked).finalMessage()
      : (await client.chat.completions.create(asked)).choices[0].message;
    const [call] = message.tool_calls;
    calls.push([call.function.name, JSON.parse(call.function.arguments)]);
    messages.push({ role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: call.id, content: results[turn] });
  }
  return calls;
}

async function byResponses(stream) {
  const tools = Object.entries(specs).map(([name, parameters]) => (
    { type: "function", name, description: about[name], parameters, strict: true }));
  let input = [{ role: "user", content: question }];
  let previous = null;
  const calls = [];
  for (const [turn, wanted] of script.entries()) {
    const asked = {
      model, input, tools, temperature: 0, seed: 1, max_output_tokens: 200, parallel_tool_calls: false,
      previous_response_id: previous, tool_choice: wanted ? { type: "function", name: wanted } : "required" };
    const response = stream ? await client.responses.stream(asked).finalResponse() : await client.responses.create(asked);
    const call = response.output.find((item) => item.type === "function_call");
    calls.push([call.name, JSON.parse(call.arguments)]);
    previous = response.id;
    input = [{ type: "function_call_output", call_id: call.call_id, output: results[turn] }];
  }
  return calls;
}

console.log(JSON.stringify({
  chat: await byChat(false), "chat streamed": await byChat(true),
  responses: await byResponses(false), "responses streamed": await byResponses(true) }));
