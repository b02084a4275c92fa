#include "text/dialects/output_parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "text/testing/shown_parts.h"

namespace octavo {
namespace {

const nlohmann::ordered_json kWeather = nlohmann::ordered_json::parse(R"({
  "type": "object",
  "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
                 "tags": {"type": "array"}, "unit": {"type": ["string", "null"]}}})");

OutputParserOptions options(const ToolDialect& tools,
                            const ReasoningDialect* reasoning = &kQwen3Reasoning) {
  OutputParserOptions made{.dialect = {.tools = &tools, .reasoning = reasoning}};
  if (&tools == &kHarmony) made.dialect.channels = &kHarmonyChannels;
  made.tools = {{"weather", kWeather}, {"time", nlohmann::ordered_json::object()}};
  return made;
}

// The parts as "text", "[reasoning]", "name(arguments)". Pushes single bytes: every boundary.
std::string read(const OutputParserOptions& options, std::string_view text) {
  OutputParser parser(options);
  std::vector<OutputPart> parts;
  for (const char c : text) append_parts(parts, parser.push({&c, 1}));
  append_parts(parts, parser.finish());
  return shown_parts(parts);
}

TEST(Hermes, ReadsCallsBetweenMarkers) {
  const auto hermes = options(kHermes);
  EXPECT_EQ(read(hermes, R"(<tool_call>
{"name": "weather", "arguments": {"city": "Rome"}}
</tool_call>)"),
            R"(weather({"city": "Rome"}))");
  EXPECT_EQ(read(hermes,
                 "Let me see.\n\n<tool_call>{\"name\":\"time\",\"arguments\":{}}</tool_call>\n"
                 "<tool_call>{\"arguments\":{\"a\":\"}\"},\"name\":\"weather\"}</tool_call>\n"),
            "Let me see.|time({})|weather({\"a\":\"}\"})");
}

TEST(Hermes, ThinkingComesFirst) {
  const auto hermes = options(kHermes);
  EXPECT_EQ(read(hermes, "<think>\nHm. <tool_call>?\n</think>\n\nYes </think>."),
            "[Hm. <tool_call>?]|Yes </think>.");
  auto inside = hermes;
  inside.starts_in_reasoning = true;
  EXPECT_EQ(read(inside, "\nHm.\n</think>\n\nYes"), "[Hm.]|Yes");
  EXPECT_EQ(read(inside, "<think>\nHm.\n</think>\n\nYes"), "[Hm.]|Yes");
  EXPECT_EQ(read(inside, "never ends"), "[never ends]");
  EXPECT_EQ(read(hermes, "never opened</think>Yes"), "never openedYes");
  EXPECT_EQ(read(hermes, "a <think> b"), "a <think> b");
}

TEST(Hermes, TextThatIsNotACallIsContent) {
  const auto hermes = options(kHermes);
  EXPECT_EQ(read(hermes, "<tool_cal"), "<tool_cal");
  EXPECT_EQ(read(hermes, "a <tool_call> b"), "a <tool_call> b");
  EXPECT_EQ(read(hermes, "<tool_call>{\"name\": \"weat"), "<tool_call>{\"name\": \"weat");
  EXPECT_EQ(read(hermes, "<tool_call>{\"name\": 3}</tool_call>"),
            "<tool_call>{\"name\": 3}</tool_call>");
  EXPECT_EQ(read(hermes, "<tool_call>oops<tool_call>{\"name\":\"time\"}</tool_call>"),
            "<tool_call>oops|time({})");
  EXPECT_EQ(read(hermes, "  plain \n"), "  plain \n");
}

TEST(Hermes, BrokenArgumentsStayArguments) {
  const auto hermes = options(kHermes);
  EXPECT_EQ(read(hermes, "<tool_call>{\"name\":\"time\",\"arguments\":{\"a\":[1}}</tool_call>x"),
            "time({\"a\":[1}})|x");
  EXPECT_EQ(read(hermes, "<tool_call>{\"name\":\"time\",\"arguments\":{\"a\": \"b"),
            "time({\"a\": \"b)");
  EXPECT_EQ(read(hermes, "<tool_call>{\"name\":\"time\",\"arguments\":{\"a\":1}</tool_call>x"),
            "time({\"a\":1})|x");
  EXPECT_EQ(
      read(hermes, "<tool_call>{\"name\":\"time\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>"),
      "time({\"a\":1})");
}

TEST(Hermes, WithoutToolsMarkersAreText) {
  auto hermes = options(kHermes);
  hermes.tools.clear();
  const std::string text = "<tool_call>{\"name\":\"time\"}</tool_call>";
  EXPECT_EQ(read(hermes, text), text);
  EXPECT_EQ(read(hermes, "<think>a</think>" + text), "[a]|" + text);
}

TEST(Hermes, TheAnswerCanEndWithItsFirstCall) {
  auto hermes = options(kHermes);
  hermes.max_calls = 1;
  const std::string call = "<tool_call>{\"name\":\"time\"}</tool_call>";
  EXPECT_EQ(read(hermes, call + call + "x"), "time({})");
}

TEST(QwenXml, ValuesFollowTheSchema) {
  const auto qwen = options(kQwenXml);
  EXPECT_EQ(
      read(qwen, R"(<tool_call>
<function=weather>
<parameter=city>
12 "quoted"
lines
</parameter>
<parameter=days>
3
</parameter>
<parameter=tags>
["a", 1]
</parameter>
<parameter=unit>null</parameter>
<parameter=new>7</parameter>
</function>
</tool_call>)"),
      R"(weather({"city": "12 \"quoted\"\nlines", "days": 3, "tags": ["a", 1], "unit": null, "new": "7"}))");
  EXPECT_EQ(read(qwen, "<tool_call><function=time></function></tool_call>"), "time({})");
  EXPECT_EQ(read(qwen, "<tool_call><function=weather><parameter=city>\n</parameter></function>"),
            R"(weather({"city": ""}))");
  EXPECT_EQ(
      read(qwen, "<tool_call><function=weather><parameter=days>\nTrue\n</parameter></function>"),
      R"(weather({"days": true}))");
  EXPECT_EQ(read(qwen, "<tool_call><function=weather><parameter=city>\nRo</par"),
            R"(weather({"city": "Ro</par))");
  EXPECT_EQ(read(qwen, "<tool_call>{\"name\": 1}"), "<tool_call>{\"name\": 1}");
}

