// Gemma 4 and FunctionGemma: call:NAME{key:value} with their own quotes. Gemma 3's template has no
// tools; its calls follow whatever the prompt specifies (the fallback prompt specifies Hermes').
#include <array>

#include "text/dialects/dialect.h"

namespace octavo {
namespace {

constexpr std::array<Step, 3> kGemmaSteps = {
    {{StepKind::kLiteral, "call:"}, {StepKind::kName}, {StepKind::kArguments}}};
// After its calls the model waits for a tool response.
constexpr std::array<std::string_view, 2> kGemma4Closers = {"<tool_call|>", "<|tool_response>"};
constexpr std::array<std::string_view, 2> kFunctionGemmaClosers = {"<end_function_call>",
                                                                   "<start_function_response>"};

}  // namespace

const ToolDialect kGemma4Tools = {.name = "gemma4",
                                  .call_open = "<|tool_call>",
                                  .steps = kGemmaSteps,
                                  .form = ArgumentsForm::kBareKeys,
                                  .quote = "<|\"|>",
                                  .call_close = "<tool_call|>",
                                  .closers = kGemma4Closers};

const ToolDialect kFunctionGemma = {.name = "functiongemma",
                                    .call_open = "<start_function_call>",
                                    .steps = kGemmaSteps,
                                    .form = ArgumentsForm::kBareKeys,
                                    .quote = "<escape>",
                                    .call_close = "<end_function_call>",
                                    .closers = kFunctionGemmaClosers};

const ReasoningDialect kGemma4Reasoning = {.name = "gemma4",
                                           .open = "<|channel>thought",
                                           .close = "<channel|>",
                                           .open_token = "<|channel>"};

}  // namespace octavo
