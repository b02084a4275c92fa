// remove_model.h - removes models from the cache of huggingface_hub, and from no other folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hub/hub_settings.h"

namespace octavo {

struct Removal {
  std::vector<std::filesystem::path> links = {};  // in snapshots
  std::vector<std::filesystem::path> blobs = {};  // that no remaining link uses
  std::vector<std::filesystem::path> unfinished = {};
  std::filesystem::path repo;
  std::filesystem::path locks;
  uint64_t bytes = 0;  // freed by the removal

  bool empty() const { return links.empty() && unfinished.empty(); }
};

// What `octavo rm NAME` would take away: all of a repository, or of one revision, or one variant.
// Throws SetupError when nothing of that name is in the cache, saying so when it is elsewhere, and
// when a folder of the repository is a symbolic link. Links to files are removed, not followed.
Removal plan_removal(const std::string& name, const HubSettings& settings);

// Throws SetupError, before anything is removed, if a folder has become a symbolic link.
void remove_planned(const Removal& removal);

}  // namespace octavo
