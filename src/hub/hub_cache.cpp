#include "hub/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "hub/cache_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kPrefix = "models--";

std::string folder_name(const std::string& repo) {
  std::string name(kPrefix);
  for (const char c : repo) name += c == '/' ? std::string("--") : std::string(1, c);
  return name;
}

// "models--ORG--NAME" back to "ORG/NAME"; empty if it is another folder.
std::string repo_name(const std::string& folder) {
  if (!folder.starts_with(kPrefix)) return {};
  const std::string name = folder.substr(kPrefix.size());
  const size_t dashes = name.find("--");
  if (dashes == std::string::npos) return name;
  return fmt::format("{}/{}", name.substr(0, dashes), name.substr(dashes + 2));
}

// Whether all shards in the index exist; file names alone do not always tell.
bool has_indexed_files(const fs::path& snapshot, const FileChoice& choice) {
  std::error_code error;
  const bool indexed = std::ranges::any_of(choice.files, [](const ModelFile& file) {
    return file.path == "model.safetensors.index.json";
  });
  if (!choice.opened.empty() || !indexed) return true;
  std::ifstream file(snapshot / "model.safetensors.index.json");
  const Json index = Json::parse(file, nullptr, false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    return false;
  return std::ranges::all_of(index["weight_map"], [&](const Json& name) {
    return name.is_string() && fs::exists(snapshot / name.get<std::string>(), error);
  });
}

// huggingface_hub links files in any order while it downloads. Its listing of the commit, if there
// is one, tells whether all needed files exist.
bool has_listed_files(const fs::path& repo, const std::string& commit, const fs::path& snapshot,
                      const FileChoice& choice) {
  std::error_code error;
  std::ifstream file(repo / "trees" / (commit + ".json"));
  const Json tree = Json::parse(file, nullptr, false);
  if (!tree.is_object() || !tree.contains("files") || !tree["files"].is_object()) return true;
  if (!choice.opened.empty()) return true;
  std::vector<ModelFile> listed;
  for (const auto& [path, entry] : tree["files"].items()) listed.push_back({.path = path});
  const auto choices = all_choices(listed);
  return choices.empty() ||
         std::ranges::all_of(choices.front().files, [&](const ModelFile& needed) {
           return fs::exists(snapshot / needed.path, error);
         });
}

bool is_whole(const fs::path& repo, const std::string& commit, const fs::path& snapshot,
              const FileChoice& choice) {
  return choice.is_complete && has_indexed_files(snapshot, choice) &&
         has_listed_files(repo, commit, snapshot, choice);
}

// Maps each commit to the revisions that point at it, such as "main".
std::map<std::string, std::set<std::string>> revisions_of(const fs::path& repo) {
  std::map<std::string, std::set<std::string>> revisions;
  for (const ModelFile& file : files_in(repo / "refs"))
    revisions[first_word_of(repo / "refs" / file.path)].insert(file.path);
  return revisions;
}

size_t parts_of(const fs::path& path) {
  return static_cast<size_t>(std::distance(path.begin(), path.end()));
}

uint64_t unfinished_bytes(const fs::path& repo) {
  uint64_t bytes = 0;
  for (const ModelFile& file : files_in(repo / "blobs"))
    if (file.path.ends_with(".incomplete")) bytes += file.size;
  return bytes;
}

}  // namespace

fs::path HubCache::repo(const std::string& repo) const { return folder_ / folder_name(repo); }

fs::path HubCache::blob(const std::string& repo, const std::string& hash) const {
  return this->repo(repo) / "blobs" / hash;
}

fs::path HubCache::lock(const std::string& repo, const std::string& hash) const {
  return folder_ / ".locks" / folder_name(repo) / (hash + ".lock");
}

fs::path HubCache::snapshot(const std::string& repo, const std::string& commit) const {
  return this->repo(repo) / "snapshots" / commit;
}

void HubCache::make_folders(const std::string& repo) const {
  const CacheFolder cache = CacheFolder::make_cache(folder_);
  const CacheFolder own = cache.make(folder_name(repo));
  own.make("blobs");
  cache.make(fs::path(".locks") / folder_name(repo));
  // publish() writes to these: a link there is refused before the download rather than after it.
  for (const char* name : {"snapshots", "refs"}) own.find(name);
}

