// octavo pull - downloads a model from the hub, or updates it.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/model_by_name.h"
#include "cli/parse/number_check.h"

namespace octavo {
namespace {

struct PullFlags {
  std::string model;
  DownloadFlags download;
};

}  // namespace

void add_pull_command(CLI::App& app) {
  auto flags = std::make_shared<PullFlags>();
  CLI::App* command = app.add_subcommand(
      "pull",
      "Download a model from the Hugging Face hub into the cache that Python's huggingface_hub "
      "uses, and print its path\n\n"
      "  octavo pull ORG/NAME\n"
      "  octavo pull ORG/NAME:Q4_K_M         one quantisation of a GGUF repository, or :file.gguf\n"
      "  octavo pull ORG/NAME@REVISION       a branch, tag or commit\n\n"
      "Downloads only the files that the model needs, and resumes interrupted downloads.\n"
      "HF_TOKEN, HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE and HTTPS_PROXY work as in\n"
      "Python.");
  command
      ->add_option("MODEL", flags->model, "ORG/NAME[:quantisation-or-file][@revision], or an alias")
      ->required();
  command
      ->add_option("--connections", flags->download.connections, "Number of parallel connections")
      ->transform(whole_number(1, 64))
      ->capture_default_str();
  command->add_flag("--force", flags->download.force,
                    "Download the model even if it does not fit in this machine's memory");
  command->add_flag("--strict-config", flags->download.strict_config,
                    "Refuse a config.json with keys that neither octavo nor transformers knows");
  command->callback([flags] {
    const FoundModel found = pull_model_by_name(flags->model, flags->download);
    fmt::print("{}\n", found.path.string());
  });
}

}  // namespace octavo