TEST(Llama3, CallsAreBareObjects) {
  const auto llama = options(kLlama3, nullptr);
  EXPECT_EQ(read(llama, R"({"name": "weather", "parameters": {"city": "Rome"}})"),
            R"(weather({"city": "Rome"}))");
  EXPECT_EQ(
      read(
          llama,
          R"(<|python_tag|>{"name": "time", "parameters": {}}; {"name": "weather", "parameters": {"a": 1}})"),
      R"(time({})|weather({"a": 1}))");
  for (const char* other : {R"({"name": "Bob", "parameters": {}})", R"({"answer": 1})",
                            R"({"name": "time"})", R"(So {"name": "time", "parameters": {}})"}) {
    EXPECT_EQ(read(llama, other), other);
  }
}

TEST(Harmony, ChannelsDetermineTheKind) {
  const auto harmony = options(kHarmony, &kHarmonyReasoning);
  EXPECT_EQ(
      read(harmony,
           "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant<|channel|>commentary"
           "<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
           "<|constrain|>json<|message|>{\"city\":\"<|call|>\"}<|call|>"),
      "[Think.]|I look.|weather({\"city\":\"<|call|>\"})");
  EXPECT_EQ(
      read(harmony,
           "<|start|>assistant to=functions.time<|channel|>commentary json<|message|>{}<|call|>"
           "<|start|>assistant<|channel|>final<|message|>Done.<|return|>"),
      "time({})|Done.");
  EXPECT_EQ(read(harmony, "<|channel|>final<|message|>Done"), "Done");
  auto without = harmony;
  without.tools.clear();
  EXPECT_EQ(read(without, "<|channel|>commentary to=functions.time<|message|>{}<|call|>"), "{}");
}

TEST(DeepSeek, BothForms) {
  EXPECT_EQ(
      read(options(kDeepSeekV3, nullptr),
           "I ask.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n"
           "```json\n{\"city\": \"Rome\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function"
           "<｜tool▁sep｜>time\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
      "I ask.|weather({\"city\": \"Rome\"})|time({})");
  EXPECT_EQ(
      read(options(kDeepSeekV31, &kDeepSeekR1Reasoning),
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>time<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
           "<｜tool▁calls▁end｜>"),
      "time({})");
  const std::string none = "<｜tool▁calls▁begin｜>none";
  EXPECT_EQ(read(options(kDeepSeekV31, nullptr), none), none);
}

TEST(Mistral, AllThreeForms) {
  const auto mistral = options(kMistral, &kMistralReasoning);
  EXPECT_EQ(
      read(
          mistral,
          R"([TOOL_CALLS] [{"name": "time", "arguments": {}, "id": "abc"}, {"name": "weather", "arguments": {"city": "]"}}])"),
      R"(time({})|weather({"city": "]"}))");
  EXPECT_EQ(read(mistral, R"([TOOL_CALLS]time[ARGS]{}[TOOL_CALLS]weather{"a": 1})"),
            R"(time({})|weather({"a": 1}))");
  EXPECT_EQ(read(mistral, R"([THINK]Hm.[/THINK][TOOL_CALLS]time[CALL_ID]x9[ARGS]{})"),
            "[Hm.]|time({})");
  EXPECT_EQ(read(mistral, "[TOOL_CALLS]?"), "[TOOL_CALLS]?");
}

TEST(Gemma, KeysAreBare) {
  const auto gemma = options(kGemma4Tools, &kGemma4Reasoning);
  EXPECT_EQ(
      read(gemma, R"(<|channel>thought
Hm.<channel|><|tool_call>call:weather{city:<|"|>Ro"me<|"|>,days:3,tags:[1,<|"|>a<|"|>,{b:true}],e:{},f:[]}<tool_call|><|tool_call>call:time{}<tool_call|>)"),
      R"([Hm.]|weather({"city": "Ro\"me", "days": 3, "tags": [1, "a", {"b": true}], "e": {}, "f": []})|time({}))");
  EXPECT_EQ(read(options(kFunctionGemma, nullptr),
                 "<start_function_call>call:weather{city:<escape>Rome<escape>}<end_function_call>"),
            R"(weather({"city": "Rome"}))");
}

TEST(DetectDialect, DetectsTheDialectFromTheTemplate) {
  EXPECT_EQ(detect_dialect("x <tool_call>").tools, &kHermes);
  EXPECT_EQ(detect_dialect("x <tool_call><function=").tools, &kQwenXml);
  EXPECT_EQ(detect_dialect("[TOOL_CALLS] [THINK]").reasoning, &kMistralReasoning);
  EXPECT_EQ(detect_dialect("<|channel|> <|message|>").channels, &kHarmonyChannels);
  EXPECT_EQ(detect_dialect("</think> <tool_call>").reasoning, &kQwen3Reasoning);
  EXPECT_EQ(detect_dialect("plain {{ messages }}").tools, nullptr);
  EXPECT_EQ(find_tool_dialect("qwen3_xml"), &kQwenXml);
  EXPECT_EQ(find_tool_dialect("unknown"), nullptr);
}

}  // namespace
}  // namespace octavo
