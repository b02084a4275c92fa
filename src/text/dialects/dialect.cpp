#include "text/dialects/dialect.h"

#include <algorithm>
#include <array>

namespace octavo {
namespace {

template <typename Table>
struct Named {
  std::string_view name;  // vLLM has several names for some dialects
  const Table* table;
};

constexpr std::array kTools =
    std::to_array<Named<ToolDialect>>({{"hermes", &kHermes},
                                       {"qwen3_coder", &kQwenXml},
                                       {"qwen3_xml", &kQwenXml},
                                       {"llama3_json", &kLlama3},
                                       {"openai", &kHarmony},
                                       {"deepseek_v3", &kDeepSeekV3},
                                       {"deepseek_v31", &kDeepSeekV31},
                                       {"mistral", &kMistral},
                                       {"gemma4", &kGemma4Tools},
                                       {"functiongemma", &kFunctionGemma}});

constexpr std::array kReasonings =
    std::to_array<Named<ReasoningDialect>>({{"qwen3", &kQwen3Reasoning},
                                            {"deepseek_r1", &kDeepSeekR1Reasoning},
                                            {"openai_gptoss", &kHarmonyReasoning},
                                            {"mistral", &kMistralReasoning},
                                            {"gemma4", &kGemma4Reasoning}});

template <typename List>
auto find(const List& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, [](const auto& entry) { return entry.name; });
  return found == list.end() ? nullptr : found->table;
}

template <typename List>
std::vector<std::string_view> names(const List& list) {
  std::vector<std::string_view> all;
  for (const auto& entry : list) all.push_back(entry.name);
  return all;
}

const ToolDialect* tools_of(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (has("<|channel|>") && has("<|message|>")) return &kHarmony;
  if (has(kDeepSeekV3.section_open)) return has("```json") ? &kDeepSeekV3 : &kDeepSeekV31;
  if (has(kMistral.call_open)) return &kMistral;
  if (has(kGemma4Tools.call_open)) return &kGemma4Tools;
  if (has(kFunctionGemma.call_open)) return &kFunctionGemma;
  // Qwen3-Coder uses Hermes' markers with another one inside.
  if (has("<function=")) return &kQwenXml;
  if (has(kHermes.call_open)) return &kHermes;
  if (has(kLlama3.call_open) || (has("ipython") && has("parameters"))) return &kLlama3;
  return nullptr;
}

const ReasoningDialect* reasoning_of(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (has("<|channel|>") && has("<|message|>")) return &kHarmonyReasoning;
  if (has(kMistralReasoning.open)) return &kMistralReasoning;
  if (has("<|channel>") && has(kGemma4Reasoning.close)) return &kGemma4Reasoning;
  if (!has(kQwen3Reasoning.close)) return nullptr;
  return has("<｜Assistant｜>") ? &kDeepSeekR1Reasoning : &kQwen3Reasoning;
}

}  // namespace

const ToolDialect* find_tool_dialect(std::string_view name) { return find(kTools, name); }
const ReasoningDialect* find_reasoning_dialect(std::string_view name) {
  return find(kReasonings, name);
}
std::vector<std::string_view> tool_dialect_names() { return names(kTools); }
std::vector<std::string_view> reasoning_dialect_names() { return names(kReasonings); }

Dialect detect_dialect(std::string_view chat_template) {
  Dialect dialect{.tools = tools_of(chat_template), .reasoning = reasoning_of(chat_template)};
  if (dialect.tools == &kHarmony) dialect.channels = &kHarmonyChannels;
  return dialect;
}

std::vector<std::string_view> Dialect::markers() const {
  std::vector<std::string_view> all;
  const auto add = [&](std::string_view marker) {
    if (!marker.empty() && std::ranges::count(all, marker) == 0) all.push_back(marker);
  };
  if (tools != nullptr) {
    for (const std::string_view marker :
         {tools->section_open, tools->call_open, tools->section_close, tools->quote})
      add(marker);
    for (const Step& step : tools->steps) add(step.text);
    for (const std::string_view closer : tools->closers) add(closer);
  }
  if (reasoning != nullptr) {
    add(reasoning->open);
    add(reasoning->close);
    add(reasoning->open_token);
  }
  if (channels != nullptr) {
    for (const std::string_view open : channels->header_opens) add(open);
    for (const std::string_view end : channels->ends) add(end);
    add(channels->header_close);
    add(channels->other);
  }
  return all;
}

}  // namespace octavo
