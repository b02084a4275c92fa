// Hermes 2 Pro, Qwen2.5, Qwen3: <tool_call>{"name": .., "arguments": {..}}</tool_call>
#include <array>

#include "text/dialects/dialect.h"

namespace octavo {
namespace {

constexpr std::array<Step, 1> kHermesSteps = {{{StepKind::kCallObject}}};
constexpr std::array<std::string_view, 1> kHermesClosers = {"</tool_call>"};

}  // namespace

const ToolDialect kHermes = {.name = "hermes",
                             .call_open = "<tool_call>",
                             .after_open = "\n",
                             .steps = kHermesSteps,
                             .call_close = "\n</tool_call>",
                             .between = "\n",
                             .closers = kHermesClosers};

}  // namespace octavo
