// hub_client.h - the hub's HTTP API: what a repository has, and its files.
#pragma once

#include <octavo_hub.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hub/hub_settings.h"
#include "hub/model_file.h"
#include "hub/model_name.h"

namespace octavo {

struct HubListing {
  std::string commit;  // 40 hex digits
  std::vector<ModelFile> files;
};

// False: stop, keeping what has come. `waiting`: another process downloads one of the files.
using OnDownload = std::function<bool(uint64_t done, uint64_t total, bool waiting)>;

struct FileDownload {
  ModelFile file;
  std::filesystem::path blob;
  std::filesystem::path lock;
};

// The download was stopped by the caller; the next one goes on from there.
class DownloadStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

// Every function throws SetupError that says what to do when the hub cannot be reached or refuses.
class HubClient {
 public:
  // Throws SetupError also when HF_HUB_OFFLINE forbids the network.
  explicit HubClient(const HubSettings& settings);

  HubListing list(const ModelName& name) const;

  // Blobs appear when they are whole and have their hash. Throws DownloadStopped.
  void download(const ModelName& name, const std::string& commit,
                const std::vector<FileDownload>& files, int connections,
                const OnDownload& on_progress) const;

 private:
  struct Free {
    void operator()(octavo_hub* hub) const { octavo_hub_free(hub); }
  };
  [[noreturn]] void fail(const ModelName& name, int http_status, std::string_view reason) const;

  HubSettings settings_;
  std::unique_ptr<octavo_hub, Free> hub_;
};

// What the hub's /api/models/.../revision/... answers with blobs=true. Paths that would leave the
// folder are left out. Throws SetupError when it is not that.
HubListing parse_listing(const std::string& json);

}  // namespace octavo
