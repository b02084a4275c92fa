// hub_cache.h - the model cache of huggingface_hub. Its layout:
//
//   models--ORG--NAME/blobs/<hash>              the files' contents
//   models--ORG--NAME/refs/<branch or tag>      a commit
//   models--ORG--NAME/snapshots/<commit>/<file> symbolic links to blobs
//   .locks/models--ORG--NAME/<hash>.lock        held while a blob is written
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/file_choice.h"
#include "hub/local_model.h"
#include "hub/model_name.h"

namespace octavo {

inline constexpr const char* kHubCachePlace = "Hugging Face cache";

class HubCache {
 public:
  explicit HubCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path repo(const std::string& repo) const;
  std::filesystem::path blob(const std::string& repo, const std::string& hash) const;
  std::filesystem::path lock(const std::string& repo, const std::string& hash) const;
  std::filesystem::path snapshot(const std::string& repo, const std::string& commit) const;

  // Creates the folders for blobs and locks of `repo`. Throws SetupError.
  void make_folders(const std::string& repo) const;

  // Returns the path to open if the model is complete in the cache.
  std::optional<std::filesystem::path> find(const ModelName& name) const;

  // Links the blobs of `choice`, which must all exist, into a snapshot, weights last, and points
  // the revision at it. Returns the path to open.
  std::filesystem::path publish(const ModelName& name, const std::string& commit,
                                const FileChoice& choice) const;

  std::vector<LocalModel> list() const;

 private:
  std::optional<std::string> commit_of(const ModelName& name) const;
  std::vector<LocalModel> list_repo(const std::filesystem::path& repo,
                                    const std::string& name) const;

  std::filesystem::path folder_;
};

}  // namespace octavo
