// Any output of a model is divided into content, reasoning and calls, and how it arrives does not
// change the result.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fuzz/fuzz_input.h"
#include "text/dialects/output_parser.h"
#include "text/testing/shown_parts.h"

namespace octavo {
namespace {

Tool tool_named(const char* name) {
  return {name, nlohmann::ordered_json::parse(R"({"type": "object", "properties": {
      "text": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"},
      "more": {"type": "object"}, "list": {"type": "array"}, "maybe": {"type": "null"}}})")};
}

OutputParserOptions options_of(FuzzInput& input) {
  static const std::vector<std::string_view> tools = tool_dialect_names();
  static const std::vector<std::string_view> reasoning = reasoning_dialect_names();
  static const std::vector<Tool> functions = {tool_named("weather"), tool_named("get-time"),
                                              tool_named("a.b_C")};
  OutputParserOptions options{
      .dialect = {.tools = find_tool_dialect(input.any(tools)),
                  .reasoning = find_reasoning_dialect(input.any(reasoning))},
      .tools = functions};
  if (options.dialect.tools == &kHarmony) options.dialect.channels = &kHarmonyChannels;
  const uint8_t flags = input.byte();
  if ((flags & 1) != 0) options.dialect.reasoning = nullptr;
  if ((flags & 2) != 0) options.tools.clear();
  options.starts_in_reasoning = (flags & 4) != 0;
  options.max_calls = (flags & 8) != 0 ? 1 : 0;
  return options;
}

std::vector<OutputPart> parts_of(const OutputParserOptions& options,
                                 std::span<const std::string_view> pieces) {
  OutputParser parser(options);
  std::vector<OutputPart> parts;
  for (const std::string_view piece : pieces) append_parts(parts, parser.push(piece));
  append_parts(parts, parser.finish());
  OCTAVO_CHECK(parser.ended());
  int calls = 0;
  for (const OutputPart& part : parts) {
    calls += part.kind == PartKind::kToolCall ? 1 : 0;
    OCTAVO_CHECK(part.kind != PartKind::kToolArguments || part.call == calls - 1);
  }
  OCTAVO_CHECK(options.max_calls == 0 || calls <= options.max_calls);
  return parts;
}

}  // namespace
}  // namespace octavo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octavo;
  FuzzInput input(data, size);
  const OutputParserOptions options = options_of(input);
  const std::vector<std::string_view> pieces = input.pieces();
  const std::string_view whole = input.rest();
  OCTAVO_CHECK(shown_parts(parts_of(options, pieces)) ==
               shown_parts(parts_of(options, std::span(&whole, 1))));
  return 0;
}