std::optional<std::string> HubCache::commit_of(const ModelName& name) const {
  const std::string revision = name.revision_or_main();
  std::string commit = first_word_of(repo(name.repo) / "refs" / revision);
  if (commit.empty()) commit = revision;
  if (!is_file_name(commit)) return std::nullopt;
  std::error_code error;
  if (!fs::is_directory(snapshot(name.repo, commit), error)) return std::nullopt;
  return commit;
}

std::optional<fs::path> HubCache::find(const ModelName& name) const {
  const auto commit = commit_of(name);
  if (!commit) return std::nullopt;
  const fs::path folder = snapshot(name.repo, *commit);
  const std::vector<ModelFile> files = files_in(folder);
  if (all_choices(files).empty()) return std::nullopt;
  // A missing variant may still be on the hub.
  FileChoice choice;
  try {
    choice = choose_files(files, name.variant, name.repo);
  } catch (const SetupError&) {
    return std::nullopt;
  }
  if (!is_whole(repo(name.repo), *commit, folder, choice)) return std::nullopt;
  return folder / choice.opened;
}

fs::path HubCache::publish(const ModelName& name, const std::string& commit,
                           const FileChoice& choice) const {
  const CacheFolder own = CacheFolder::make_cache(folder_).make(folder_name(name.repo));
  const CacheFolder folder = own.make(fs::path("snapshots") / commit);
  const CacheFolder blobs = own.make("blobs");
  for (const ModelFile& file : choice.files) {
    OCTAVO_CHECK(is_file_name(file.hash));  // parse_listing() checked it
    // Left by a download that was killed after it renamed its data and before it removed this.
    blobs.remove_file(file.hash + ".octavo.progress");
    const fs::path path(file.path);
    fs::path target = "../..";
    for (size_t i = 0; i < parts_of(path.parent_path()); ++i) target /= "..";
    folder.make(path.parent_path())
        .link((target / "blobs" / file.hash).string(), path.filename().string());
  }
  const fs::path revision(name.revision_or_main());
  if (revision != commit)
    own.make("refs" / revision.parent_path()).write(revision.filename().string(), commit);
  return snapshot(name.repo, commit) / choice.opened;
}

std::vector<LocalModel> HubCache::list_repo(const fs::path& repo, const std::string& name) const {
  const auto revisions = revisions_of(repo);
  std::vector<LocalModel> models;
  for (const fs::path& folder : folders_in(repo / "snapshots")) {
    const std::string commit = folder.filename();
    const auto named = revisions.find(commit);
    const std::string revision = named == revisions.end()         ? commit
                                 : named->second.contains("main") ? std::string()
                                                                  : *named->second.begin();
    for (const FileChoice& choice : all_choices(files_in(folder))) {
      const std::string quantization = choice.kind.substr(0, choice.kind.find(' '));
      const std::string variant = choice.opened.empty()    ? std::string()
                                  : quantization == "GGUF" ? choice.opened
                                                           : quantization;
      const ModelName full{.repo = name, .variant = variant, .revision = revision};
      models.push_back({.name = full.text(),
                        .path = folder / choice.opened,
                        .bytes = choice.bytes(),
                        .kind = choice.kind,
                        .place = kHubCachePlace,
                        .is_complete = is_whole(repo, commit, folder, choice)});
    }
  }
  const uint64_t unfinished = unfinished_bytes(repo);
  if (unfinished > 0) {
    models.push_back({.name = name,
                      .path = repo,
                      .bytes = unfinished,
                      .kind = "download",
                      .place = kHubCachePlace,
                      .is_complete = false});
  }
  return models;
}

std::vector<LocalModel> HubCache::list() const {
  std::vector<LocalModel> models;
  for (const fs::path& repo : folders_in(folder_)) {
    const std::string name = repo_name(repo.filename());
    if (name.empty()) continue;
    std::ranges::move(list_repo(repo, name), std::back_inserter(models));
  }
  return models;
}

}  // namespace octavo
