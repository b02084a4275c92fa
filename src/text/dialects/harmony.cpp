// gpt-oss: <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{..}<|call|>
#include <array>

#include "text/dialects/dialect.h"

namespace octavo {
namespace {

constexpr std::array<std::string_view, 2> kHeaderOpens = {"<|channel|>", "<|start|>"};
constexpr std::array<std::string_view, 3> kEnds = {"<|end|>", "<|return|>", "<|call|>"};
constexpr std::array<Step, 4> kHarmonySteps = {
    {{StepKind::kLiteral, "commentary to=functions."},
     {StepKind::kName},
     {StepKind::kLiteral, " <|constrain|>json<|message|>"},
     {StepKind::kArguments}}};

}  // namespace

const ToolDialect kHarmony = {.name = "openai",
                              .call_open = "<|channel|>",
                              .steps = kHarmonySteps,
                              .call_close = "<|call|>",
                              .close_stops = true,
                              .between = "<|start|>assistant",
                              .closers = kEnds};

// Used for reasoning budgets and grammars; parsing uses the channels.
const ReasoningDialect kHarmonyReasoning = {
    .name = "openai_gptoss", .open = "<|channel|>analysis<|message|>", .close = "<|end|>"};

const ChannelDialect kHarmonyChannels = {.header_opens = kHeaderOpens,
                                         .header_close = "<|message|>",
                                         .ends = kEnds,
                                         .reasoning_channel = "analysis",
                                         .recipient = "to=functions.",
                                         .other = "<|constrain|>"};

}  // namespace octavo
