// dialect.h - how a family of models writes tool calls and reasoning, as tables. The state machine
// that reads them is output_parser.h, the one that writes them call_text.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

enum class StepKind : uint8_t {
  kLiteral,     // this text
  kMaybe,       // this text, or nothing; not written
  kMaybeWord,   // this text and a word behind it, or nothing; not written
  kName,        // the function's name
  kArguments,   // in the dialect's form; the call ends with them
  kCallObject,  // {"name": .., "arguments": ..}; the call ends with it
};

// A call is its steps one after the other. Space around them has no meaning.
struct Step {
  StepKind kind;
  std::string_view text = {};
};

enum class ArgumentsForm : uint8_t {
  kJson,           // as it is
  kXmlParameters,  // <parameter=KEY>\nVALUE\n</parameter>... </function>
  kBareKeys,       // {key:value}, strings between the dialect's own quotes
};

struct ToolDialect {
  std::string_view name;               // as --tool-call-parser has it
  std::string_view section_open = {};  // stands once, before the first call
  std::string_view call_open = {};
  std::string_view behind_open = {};  // space, written there
  bool bare = false;     // a call object may also begin an answer without call_open; written so
  bool in_list = false;  // or calls stand as objects in a JSON list behind call_open
  std::span<const Step> steps = {};
  ArgumentsForm form = ArgumentsForm::kJson;
  std::string_view arguments_key = "arguments";  // of a call object, when written; both are read
  std::string_view quote = {};                   // of kBareKeys
  std::string_view call_close = {};              // written behind a call, space included
  bool close_stops = false;       // as a token call_close ends the answer: there is one call
  std::string_view between = {};  // written between two calls
  std::string_view section_close = {};
  std::span<const std::string_view> closers = {};  // read behind a call, in any number
  int id_length = 0;  // of call ids: the template wants so many letters and digits; 0: call_ and 24
};

// Text between markers that comes before the answer.
struct ReasoningDialect {
  std::string_view name;  // as --reasoning-parser has it
  std::string_view open;
  std::string_view close;
  bool assumed_open = false;         // the model begins inside, whether the prompt says so or not
  std::string_view open_token = {};  // the part of `open` that can be a token, when not all of it
};

// Messages with a header each that says what they are: gpt-oss. Stands for both of the above.
struct ChannelDialect {
  std::span<const std::string_view> header_opens;
  std::string_view header_close;
  std::span<const std::string_view> ends;
  std::string_view reasoning_channel;
  std::string_view recipient;  // before a function's name in a header
  std::string_view other;      // a marker inside headers that says nothing here
};

struct Dialect {
  const ToolDialect* tools = nullptr;  // null: calls are text
  const ReasoningDialect* reasoning = nullptr;
  const ChannelDialect* channels = nullptr;

  // Every marker, for the vocabulary to be asked whether it is a token.
  std::vector<std::string_view> markers() const;
};

extern const ToolDialect kHermes;
extern const ToolDialect kQwenXml;
extern const ToolDialect kLlama3;
extern const ToolDialect kHarmony;
extern const ToolDialect kDeepSeekV3;
extern const ToolDialect kDeepSeekV31;
extern const ToolDialect kMistral;
extern const ToolDialect kGemma4;
extern const ToolDialect kFunctionGemma;

extern const ReasoningDialect kQwen3Reasoning;
extern const ReasoningDialect kDeepSeekR1Reasoning;
extern const ReasoningDialect kMistralReasoning;
extern const ReasoningDialect kGemma4Reasoning;
extern const ReasoningDialect kHarmonyReasoning;

extern const ChannelDialect kHarmonyChannels;

// By vLLM's names; null when there is none of that name.
const ToolDialect* find_tool_dialect(std::string_view name);
const ReasoningDialect* find_reasoning_dialect(std::string_view name);
std::vector<std::string_view> tool_dialect_names();
std::vector<std::string_view> reasoning_dialect_names();

// What the template writes, so what the model was taught.
Dialect detect_dialect(std::string_view chat_template);

// A function that may be called.
struct Tool {
  std::string name = {};
  nlohmann::ordered_json parameters = {};  // a JSON schema of an object
};

}  // namespace octavo
