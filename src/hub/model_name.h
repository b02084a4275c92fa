// model_name.h - how a model on the hub is named: ORG/NAME[:quant-or-file][@revision].
#pragma once

#include <optional>
#include <string>

namespace octavo {

struct ModelName {
  std::string repo;      // "ORG/NAME", or "NAME" alone
  std::string variant;   // "Q4_K_M", "file.gguf"; empty: none was asked for
  std::string revision;  // a branch, a tag or a commit; empty: none was asked for

  std::string text() const;
  bool has_org() const { return repo.find('/') != std::string::npos; }
  std::string revision_or_main() const { return revision.empty() ? "main" : revision; }
};

// An address of the hub ("https://huggingface.co/ORG/NAME", "hf.co/ORG/NAME") is its name too.
// nullopt: it cannot be the name of a model on the hub.
std::optional<ModelName> parse_model_name(std::string text);

}  // namespace octavo
