#include "api/openai/chat_output.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "generation/reasoning_constraint.h"
#include "text/dialects/tool_grammar.h"

namespace octavo::api {
namespace {

std::shared_ptr<const ChatAnswer> answer_of(const ToolCallFields& tools, const ServedModel& model,
                                            ReasoningStart start) {
  auto answer = std::make_shared<ChatAnswer>();
  answer->parser.dialect = model.dialect.dialect;
  if (tools.active()) answer->parser.tools = tools.functions;
  answer->parser.starts_in_reasoning = start == ReasoningStart::kInside;
  answer->parser.max_calls = tools.parallel && tools.choice != ToolChoice::kNamed ? 0 : 1;
  answer->markers = model.dialect.markers;
  return answer;
}

ToolGrammarOptions grammar_options(const ToolCallFields& tools, const ServedModel& model) {
  ToolGrammarOptions options;
  if (!tools.parallel || tools.choice == ToolChoice::kNamed) options.max_calls = 1;
  options.special = [&model](std::string_view marker) -> std::optional<TokenId> {
    const auto id = model.text.tokenizer->token_id(marker);
    return id && model.text.tokenizer->is_special(*id) ? id : std::nullopt;
  };
  options.thinks_first = model.dialect.dialect.channels != nullptr;
  return options;
}

std::shared_ptr<const Constraint> forced_calls(const ToolCallFields& tools,
                                               const ServedModel& model,
                                               const Preparation& preparation) {
  const ToolDialect* dialect = model.dialect.dialect.tools;
  if (dialect == nullptr || !model.grammars)
    refuse("tool_choice", "this server was started with --tool-call-parser none; use auto");
  std::vector<Tool> allowed = tools.functions;
  if (tools.choice == ToolChoice::kNamed)
    std::erase_if(allowed, [&](const Tool& tool) { return tool.name != tools.named; });
  const std::string grammar = tool_grammar(*dialect, allowed, grammar_options(tools, model));
  preparation.check();
  return model.grammars->compile({.kind = GrammarSource::Kind::kLark, .text = grammar}, "tools");
}

bool is_plain_json(const GrammarSource& source) {
  const bool json = source.kind == GrammarSource::Kind::kJsonSchema ||
                    source.kind == GrammarSource::Kind::kJsonObject;
  return json && source.whitespace.empty() && !source.no_whitespace;
}

// Structured output with tools: the output is either JSON or tool calls. Channel dialects put the
// JSON under a header of its own.
std::shared_ptr<const Constraint> form_or_calls(const StructuredOutput& form,
                                                const ToolCallFields& tools,
                                                const ServedModel& model,
                                                const Preparation& preparation) {
  const GrammarSource& source = form.grammar;
  if (!is_plain_json(source))
    refuse(form.field, "this output format cannot be combined with tools; set tool_choice to none");
  ToolGrammarOptions options = grammar_options(tools, model);
  options.content = source.kind == GrammarSource::Kind::kJsonObject ? Json{{"type", "object"}}
                                                                    : Json::parse(source.text);
  const std::string grammar =
      tool_grammar(*model.dialect.dialect.tools,
                   tools.active() ? tools.functions : std::vector<Tool>(), options);
  preparation.check();
  return model.grammars->compile({.kind = GrammarSource::Kind::kLark, .text = grammar}, form.field);
}

// Grammars apply after the reasoning.
std::shared_ptr<const Constraint> after_reasoning(std::shared_ptr<const Constraint> inner,
                                                  std::optional<int> budget,
                                                  const ServedModel& model, ReasoningStart start) {
  const ReasoningDialect* reasoning = model.dialect.dialect.reasoning;
  if (start == ReasoningStart::kNone || (!inner && !budget)) return inner;
  const std::string_view opening =
      reasoning->open_token.empty() ? reasoning->open : reasoning->open_token;
  const auto open = model.text.tokenizer->token_id(opening);
  if (start == ReasoningStart::kMayOpen && !open) {
    if (!budget) return inner;
    refuse("thinking_token_budget", "this model's vocabulary has no token that starts reasoning");
  }
  return reasoning_constraint(model.text.tokenizer, {.inside = start == ReasoningStart::kInside,
                                                     .open = open,
                                                     .close = std::string(reasoning->close),
                                                     .budget = budget,
                                                     .vocab = model.vocab,
                                                     .stop_tokens = model.dialect.stop_tokens,
                                                     .inner = std::move(inner)});
}

}  // namespace

void prepare_output(const ChatRequest& request, std::string_view prompt, const ServedModel& model,
                    GenerationJob& job, const Preparation& preparation) {
  const ToolCallFields& tools = request.chat.tools;
  const Dialect& dialect = model.dialect.dialect;
  const ReasoningStart start = reasoning_start(dialect, prompt);
  job.text.chat = answer_of(tools, model, start);
  if (dialect.tools != nullptr) job.call_id_length = dialect.tools->id_length;
  std::shared_ptr<const Constraint> inner = job.engine.constraint;
  const auto& form = request.response_format ? request.response_format : request.structured_outputs;
  if (tools.active() && tools.forced()) {
    inner = forced_calls(tools, model, preparation);
  } else if (form && dialect.tools != nullptr &&
             (tools.active() || (dialect.channels != nullptr && is_plain_json(form->grammar)))) {
    inner = form_or_calls(*form, tools, model, preparation);
  }
  const auto budget =
      request.thinking_token_budget ? request.thinking_token_budget : model.dialect.thinking_budget;
  if (dialect.channels != nullptr && inner) {
    // This dialect's grammars include the reasoning.
    if (request.thinking_token_budget)
      refuse("thinking_token_budget", "cannot be combined with a grammar for this model");
    job.engine.constraint = std::move(inner);
    return;
  }
  job.engine.constraint = after_reasoning(std::move(inner), budget, model, start);
}

}  // namespace octavo::api
