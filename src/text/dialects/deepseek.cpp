// DeepSeek V3 (type, name and fenced JSON) and V3.1 (name and JSON).
#include <array>

#include "text/dialects/dialect.h"

namespace octavo {
namespace {

constexpr std::string_view kSectionOpen = "<｜tool▁calls▁begin｜>";
constexpr std::string_view kCallOpen = "<｜tool▁call▁begin｜>";
constexpr std::string_view kSep = "<｜tool▁sep｜>";
constexpr std::string_view kCallClose = "<｜tool▁call▁end｜>";
constexpr std::string_view kSectionClose = "<｜tool▁calls▁end｜>";

constexpr std::array<Step, 5> kV3Steps = {{{StepKind::kLiteral, "function"},
                                           {StepKind::kLiteral, kSep},
                                           {StepKind::kName},
                                           {StepKind::kLiteral, "\n```json\n"},
                                           {StepKind::kArguments}}};
constexpr std::array<std::string_view, 3> kV3Closers = {"```", kCallClose, kSectionClose};
constexpr std::array<Step, 3> kV31Steps = {
    {{StepKind::kName}, {StepKind::kLiteral, kSep}, {StepKind::kArguments}}};
constexpr std::array<std::string_view, 2> kV31Closers = {kCallClose, kSectionClose};

}  // namespace

const ToolDialect kDeepSeekV3 = {.name = "deepseek_v3",
                                 .section_open = kSectionOpen,
                                 .call_open = kCallOpen,
                                 .steps = kV3Steps,
                                 .call_close = "\n```<｜tool▁call▁end｜>",
                                 .between = "\n",
                                 .section_close = kSectionClose,
                                 .closers = kV3Closers};

const ToolDialect kDeepSeekV31 = {.name = "deepseek_v31",
                                  .section_open = kSectionOpen,
                                  .call_open = kCallOpen,
                                  .steps = kV31Steps,
                                  .call_close = kCallClose,
                                  .section_close = kSectionClose,
                                  .closers = kV31Closers};

const ReasoningDialect kDeepSeekR1Reasoning = {
    .name = "deepseek_r1", .open = "<think>", .close = "</think>", .assumed_open = true};

}  // namespace octavo
