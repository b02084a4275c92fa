#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/error.h"
#include "base/system_memory.h"
#include "base/units.h"
#include "hub/aliases.h"
#include "hub/file_choice.h"
#include "hub/find_model.h"
#include "hub/hub_cache.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

void check_memory(const ModelName& name, const FileChoice& choice, const HubOptions& options) {
  const auto usable =
      static_cast<uint64_t>(static_cast<double>(usable_memory_bytes()) * options.memory_fraction);
  if (choice.weight_bytes <= usable) return;
  const std::string problem =
      fmt::format("{}: the weights ({}) do not fit into the {} of memory that octavo may use",
                  name.text(), format_bytes(choice.weight_bytes), format_bytes(usable));
  if (!options.force) {
    throw SetupError(problem +
                     "; choose a smaller model or quantisation, or download it anyway with "
                     "octavo pull --force");
  }
  options.say(problem);
}

// The disk space that an incomplete download already uses.
uint64_t bytes_on_disk(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_blocks) * 512 : 0;
}

void check_disk(const std::vector<FileDownload>& missing, const fs::path& folder) {
  uint64_t needed = 0;
  for (const FileDownload& download : missing) {
    const uint64_t there = bytes_on_disk(download.blob.string() + ".octavo.incomplete");
    needed += download.file.size - std::min(there, download.file.size);
  }
  std::error_code error;
  const uint64_t available = fs::space(folder, error).available;
  if (error || needed <= available) return;
  throw SetupError(
      fmt::format("{}: the download needs {}, but only {} is free; remove models (octavo ls, "
                  "octavo rm), or set HF_HOME to another folder",
                  folder.string(), format_bytes(needed), format_bytes(available)));
}

class Pull {
 public:
  Pull(const ModelName& name, const HubOptions& options)
      : name_(name), options_(options), cache_(options.settings.cache), client_(options.settings) {}

  FoundModel run() {
    const HubListing listing = client_.list(name_, options_.say);
    const FileChoice choice = choose_files(listing.files, name_.variant, name_.repo);
    if (!choice.is_complete)
      throw SetupError(name_.repo + ": config.json or part of the weights is missing on the hub");
    const std::vector<FileDownload> missing = missing_files(choice);
    if (!missing.empty()) {
      check_memory(name_, choice, options_);
      cache_.make_folders(name_.repo);
      check_disk(missing, cache_.folder());
      check_config(listing.commit, choice);
      if (choice.opened.ends_with(".gguf") && !listing.gguf_architecture.empty())
        options_.check_gguf_architecture(listing.gguf_architecture);
      options_.say(fmt::format("Downloading {} ({}, {}) to {}", name_.repo, choice.kind,
                               format_bytes(choice.bytes()), cache_.repo(name_.repo).string()));
      client_.download(name_, listing.commit, missing, options_.connections, options_.on_download,
                       options_.say);
    }
    return {.path = cache_.publish(name_, listing.commit, choice), .place = "download"};
  }

 private:
  FileDownload download_of(const ModelFile& file) const {
    return {.file = file,
            .blob = cache_.blob(name_.repo, file.hash),
            .lock = cache_.lock(name_.repo, file.hash)};
  }

  std::vector<FileDownload> missing_files(const FileChoice& choice) const {
    std::vector<FileDownload> missing;
    std::error_code error;
    for (const ModelFile& file : choice.files) {
      FileDownload download = download_of(file);
      if (file.hash.empty() || !fs::exists(download.blob, error))
        missing.push_back(std::move(download));
    }
    return missing;
  }

  // Checks config.json first: an unsupported model need not be downloaded.
  void check_config(const std::string& commit, const FileChoice& choice) const {
    const auto config = std::ranges::find(choice.files, "config.json", &ModelFile::path);
    if (config == choice.files.end()) return;
    const FileDownload download = download_of(*config);
    const auto quietly = [&](uint64_t, uint64_t, bool waiting) {
      return options_.on_download(0, 0, waiting);
    };
    client_.download(name_, commit, {download}, 1, quietly, options_.say);
    options_.check_config(download.blob);
  }

  ModelName name_;
  const HubOptions& options_;
  HubCache cache_;
  HubClient client_;
};

}  // namespace

FoundModel pull_model(const std::string& name, const HubOptions& options) {
  std::string full = name;
  if (const std::string_view model = resolve_alias(name); !model.empty()) {
    full = model;
    options.say(fmt::format("{} is {}", name, full));
  }
  const auto parsed = parse_model_name(full);
  if (!parsed || !parsed->has_org()) {
    throw SetupError(fmt::format(
        "{}: not a model name on the hub; write ORG/NAME[:quantisation][@revision]", name));
  }
  return Pull(*parsed, options).run();
}

}  // namespace octavo
