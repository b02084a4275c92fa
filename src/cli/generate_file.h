// generate_file.h - octavo generate --prompts: runs the prompts of a file in batches.
#pragma once

#include <functional>
#include <string>

#include "cli/model_flags.h"

namespace octavo {

struct GenerateFileOptions {
  std::string prompts = {};  // a path, or "-" for stdin
  std::string output = {};   // a path; empty: stdout
  bool chat = false;         // plain prompts are chat messages, also without a template: an error
  bool raw = false;          // plain prompts are continued, also if there is a template
  std::string system = {};   // of chats
};

// Writes one JSON line per prompt, in input order and as early as that order allows, and a summary
// to stderr. Calls `defaults` once per prompt. Throws CLI::RuntimeError(2) if any prompt failed.
void generate_file(const ModelFlags& model, const GenerateFileOptions& options,
                   const std::function<TextRequest()>& defaults);

}  // namespace octavo
