// octavo pull - downloads a model, or what is new of it, from the hub.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/model_by_name.h"

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
      "Download a model from the hub into the cache that Python's huggingface_hub uses, and print "
      "its path\n\n"
      "  octavo pull ORG/NAME\n"
      "  octavo pull ORG/NAME:Q4_K_M         one quantisation of a GGUF repository, or :file.gguf\n"
      "  octavo pull ORG/NAME@REVISION       a branch, a tag or a commit\n\n"
      "Only the files a model needs. A pull that was cut goes on where it stopped. HF_TOKEN,\n"
      "HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE and HTTPS_PROXY mean what they mean in\n"
      "Python.");
  command
      ->add_option("MODEL", flags->model, "ORG/NAME[:quantisation-or-file][@revision], or an alias")
      ->required();
  command
      ->add_option("--connections", flags->download.connections,
                   "Ranges that are fetched at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_flag("--force", flags->download.force,
                    "Download it also if it does not fit into this machine's memory");
  command->callback([flags] {
    const FoundModel found = pull_model_by_name(flags->model, flags->download);
    fmt::print("{}\n", found.path.string());
  });
}

}  // namespace octavo
