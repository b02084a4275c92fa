// generate_file.h - octavo generate --prompts: every line of a file answered, many at once.
#pragma once

#include <functional>
#include <string>

#include "cli/model_flags.h"

namespace octavo {

struct GenerateFileOptions {
  std::string prompts = {};  // a path, or "-" for stdin
  std::string output = {};   // a path; empty: stdout
  bool chat = false;         // put plain prompts into the model's chat template
  std::string system = {};   // with chat
};

// Writes a JSON line for each prompt, in their order, each as soon as those before it are written,
// and a summary to stderr. `defaults` is asked once for each prompt. Throws CLI::RuntimeError(2)
// when some could not be answered.
void generate_file(const ModelFlags& model, const GenerateFileOptions& options,
                   const std::function<TextRequest()>& defaults);

}  // namespace octavo
