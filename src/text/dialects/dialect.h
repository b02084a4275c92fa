// dialect.h - tables that describe how a model family writes tool calls and reasoning, used for
// parsing by output_parser.h and for writing by call_text.h.
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
  kMaybe,       // optionally this text; never written
  kMaybeWord,   // optionally this text followed by a word; never written
  kName,        // the function's name
  kArguments,   // in the dialect's form; ends the call
  kCallObject,  // {"name": .., "arguments": ..}; ends the call
};

// A call is a sequence of steps. Whitespace around them is ignored.
struct Step {
  StepKind kind;
  std::string_view text = {};
};

enum class ArgumentsForm : uint8_t {
  kJson,           // unchanged
  kXmlParameters,  // <parameter=KEY>\nVALUE\n</parameter>... </function>
  kBareKeys,       // {key:value}, strings between the dialect's own quotes
};

struct ToolDialect {
  std::string_view name;               // the value of --tool-call-parser
  std::string_view section_open = {};  // once, before the first call
  std::string_view call_open = {};
  std::string_view after_open = {};  // whitespace, written after call_open
  bool bare = false;     // an answer may begin with a call object without call_open; written so
  bool in_list = false;  // after call_open, calls may also be objects in a JSON list
  std::span<const Step> steps = {};
  ArgumentsForm form = ArgumentsForm::kJson;
  std::string_view arguments_key =
      "arguments";                   // of a call object when written; both keys are read
  std::string_view quote = {};       // for kBareKeys
  std::string_view call_close = {};  // written after a call, including whitespace
  bool close_stops = false;          // the token call_close ends the answer, so there is one call
  std::string_view between = {};     // written between two calls
  std::string_view section_close = {};
  std::span<const std::string_view> closers = {};  // skipped after a call, any number of them
  int id_length = 0;  // length of call ids that the template requires; 0: "call_" and 24 characters
};

// Reasoning is text between markers, before the answer.
struct ReasoningDialect {
  std::string_view name;  // the value of --reasoning-parser
  std::string_view open;
  std::string_view close;
  bool assumed_open = false;  // the model starts in reasoning even if the prompt has no marker
  std::string_view open_token = {};  // the part of `open` that can be a token, if not all of it
};

// gpt-oss: each message has a header that states its kind. Replaces both of the above.
struct ChannelDialect {
  std::span<const std::string_view> header_opens;
  std::string_view header_close;
  std::span<const std::string_view> ends;
  std::string_view reasoning_channel;
  std::string_view recipient;  // precedes a function's name in a header
  std::string_view other;      // a marker inside headers that is ignored
};

struct Dialect {
  const ToolDialect* tools = nullptr;  // null: calls are plain text
  const ReasoningDialect* reasoning = nullptr;
  const ChannelDialect* channels = nullptr;

  // All markers, to look up which of them are tokens of the vocabulary.
  std::vector<std::string_view> markers() const;
};

extern const ToolDialect kHermes;
extern const ToolDialect kQwenXml;
extern const ToolDialect kLlama3;
extern const ToolDialect kHarmony;
extern const ToolDialect kDeepSeekV3;
extern const ToolDialect kDeepSeekV31;
extern const ToolDialect kMistral;
extern const ToolDialect kGemma4Tools;
extern const ToolDialect kFunctionGemma;

extern const ReasoningDialect kQwen3Reasoning;
extern const ReasoningDialect kDeepSeekR1Reasoning;
extern const ReasoningDialect kMistralReasoning;
extern const ReasoningDialect kGemma4Reasoning;
extern const ReasoningDialect kHarmonyReasoning;

extern const ChannelDialect kHarmonyChannels;

// Looks up a dialect by vLLM's name; null if unknown.
const ToolDialect* find_tool_dialect(std::string_view name);
const ReasoningDialect* find_reasoning_dialect(std::string_view name);
std::vector<std::string_view> tool_dialect_names();
std::vector<std::string_view> reasoning_dialect_names();

// Detects the dialect from the markers the chat template writes.
Dialect detect_dialect(std::string_view chat_template);

// A function that may be called.
struct Tool {
  std::string name = {};
  nlohmann::ordered_json parameters = {};  // a JSON schema of an object
};

}  // namespace octavo
