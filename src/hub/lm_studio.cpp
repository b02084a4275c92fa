#include "hub/lm_studio.h"

#include <algorithm>

#include "base/error.h"
#include "hub/file_choice.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

struct Repo {
  std::string name;  // PUBLISHER/REPO
  fs::path folder;
};

std::vector<Repo> repos_in(const std::vector<fs::path>& roots) {
  std::vector<Repo> repos;
  for (const fs::path& root : roots) {
    for (const fs::path& publisher : folders_in(root)) {
      for (const fs::path& repo : folders_in(publisher)) {
        repos.push_back({.name = publisher.filename().string() + "/" + repo.filename().string(),
                         .folder = repo});
      }
    }
  }
  return repos;
}

}  // namespace

std::vector<LocalModel> list_lm_studio(const std::vector<fs::path>& folders) {
  std::vector<LocalModel> models;
  for (const Repo& repo : repos_in(folders)) {
    for (const FileChoice& choice : all_choices(files_in(repo.folder))) {
      models.push_back({.name = repo.name + (choice.opened.empty() ? "" : ":" + choice.opened),
                        .path = repo.folder / choice.opened,
                        .bytes = choice.bytes(),
                        .kind = choice.kind,
                        .place = kLmStudioPlace,
                        .is_complete = choice.is_complete});
    }
  }
  return models;
}

std::optional<fs::path> find_in_lm_studio(const ModelName& name,
                                          const std::vector<fs::path>& folders) {
  if (!name.revision.empty()) return std::nullopt;  // LM Studio does not store revisions
  const std::string wanted = lower(name.repo);
  for (const Repo& repo : repos_in(folders)) {
    const std::string full = lower(repo.name);
    if (full != wanted && full.substr(full.find('/') + 1) != wanted) continue;
    try {
      const FileChoice choice = choose_files(files_in(repo.folder), name.variant, repo.name);
      if (choice.is_complete) return repo.folder / choice.opened;
    } catch (const SetupError&) {
      continue;  // another folder may have the variant
    }
  }
  return std::nullopt;
}

}  // namespace octavo
