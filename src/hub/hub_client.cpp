#include "hub/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/rust_border.h"
#include "hub/cache_folder.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

// Of a repository; keeps sums of sizes far from overflow.
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

bool is_hex(std::string_view text, size_t size) {
  return text.size() == size &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// Names come from the network and are used as paths.
bool is_safe(const std::string& path) {
  const std::filesystem::path parts(path);
  return !path.empty() && path.size() < 1024 && !parts.is_absolute() &&
         std::ranges::all_of(parts, [](const auto& part) { return is_file_name(part.string()); });
}

// Hashes name blobs: anything but hex digits could name a file outside the cache.
void check_hash(const ModelFile& file) {
  if (!file.hash.empty() && !is_hex(file.hash, 64) && !is_hex(file.hash, 40))
    throw SetupError(fmt::format(
        "the hub's hash of {} is not a SHA-256 or SHA-1 in hex; is HF_ENDPOINT a hub?", file.path));
}

std::string percent_encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        std::isalnum(byte) != 0 || std::string_view("-_.~/").find(c) != std::string_view::npos;
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return result;
}

// A revision like "refs/pr/1" is one component of the URL path.
std::string one_part(const std::string& revision) {
  std::string result;
  for (const char c : percent_encoded(revision))
    result += c == '/' ? std::string("%2F") : std::string(1, c);
  return result;
}

std::string text_or(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// A negative or fractional number becomes a size that is refused.
uint64_t size_or(const Json& json, uint64_t fallback) {
  const auto found = json.find("size");
  if (found == json.end() || found->is_null()) return fallback;
  if (found->is_number() && !found->is_number_unsigned()) return UINT64_MAX;
  return found->get<uint64_t>();
}

ModelFile parse_file(const Json& json) {
  ModelFile file{.path = text_or(json, "rfilename"),
                 .size = size_or(json, 0),
                 .hash = text_or(json, "blobId")};
  const auto lfs = json.find("lfs");
  if (lfs != json.end() && lfs->is_object()) {
    file.hash = text_or(*lfs, "sha256");
    file.size = size_or(*lfs, file.size);
  }
  return file;
}

}  // namespace

HubListing parse_listing(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  HubListing listing;
  try {
    listing.commit = json.at("sha").get<std::string>();
    uint64_t bytes = 0;
    for (const Json& sibling : json.at("siblings")) {
      ModelFile file = parse_file(sibling);
      if (!is_safe(file.path)) continue;
      check_hash(file);
      if (file.size > kMostBytes || (bytes += file.size) > kMostBytes)
        throw SetupError(fmt::format("the hub's size of {} is {} bytes; is HF_ENDPOINT a hub?",
                                     file.path, file.size));
      listing.files.push_back(std::move(file));
    }
    if (const auto gguf = json.find("gguf"); gguf != json.end() && gguf->is_object())
      listing.gguf_architecture = gguf->value("architecture", "");
  } catch (const Json::exception& error) {
    throw SetupError(
        fmt::format("cannot parse the hub's response ({}); is HF_ENDPOINT a hub?", error.what()));
  }
  if (!is_hex(listing.commit, 40))
    throw SetupError("the hub's response has no commit; is HF_ENDPOINT a hub?");
  return listing;
}

HubClient::HubClient(const HubSettings& settings) : settings_(settings) {
  if (settings.offline) {
    throw SetupError(
        "HF_HUB_OFFLINE is set, so nothing is downloaded; unset it, or use a model from `octavo "
        "ls`");
  }
  const std::string options = Json{
      {"endpoint", settings.endpoint},
      {"token", settings.token},
      {"user_agent", "octavo"},
      {"timeout_ms", settings.timeout_ms},
      {"retry_ms",
       settings.retry_ms}}.dump();
  octavo_hub* hub = nullptr;
  RustText error;
  if (octavo_hub_new(options.data(), options.size(), &hub, error.out()) != OCTAVO_RUST_OK)
    throw SetupError(std::string(error.view()));
  hub_.reset(hub);
}

