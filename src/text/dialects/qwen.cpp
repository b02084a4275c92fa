// Qwen3-Coder and Qwen3.5: <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function>
// </tool_call>; and Qwen3's reasoning.
#include <array>

#include "text/dialects/dialect.h"

namespace octavo {
namespace {

constexpr std::array<Step, 4> kQwenSteps = {{{StepKind::kLiteral, "<function="},
                                             {StepKind::kName},
                                             {StepKind::kLiteral, ">"},
                                             {StepKind::kArguments}}};
constexpr std::array<std::string_view, 1> kQwenClosers = {"</tool_call>"};

}  // namespace

const ToolDialect kQwenXml = {.name = "qwen3_coder",
                              .call_open = "<tool_call>",
                              .after_open = "\n",
                              .steps = kQwenSteps,
                              .form = ArgumentsForm::kXmlParameters,
                              .call_close = "\n</tool_call>",
                              .between = "\n",
                              .closers = kQwenClosers};

const ReasoningDialect kQwen3Reasoning = {.name = "qwen3", .open = "<think>", .close = "</think>"};

}  // namespace octavo
