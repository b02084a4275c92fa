// helper_jobs.h - the jobs of helper processes: what the server sends, and what a helper does.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "text/chat_template_source.h"
#include "text/grammar.h"
#include "text/text_helpers.h"
#include "text/tokenizer.h"

namespace octavo {

// The argument that makes the program a helper.
inline constexpr const char* kTextHelperCommand = "text-helper";

// The path of the program that runs. Throws SetupError.
std::string own_program();
// That program, as a helper.
std::vector<std::string> own_helper_command();

// For compiling grammars, to prove that they can be compiled within limits. A helper loads the
// tokenizer; with `start_at_once` that happens in the background now, otherwise with the first job.
std::unique_ptr<TextHelpers> make_grammar_helpers(std::shared_ptr<const Tokenizer> tokenizer,
                                                  int vocab, std::vector<TokenId> stop_tokens,
                                                  bool start_at_once = false);
std::string pack_grammar_job(const GrammarSource& source, std::string_view param);

// For rendering chat templates.
std::unique_ptr<TextHelpers> make_template_helpers(const ChatTemplateSource& source);
// variables: of the template, as JSON.
std::string pack_template_job(bool tool_use, std::string_view variables, uint64_t steps);

// The main function of a helper: serves the socket kHelperSocket until it is closed. Returns the
// exit status.
int serve_helper_jobs();

}  // namespace octavo