HubListing HubClient::list(const ModelName& name, const OnRetry& on_retry) const {
  const std::string path = fmt::format("/api/models/{}/revision/{}?blobs=true", name.repo,
                                       one_part(name.revision_or_main()));
  const octavo_hub_retry retry{
      .report =
          [](void* context, const char* reason, size_t size, uint64_t wait_ms) {
            (*static_cast<const OnRetry*>(context))(fmt::format(
                "{}; trying again in {:.1f} s (no network? HF_HUB_OFFLINE=1 uses only models on "
                "this machine, octavo ls lists them)",
                std::string_view(reason, size), static_cast<double>(wait_ms) / 1000));
          },
      .context = const_cast<void*>(static_cast<const void*>(&on_retry))};
  RustText body;
  RustText error;
  uint16_t http_status = 0;
  if (octavo_hub_get(hub_.get(), path.data(), path.size(), retry, body.out(), &http_status,
                     error.out()) != OCTAVO_RUST_OK)
    fail(name, http_status, error.view());
  return parse_listing(std::string(body.view()));
}

void HubClient::download(const ModelName& name, const std::string& commit,
                         const std::vector<FileDownload>& files, int connections,
                         const OnDownload& on_progress, const OnRetry& on_retry) const {
  Json order = {{"connections", connections},
                {"chunk_bytes", settings_.chunk_bytes},
                {"files", Json::array()}};
  for (const FileDownload& download : files) {
    const ModelFile& file = download.file;
    if (!is_hex(file.hash, 64) && !is_hex(file.hash, 40))
      throw SetupError(fmt::format("{}: the hub gives no hash for {}", name.repo, file.path));
    order["files"].push_back({{"name", file.path},
                              {"url_path", fmt::format("/{}/resolve/{}/{}", name.repo, commit,
                                                       percent_encoded(file.path))},
                              {"size", file.size},
                              {"hash", file.hash},
                              {"blob", download.blob.string()},
                              {"lock", download.lock.string()}});
  }
  const std::string text = order.dump();
  struct Callbacks {
    const OnDownload& on_progress;
    const OnRetry& on_retry;
    std::string last_reason;  // several connections often have the same problem
  } callbacks{on_progress, on_retry, {}};
  const octavo_hub_progress progress{
      .report =
          [](void* context, uint64_t done, uint64_t total, bool waiting) {
            return static_cast<Callbacks*>(context)->on_progress(done, total, waiting);
          },
      .retrying =
          [](void* context, const char* reason, size_t size) {
            auto& all = *static_cast<Callbacks*>(context);
            if (all.last_reason == std::string_view(reason, size)) return;
            all.last_reason.assign(reason, size);
            all.on_retry(all.last_reason + "; trying again");
          },
      .context = &callbacks};
  RustText error;
  uint16_t http_status = 0;
  const octavo_rust_status status = octavo_hub_download(hub_.get(), text.data(), text.size(),
                                                        progress, &http_status, error.out());
  if (status == OCTAVO_RUST_STOPPED) throw DownloadStopped();
  if (status != OCTAVO_RUST_OK) fail(name, http_status, error.view());
}

void HubClient::fail(const ModelName& name, int http_status, std::string_view reason) const {
  const std::string page = settings_.endpoint + "/" + name.repo;
  const char* token = settings_.token.empty() ? "set HF_TOKEN to your access token"
                                              : "check that HF_TOKEN has access to it";
  std::string advice;
  if (http_status == 404) {
    advice = fmt::format("no such model or revision \"{}\"; check the name at {}",
                         name.revision_or_main(), page);
  } else if (http_status == 401 || http_status == 403) {
    advice = fmt::format(
        "the name is wrong, or the model is private or gated: check {}, accept its licence there, "
        "and {}",
        page, token);
  } else {
    advice = fmt::format(
        "check the connection to {} (HF_ENDPOINT, HTTPS_PROXY), then run the same command again to "
        "resume, or use a model on this machine: octavo ls",
        settings_.endpoint);
  }
  throw SetupError(fmt::format("{}: {} ({})", name.repo, reason, advice));
}

}  // namespace octavo
