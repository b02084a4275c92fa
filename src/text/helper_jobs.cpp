#include "text/helper_jobs.h"

#ifdef __APPLE__
#include <mach-o/dyld.h>

#include <array>
#endif

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/helper_server.h"

namespace octavo {
namespace {

constexpr std::string_view kGrammarSetup = "grammar";
constexpr std::string_view kTemplateSetup = "template";
// A template reserves kTemplateStackBytes for its stack, and a grammar less.
constexpr size_t kJobBytes = kTemplateStackBytes + (256u << 20);

std::string flag(bool value) { return value ? "1" : "0"; }

std::string_view bytes_of(const std::vector<TokenId>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(TokenId)};
}

std::vector<TokenId> tokens_of(std::string_view bytes) {
  std::vector<TokenId> tokens(bytes.size() / sizeof(TokenId));
  std::memcpy(tokens.data(), bytes.data(), tokens.size() * sizeof(TokenId));
  return tokens;
}

HelperJob grammar_job(std::string_view setup) {
  const auto parts = unpack(setup, 3);
  const auto tokenizer = Tokenizer::from_json(parts[0]);
  const auto vocabulary = std::make_shared<const GrammarVocabulary>(
      *tokenizer, std::stoi(std::string(parts[1])), tokens_of(parts[2]));
  // Starts what the first grammar needs besides its own memory.
  vocabulary->compile({.kind = GrammarSource::Kind::kJsonObject}, "");
  return [vocabulary](std::string_view job) {
    const auto fields = unpack(job, 5);
    vocabulary->compile(
        {.kind = static_cast<GrammarSource::Kind>(std::stoi(std::string(fields[0]))),
         .text = std::string(fields[1]),
         .whitespace = std::string(fields[2]),
         .no_whitespace = fields[3] == flag(true)},
        std::string(fields[4]));
    return std::string();
  };
}

HelperJob template_job(std::string_view setup) {
  const auto parts = unpack(setup, 3);
  ChatTemplateSource source{.source = std::string(parts[0])};
  if (parts[1] == flag(true)) source.tool_use_source = std::string(parts[2]);
  const auto chat = ChatTemplate::from_source(source);
  return [chat](std::string_view job) {
    const auto fields = unpack(job, 3);
    return chat->render_variables(fields[0] == flag(true), fields[1],
                                  std::stoull(std::string(fields[2])));
  };
}

HelperJob make_job(std::string_view setup) {
  const auto parts = unpack(setup, 3);
  if (parts[0] != OCTAVO_VERSION)
    throw SetupError(fmt::format("the program was replaced: it is version {}, and the server {}",
                                 OCTAVO_VERSION, parts[0]));
  return parts[1] == kGrammarSetup ? grammar_job(parts[2]) : template_job(parts[2]);
}

std::string pack_setup(std::string_view kind, const std::vector<std::string_view>& parts) {
  return pack({OCTAVO_VERSION, kind, pack(parts)});
}

}  // namespace

std::string own_program() {
#ifdef __APPLE__
  std::array<char, 4096> path{};
  uint32_t size = path.size();
  if (_NSGetExecutablePath(path.data(), &size) != 0)
    throw SetupError("the path of this program is longer than 4,096 bytes; install it elsewhere");
  return path.data();
#else
  // The program that runs, even if its file was replaced. The libraries that it loads are found by
  // path: after an upgrade, helpers can only be started if those are still there and fit.
  return "/proc/self/exe";
#endif
}

std::vector<std::string> own_helper_command() { return {own_program(), kTextHelperCommand}; }

std::unique_ptr<TextHelpers> make_grammar_helpers(std::shared_ptr<const Tokenizer> tokenizer,
                                                  int vocab, std::vector<TokenId> stop_tokens,
                                                  bool start_at_once) {
  const auto setup = [tokenizer = std::move(tokenizer), vocab, stops = std::move(stop_tokens)] {
    return pack_setup(kGrammarSetup, {tokenizer->json(), std::to_string(vocab), bytes_of(stops)});
  };
  return std::make_unique<TextHelpers>(TextHelperOptions{
      .command = own_helper_command(), .setup = setup, .start_at_once = start_at_once});
}

std::string pack_grammar_job(const GrammarSource& source, std::string_view param) {
  return pack({std::to_string(static_cast<int>(source.kind)), source.text, source.whitespace,
               flag(source.no_whitespace), param});
}

std::unique_ptr<TextHelpers> make_template_helpers(const ChatTemplateSource& source) {
  const auto setup = [source] {
    return pack_setup(kTemplateSetup, {source.source, flag(source.tool_use_source.has_value()),
                                       source.tool_use_source.value_or("")});
  };
  return std::make_unique<TextHelpers>(TextHelperOptions{
      .command = own_helper_command(), .setup = setup, .processes = 2, .start_at_once = true});
}

std::string pack_template_job(bool tool_use, std::string_view variables, uint64_t steps) {
  return pack({flag(tool_use), variables, std::to_string(steps)});
}

int serve_helper_jobs() { return serve_helper(make_job, kJobBytes); }

}  // namespace octavo
