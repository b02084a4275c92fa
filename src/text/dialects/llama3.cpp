// Llama 3.1 and later: {"name": .., "parameters": {..}}, optionally after <|python_tag|>.
#include <array>

#include "text/dialects/dialect.h"

namespace octavo {
namespace {

constexpr std::array<Step, 1> kLlama3Steps = {{{StepKind::kCallObject}}};
constexpr std::array<std::string_view, 3> kLlama3Closers = {";", "<|eom_id|>", "<|eot_id|>"};

}  // namespace

const ToolDialect kLlama3 = {.name = "llama3_json",
                             .call_open = "<|python_tag|>",
                             .bare = true,
                             .steps = kLlama3Steps,
                             .arguments_key = "parameters",
                             .between = "; ",
                             .closers = kLlama3Closers};

}  // namespace octavo
