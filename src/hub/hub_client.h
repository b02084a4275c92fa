// hub_client.h - client of the hub's HTTP API: lists repositories and downloads files.
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
  std::string gguf_architecture;  // of the repository's GGUF files; empty: not known
};

// Receives a message for the user when a request is retried.
using OnRetry = std::function<void(const std::string&)>;

// Returns false to stop; received data is kept. `waiting`: another process is downloading a file.
using OnDownload = std::function<bool(uint64_t done, uint64_t total, bool waiting)>;

struct FileDownload {
  ModelFile file;
  std::filesystem::path blob;
  std::filesystem::path lock;
};

// The caller stopped the download; the next download resumes it.
class DownloadStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

// Every function throws SetupError with advice if the hub cannot be reached or refuses the request.
class HubClient {
 public:
  // Also throws SetupError if HF_HUB_OFFLINE is set.
  explicit HubClient(const HubSettings& settings);

  HubListing list(const ModelName& name, const OnRetry& on_retry) const;

  // A blob appears only when it is complete and its hash matches. Throws DownloadStopped.
  void download(const ModelName& name, const std::string& commit,
                const std::vector<FileDownload>& files, int connections,
                const OnDownload& on_progress, const OnRetry& on_retry) const;

 private:
  struct Free {
    void operator()(octavo_hub* hub) const { octavo_hub_free(hub); }
  };
  [[noreturn]] void fail(const ModelName& name, int http_status, std::string_view reason) const;

  HubSettings settings_;
  std::unique_ptr<octavo_hub, Free> hub_;
};

// Parses the hub's response to /api/models/.../revision/...?blobs=true. Skips paths that would
// escape the folder. Throws SetupError if the response is malformed or has a hash that is not one.
HubListing parse_listing(const std::string& json);

}  // namespace octavo
