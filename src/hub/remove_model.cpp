#include "hub/remove_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/error.h"
#include "hub/aliases.h"
#include "hub/cache_folder.h"
#include "hub/file_choice.h"
#include "hub/find_model.h"
#include "hub/hub_cache.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_missing(const std::string& name, const HubSettings& settings) {
  HubOptions look;
  look.settings = settings;
  look.download = false;
  const FoundModel found = find_model(name, look);  // throws with near names when it is nowhere
  throw SetupError(
      fmt::format("{}: octavo rm removes only models in the Hugging Face cache; this one "
                  "is in another place ({}): {}",
                  name, found.place, found.path.string()));
}

// Throws SetupError if `folder`, or a folder between the cache and it, is a symbolic link: what is
// deleted in it would be outside the cache.
void refuse_links(const fs::path& cache, const fs::path& folder) {
  std::error_code error;
  fs::path at = cache;
  for (const fs::path& part : folder.lexically_relative(cache)) {
    at /= part;
    if (fs::is_symlink(fs::symlink_status(at, error)))
      throw SetupError(
          fmt::format("{} is a symbolic link: octavo rm deletes only inside the cache; remove the "
                      "link yourself",
                      at.string()));
  }
}

void refuse_linked_folders(const Removal& removal) {
  const fs::path cache = removal.repo.parent_path();
  for (const char* name : {"snapshots", "blobs", "refs"}) refuse_links(cache, removal.repo / name);
  refuse_links(cache, removal.locks);
  std::error_code error;
  for (fs::directory_iterator at(removal.repo / "snapshots", error), end; !error && at != end;
       at.increment(error))
    refuse_links(cache, at->path());
  for (const auto* paths : {&removal.links, &removal.blobs, &removal.unfinished})
    for (const fs::path& path : *paths) refuse_links(cache, path.parent_path());
}

fs::path target_of(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error ? fs::path() : (link.parent_path() / target).lexically_normal();
}

// All links of a repository's snapshots, also those that lead nowhere.
std::vector<fs::path> links_in(const fs::path& folder) {
  std::vector<fs::path> links;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    if (!at->is_directory(error) || at->is_symlink(error)) links.push_back(at->path());
  return links;
}

// One quantisation's files, or everything.
std::vector<fs::path> chosen_links(const fs::path& snapshot, const ModelName& name) {
  if (name.variant.empty()) return links_in(snapshot);
  std::vector<fs::path> links;
  for (const ModelFile& file : choose_files(files_in(snapshot), name.variant, name.repo).files)
    links.push_back(snapshot / file.path);
  return links;
}

std::vector<fs::path> snapshots_of(const fs::path& repo, const ModelName& name) {
  std::vector<fs::path> snapshots;
  std::error_code error;
  std::string commit = name.revision;
  std::ifstream(repo / "refs" / name.revision_or_main()) >> commit;
  for (fs::directory_iterator at(repo / "snapshots", error), end; !error && at != end;
       at.increment(error))
    if (name.revision.empty() || at->path().filename() == commit) snapshots.push_back(at->path());
  return snapshots;
}

// Removes the refs, also in subfolders such as refs/pr, whose commit has no snapshot.
void remove_dangling_refs(const CacheFolder& refs, const std::set<std::string>& commits) {
  for (const CacheFolder::Entry& entry : refs.entries()) {
    if (!entry.is_folder) {
      if (!commits.contains(refs.first_word_of(entry.name))) refs.remove_file(entry.name);
    } else if (const auto folder = refs.find(entry.name)) {
      remove_dangling_refs(*folder, commits);
    }
  }
}

bool is_missing_or_empty(const CacheFolder& repo, const char* name) {
  const auto folder = repo.find(name);
  return !folder || folder->is_empty();
}

// What remains of `repo` after its files were removed: empty folders and refs.
void remove_remains(const CacheFolder& repo) {
  std::set<std::string> commits;
  if (const auto snapshots = repo.find("snapshots")) {
    snapshots->remove_empty_folders();
    for (const CacheFolder::Entry& entry : snapshots->entries()) commits.insert(entry.name);
  }
  if (const auto refs = repo.find("refs")) remove_dangling_refs(*refs, commits);
}

}  // namespace

Removal plan_removal(const std::string& name, const HubSettings& settings) {
  const std::string_view alias = resolve_alias(name);
  const auto parsed = parse_model_name(alias.empty() ? name : std::string(alias));
  const HubCache cache(settings.cache);
  std::error_code error;
  if (!parsed || !fs::exists(cache.repo(parsed->repo), error)) fail_missing(name, settings);

  Removal removal{.repo = cache.repo(parsed->repo),
                  .locks = cache.lock(parsed->repo, "x").parent_path()};
  refuse_linked_folders(removal);
  for (const fs::path& snapshot : snapshots_of(removal.repo, *parsed))
    std::ranges::move(chosen_links(snapshot, *parsed), std::back_inserter(removal.links));
  const std::set<fs::path> going(removal.links.begin(), removal.links.end());
  std::set<fs::path> kept;
  for (const fs::path& link : links_in(removal.repo / "snapshots"))
    if (!going.contains(link)) kept.insert(target_of(link));
  std::set<fs::path> blobs;
  for (const fs::path& link : removal.links) blobs.insert(target_of(link));
  for (const fs::path& blob : blobs) {
    // Only what lies among this repository's own blobs.
    if (kept.contains(blob) || blob.parent_path() != removal.repo / "blobs" || !blob.has_filename())
      continue;
    removal.blobs.push_back(blob);
    const auto size = fs::file_size(blob, error);
    if (!error) removal.bytes += size;
  }
  if (parsed->variant.empty() && parsed->revision.empty()) {
    for (const ModelFile& file : files_in(removal.repo / "blobs")) {
      const fs::path path = removal.repo / "blobs" / file.path;
      if (!file.path.ends_with(".incomplete") && !file.path.ends_with(".progress")) continue;
      removal.unfinished.push_back(path);
      removal.bytes += file.size;
    }
  }
  if (removal.empty())
    throw SetupError(fmt::format("{}: not found in {}", name, settings.cache.string()));
  return removal;
}

void remove_planned(const Removal& removal) {
  refuse_linked_folders(removal);  // again: time has passed since the plan
  const fs::path root = removal.repo.parent_path();
  const auto cache = CacheFolder::open_cache(root);
  const auto repo = cache ? cache->find(removal.repo.filename()) : std::nullopt;
  if (!repo) return;
  // Links first: what is found without its blob would look like damage.
  for (const auto* paths : {&removal.links, &removal.blobs, &removal.unfinished}) {
    for (const fs::path& path : *paths) {
      const fs::path inside = path.lexically_relative(removal.repo);
      if (const auto folder = repo->find(inside.parent_path()))
        folder->remove_file(inside.filename().string());
    }
  }
  remove_remains(*repo);
  if (!is_missing_or_empty(*repo, "snapshots") || !is_missing_or_empty(*repo, "blobs")) return;
  cache->remove_tree(removal.repo.filename().string());
  if (const auto locks = cache->find(removal.locks.parent_path().lexically_relative(root)))
    locks->remove_tree(removal.locks.filename().string());
}

}  // namespace octavo
