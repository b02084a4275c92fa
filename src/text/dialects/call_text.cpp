#include "text/dialects/call_text.h"

#include "text/dialects/call_sink.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

std::string dumped(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string xml_arguments(const ordered_json& arguments) {
  std::string text;
  for (const auto& [key, value] : arguments.items()) {
    text += "\n<parameter=" + key + ">\n";
    text += value.is_string() ? value.get<std::string>() : dumped(value);
    text += "\n</parameter>";
  }
  return text + "\n</function>";
}

std::string arguments_text(const ToolDialect& dialect, const ordered_json& arguments) {
  switch (dialect.form) {
    case ArgumentsForm::kXmlParameters:
      return xml_arguments(arguments);
    case ArgumentsForm::kBareKeys:
      return bare_text(arguments, dialect.quote);
    default:
      return dumped(arguments);
  }
}

std::string one_call(const ToolDialect& dialect, const ToolCall& call) {
  std::string text;
  if (!dialect.bare) text = std::string(dialect.call_open) + std::string(dialect.after_open);
  for (const Step& step : dialect.steps) {
    switch (step.kind) {
      case StepKind::kLiteral:
        text += step.text;
        break;
      case StepKind::kName:
        text += call.name;
        break;
      case StepKind::kArguments:
        text += arguments_text(dialect, call.arguments);
        break;
      case StepKind::kCallObject:
        text += "{\"name\": " + json_quoted(call.name) + ", " + json_quoted(dialect.arguments_key) +
                ": " + dumped(call.arguments) + '}';
        break;
      default:
        break;  // not written
    }
  }
  return text + std::string(dialect.call_close);
}

}  // namespace

// Ambiguous keys are quoted, too.
std::string bare_key(const std::string& key, std::string_view quote) {
  const bool plain = !key.empty() && key.find_first_of(":,{}[]<>|\"\n ") == std::string::npos;
  return plain ? key : std::string(quote) + key + std::string(quote);
}

std::string bare_text(const ordered_json& value, std::string_view quote) {
  if (value.is_string()) return std::string(quote) + value.get<std::string>() + std::string(quote);
  if (!value.is_structured()) return dumped(value);
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (!text.empty()) text += ',';
    if (value.is_object()) text += bare_key(key, quote) + ':';
    text += bare_text(item, quote);
  }
  return value.is_object() ? '{' + text + '}' : '[' + text + ']';
}

std::string call_text(const ToolDialect& dialect, std::span<const ToolCall> calls) {
  std::string text(dialect.section_open);
  for (const ToolCall& call : calls) {
    if (&call != calls.data()) text += dialect.between;
    text += one_call(dialect, call);
  }
  return text + std::string(dialect.section_close);
}

}  // namespace octavo
