// Any text as a chat template is refused, or renders a conversation, or fails to with an error that
// is not a bug of ours. Rendering has fewer steps than in a server, for more executions.
#include <octavo_rust.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/rust_border.h"
#include "text/chat_template.h"
#include "text/dialects/dialect.h"

namespace octavo {
namespace {

constexpr uint64_t kSteps = 20'000;
constexpr std::string_view kVariables = R"({
  "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "enable_thinking": false,
  "messages": [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Read it."}, {"type": "image"}]},
    {"role": "assistant", "content": null, "reasoning_content": "So.\n", "tool_calls": [
      {"id": "call00001", "type": "function",
       "function": {"name": "read", "arguments": {"path": "a.txt", "lines": [1, 2.5, true, null]}}}]},
    {"role": "tool", "tool_call_id": "call00001", "content": "\u00e9 <b>"},
    {"role": "user", "content": "Thanks"}],
  "tools": [{"type": "function", "function": {"name": "read", "description": "Reads",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}},
                   "required": ["path"]}}}],
  "documents": [{"title": "t", "text": "x"}]})";

}  // namespace
}  // namespace octavo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octavo;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  detect_dialect(source);
  octavo_template* handle = nullptr;
  const octavo_template_limits limits{.output_bytes = kTemplateOutputBytes,
                                      .stack_bytes = kTemplateStackBytes};
  octavo_rust_status status =
      octavo_template_new(source.data(), source.size(), limits, &handle, nullptr);
  OCTAVO_CHECK(status != OCTAVO_RUST_BUG);
  if (status != OCTAVO_RUST_OK) return 0;
  RustText text;
  RustText error;
  status = octavo_template_render(handle, kVariables.data(), kVariables.size(), kSteps, nullptr,
                                  text.out(), error.out());
  OCTAVO_CHECK(status != OCTAVO_RUST_BUG);
  expect_ok(octavo_template_free(handle));
  return 0;
}
