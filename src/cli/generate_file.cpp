#include "cli/generate_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "cli/progress_bar.h"
#include "cli/prompt_line.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Writes lines that arrive in any order to a file in the order of their index.
class OrderedLines {
 public:
  explicit OrderedLines(const std::string& path)
      : name_(path.empty() ? "stdout" : path),
        opened_(path.empty() ? nullptr : std::fopen(path.c_str(), "w"), &std::fclose),
        file_(path.empty() ? stdout : opened_.get()) {
    if (file_ == nullptr) throw SetupError(fmt::format("--output: cannot write {}", name_));
  }

  void put(size_t place, std::string line) {
    held_.emplace(place, std::move(line));
    for (; !held_.empty() && held_.begin()->first == next_; ++next_) {
      const std::string& text = held_.begin()->second;
      std::fwrite(text.data(), 1, text.size(), file_);
      held_.erase(held_.begin());
    }
    // Detects a full disk before more results are computed.
    if (std::fflush(file_) != 0 || std::ferror(file_) != 0)
      throw SetupError(fmt::format("{}: cannot write", name_));
  }

  bool on_terminal() const { return ::isatty(::fileno(file_)) != 0; }

 private:
  std::string name_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened_;
  std::FILE* file_;
  std::map<size_t, std::string> held_;
  size_t next_ = 0;
};

struct Totals {
  size_t answered = 0;
  size_t failed = 0;
  size_t prompt_tokens = 0;
  size_t output_tokens = 0;
};

Json json_of(const TokenLogprobs& token) {
  Json top = Json::array();
  for (const auto& [id, logprob] : token.top)
    top.push_back({{"token_id", id}, {"logprob", logprob}});
  return {{"token_id", token.token},
          {"logprob", token.logprob},
          {"rank", token.rank},
          {"top_logprobs", std::move(top)}};
}

Json json_of(const std::vector<TokenLogprobs>& tokens) {
  Json list = Json::array();
  for (const TokenLogprobs& token : tokens) list.push_back(json_of(token));
  return list;
}

Json json_of(const TextAnswer& answer, int index) {
  const Generation& generation = answer.generation;
  Json choice = {{"index", index},
                 {"text", answer.text},
                 {"token_ids", generation.tokens},
                 {"finish_reason", name_of(generation.finish_reason)}};
  if (!answer.stop_string.empty()) choice["stop_reason"] = answer.stop_string;
  if (answer.stop_token) choice["stop_reason"] = *answer.stop_token;
  if (!generation.logprobs.empty()) choice["logprobs"] = json_of(generation.logprobs);
  return choice;
}

size_t output_tokens(const std::vector<TextAnswer>& choices) {
  size_t tokens = 0;
  for (const TextAnswer& choice : choices) tokens += choice.generation.tokens.size();
  return tokens;
}

// Returns the first error, or an empty string.
const std::string& error_of(const std::vector<TextAnswer>& choices) {
  for (const TextAnswer& choice : choices)
    if (!choice.error.empty()) return choice.error;
  return choices.front().error;
}

std::string line_of(size_t index, const PromptLine& asked, const std::vector<TextAnswer>& choices) {
  const TextAnswer& first = choices.front();
  const size_t output = output_tokens(choices);
  Json line = {{"index", index}};
  if (!asked.id.is_null()) line["id"] = asked.id;
  if (const std::string& error = error_of(choices); !error.empty()) line["error"] = error;
  line["choices"] = Json::array();
  for (size_t i = 0; i < choices.size(); ++i)
    line["choices"].push_back(json_of(choices[i], static_cast<int>(i)));
  if (asked.request.engine.sampling.prompt_logprobs >= 0 && first.error.empty()) {
    // The first token has no logprob: no token precedes it.
    line["prompt_logprobs"] = Json::array({nullptr});
    for (const TokenLogprobs& token : first.generation.prompt_logprobs)
      line["prompt_logprobs"].push_back(json_of(token));
  }
  line["usage"] = {{"prompt_tokens", first.prompt_tokens.size()},
                   {"completion_tokens", output},
                   {"total_tokens", first.prompt_tokens.size() + output},
                   {"prompt_tokens_details", {{"cached_tokens", first.generation.cached_tokens}}}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_summary(const Totals& totals, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(totals.output_tokens) / seconds : 0;
  fmt::print(stderr,
             "{} request{}{}: {} prompt and {} output tokens in {:.1f} s, {:.1f} output tok/s\n",
             totals.answered, totals.answered == 1 ? "" : "s",
             totals.failed > 0 ? fmt::format(", {} failed", totals.failed) : "",
             totals.prompt_tokens, totals.output_tokens, seconds, rate);
}

// Only on a terminal, to keep it out of script logs.
void print_start_up(const Llm& llm, int max_num_seqs) {
  if (::isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "{} with {} parameters, up to {} sequences at once\n{}",
             llm.engine().model().plan.family, format_count(llm.engine().model().parameters),
             max_num_seqs, llm.engine().memory().table());
}

}  // namespace

void generate_file(const ModelFlags& model, const GenerateFileOptions& options,
                   const std::function<TextRequest()>& defaults) {
  std::vector<PromptLine> lines = read_prompt_file(options.prompts, defaults);
  OrderedLines output(options.output);
  const auto cluster = model.form_cluster();
  EngineOptions engine = model.engine_options();
  engine.cluster = cluster.get();
  const auto llm = model.load(engine);
  print_start_up(*llm, model.max_num_seqs);
  if (options.chat || (llm->can_chat() && !options.raw)) {
    for (PromptLine& line : lines) put_into_chat(line.request, options.system);
  }
  std::vector<TextRequest> requests;
  for (const PromptLine& line : lines) requests.push_back(line.request);

  Totals totals;
  const auto start = Clock::now();
  {
    std::optional<ProgressBar> bar;  // would mix with answers on a terminal
    if (!output.on_terminal()) {
      bar.emplace("Generating", [&](uint64_t done, uint64_t total, double seconds) {
        const double rate = static_cast<double>(totals.output_tokens) / seconds;
        return fmt::format("{} of {} requests  {:.1f} tok/s", done, total, rate);
      });
    }
    llm->generate_all(requests, [&](size_t i, const std::vector<TextAnswer>& choices) {
      ++totals.answered;
      totals.failed += error_of(choices).empty() ? 0 : 1;
      totals.prompt_tokens += choices.front().prompt_tokens.size();
      totals.output_tokens += output_tokens(choices);
      output.put(i, line_of(i, lines[i], choices));
      if (bar) bar->update(totals.answered, lines.size());
    });
  }
  print_summary(totals, seconds_since(start));
  if (totals.failed > 0) throw CLI::RuntimeError(2);
}

}  // namespace octavo
