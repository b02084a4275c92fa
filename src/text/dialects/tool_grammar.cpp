#include "text/dialects/tool_grammar.h"

#include <fmt/format.h>

#include "base/error.h"
#include "text/dialects/call_sink.h"
#include "text/dialects/lark_writer.h"
#include "text/dialects/schema_grammar.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kHarmonyContent = "<|channel|>final<|message|>";

std::string arguments(const ToolDialect& dialect, const Tool& tool, LarkWriter& writer) {
  SchemaGrammar schema(writer, tool.name, tool.parameters);
  switch (dialect.form) {
    case ArgumentsForm::kXmlParameters:
      return schema.xml_parameters();
    case ArgumentsForm::kBareKeys:
      return schema.bare_object(dialect.quote);
    default: {
      ordered_json object = tool.parameters;
      object["type"] = "object";
      return writer.json(object, tool.parameters);
    }
  }
}

bool ends_answer(const ToolDialect& dialect, const LarkWriter& writer) {
  return dialect.close_stops && writer.is_token(dialect.call_close);
}

std::string call(const ToolDialect& dialect, const Tool& tool, LarkWriter& writer) {
  std::string expression;
  std::string text;  // up to the arguments
  if (!dialect.bare) text = std::string(dialect.call_open) + std::string(dialect.after_open);
  for (const Step& step : dialect.steps) {
    switch (step.kind) {
      case StepKind::kLiteral:
        text += step.text;
        break;
      case StepKind::kName:
        text += tool.name;
        break;
      case StepKind::kMaybe:
        // If it is a token of the vocabulary, the model was trained to write it.
        if (writer.is_token(step.text)) text += step.text;
        break;
      case StepKind::kArguments:
        expression = writer.literal(text) + arguments(dialect, tool, writer);
        text.clear();
        break;
      case StepKind::kCallObject:
        text += fmt::format("{{\"name\": {}, {}: ", json_quoted(tool.name),
                            json_quoted(dialect.arguments_key));
        expression = writer.literal(text) + arguments(dialect, tool, writer);
        text.assign(1, '}');
        break;
      default:
        break;
    }
  }
  if (!ends_answer(dialect, writer)) text += dialect.call_close;
  return writer.rule(expression + writer.literal(text));
}

// A reasoning message and the start of the next message.
std::string analysis(LarkWriter& writer) {
  return writer.rule(writer.literal(kHarmonyReasoning.open) +
                     writer.text_until("", "", kHarmonyReasoning.close) +
                     writer.literal(kHarmony.between));
}

std::string calls(const ToolDialect& dialect, const std::vector<Tool>& tools,
                  const ToolGrammarOptions& options, LarkWriter& writer) {
  std::string any;
  for (const Tool& tool : tools) {
    if (tool.parameters.contains("x-guidance"))
      throw RequestError(400, "tools", "x-guidance is not supported");
    any += (any.empty() ? "" : " | ") + call(dialect, tool, writer);
  }
  const std::string one = writer.rule(any);
  std::string all = writer.literal(dialect.section_open) + one;
  if (options.max_calls > 1 && !ends_answer(dialect, writer))
    all += fmt::format(" ( {}{} ){{0,{}}}", writer.literal(dialect.between), one,
                       options.max_calls - 1);
  return writer.rule(all + ' ' + writer.literal(dialect.section_close));
}

}  // namespace

std::string tool_grammar(const ToolDialect& dialect, const std::vector<Tool>& tools,
                         const ToolGrammarOptions& options) {
  Dialect markers{.tools = &dialect};
  if (&dialect == &kHarmony) markers.channels = &kHarmonyChannels;
  LarkWriter writer(markers.markers(), options.special);
  std::string start = tools.empty() ? "" : calls(dialect, tools, options, writer);
  if (options.content) {
    std::string content = options.thinks_first ? writer.literal(kHarmonyContent) : "";
    content += writer.json(*options.content, *options.content);
    start = start.empty() ? content : fmt::format("( {} | {} )", start, writer.rule(content));
  }
  if (options.thinks_first) start = analysis(writer) + "? " + start;
  return writer.grammar(start);
}

}  // namespace octavo
