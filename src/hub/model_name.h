// model_name.h - names of models on the hub: ORG/NAME[:quant-or-file][@revision].
#pragma once

#include <optional>
#include <string>

namespace octavo {

struct ModelName {
  std::string repo;      // "ORG/NAME", or "NAME" alone
  std::string variant;   // "Q4_K_M", "file.gguf"; empty: not given
  std::string revision;  // a branch, tag or commit; empty: not given

  std::string text() const;
  bool has_org() const { return repo.find('/') != std::string::npos; }
  std::string revision_or_main() const { return revision.empty() ? "main" : revision; }
};

// Also accepts URLs of the hub ("https://huggingface.co/ORG/NAME", "hf.co/ORG/NAME"). Returns
// nullopt if `text` is not a valid name.
std::optional<ModelName> parse_model_name(std::string text);

}  // namespace octavo
