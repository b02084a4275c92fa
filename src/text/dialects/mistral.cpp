// Mistral: [TOOL_CALLS]NAME[ARGS]{..} for each call, or, in older models, one list of call objects;
// and Magistral's [THINK].
#include <array>

#include "text/dialects/dialect.h"

namespace octavo {
namespace {

constexpr std::array<Step, 4> kMistralSteps = {{{StepKind::kName},
                                                {StepKind::kMaybeWord, "[CALL_ID]"},
                                                {StepKind::kMaybe, "[ARGS]"},
                                                {StepKind::kArguments}}};

}  // namespace

const ToolDialect kMistral = {.name = "mistral",
                              .call_open = "[TOOL_CALLS]",
                              .in_list = true,
                              .steps = kMistralSteps,
                              .id_length = 9};

const ReasoningDialect kMistralReasoning = {
    .name = "mistral", .open = "[THINK]", .close = "[/THINK]"};

}  // namespace octavo
