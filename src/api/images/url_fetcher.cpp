#include "api/images/url_fetcher.h"

#include <fmt/format.h>
#include <octavo_media.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <stop_token>

#include "base/error.h"
#include "base/rust_border.h"

namespace octavo::api {
namespace {

// A URL in a message may have a password or a signature, and may be long.
std::string shown_url(const std::string& url) {
  constexpr size_t kShown = 100;
  std::string head = url.substr(0, url.find_first_of("?#"));
  const size_t slashes = head.find("//");
  const size_t begin = slashes == std::string::npos ? 0 : slashes + 2;
  const size_t at = head.rfind('@');
  if (at != std::string::npos && at > begin) head.replace(begin, at - begin, "...");
  return head.size() <= kShown ? head : head.substr(0, kShown) + "...";
}

}  // namespace

void UrlFetcher::Free::operator()(octavo_media* media) const { octavo_media_free(media); }

UrlFetcher::UrlFetcher(const UrlFetcherOptions& options) {
  const std::string text = nlohmann::json{
      {"hosts", options.hosts},
      {"most_bytes", options.most_bytes},
      {"timeout_ms",
       options.time.count()}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  octavo_media* media = nullptr;
  RustText error;
  if (octavo_media_new(text.data(), text.size(), &media, error.out()) != OCTAVO_RUST_OK)
    throw SetupError(fmt::format("--allowed-media-domains: {}", error.view()));
  media_.reset(media);
}

std::vector<std::byte> UrlFetcher::fetch(const std::string& url,
                                         const Preparation& preparation) const {
  std::atomic<bool> stopped = false;
  const std::stop_callback on_stop(preparation.stop, [&stopped] { stopped = true; });
  // Rust reads the flag as its AtomicBool, which has the same layout.
  static_assert(sizeof(std::atomic<bool>) == sizeof(bool));
  RustText file;
  RustText error;
  const octavo_rust_status status =
      octavo_media_fetch(media_.get(), url.data(), url.size(),
                         reinterpret_cast<const bool*>(&stopped), file.out(), error.out());
  preparation.check();
  if (status == OCTAVO_RUST_LIMIT)
    throw RequestError(429, "", "too many images are being fetched; try again later");
  if (status != OCTAVO_RUST_OK)
    throw RequestError(400, "", fmt::format("the URL {}: {}", shown_url(url), error.view()));
  const auto* bytes = reinterpret_cast<const std::byte*>(file.view().data());
  return {bytes, bytes + file.view().size()};
}

}  // namespace octavo::api
