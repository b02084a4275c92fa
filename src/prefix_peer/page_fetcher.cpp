#include "prefix_peer/page_fetcher.h"

#include <fmt/format.h>
#include <octavo_http.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/rust_border.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRequestTime{10'000};
constexpr size_t kMostListBytes = 32u << 20;
constexpr std::chrono::milliseconds kWhenFull{20};  // until the disk thread has written pages
constexpr std::chrono::milliseconds kWritten{5'000};

// The peer does not answer: it may be starting.
class PeerAway : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace

PageFetcher::PageFetcher(DiskTier& tier, PageFetcherOptions options)
    : tier_(tier), options_(std::move(options)), thread_([this] { run(); }) {}

PageFetcher::~PageFetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool PageFetcher::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [&] { return stopping_; });
}

void PageFetcher::run() {
  const auto end = Clock::now() + options_.patience;
  std::vector<std::string> left = options_.urls;
  while (!left.empty()) {
    std::erase_if(left, [&](const std::string& url) { return fetch_from(url); });
    if (left.empty()) return;
    if (Clock::now() > end) {
      spdlog::warn("--prefix-peer {}: no answer; its pages are not fetched", left.front());
      return;
    }
    if (!pause(options_.retry)) return;
  }
}

bool PageFetcher::fetch_from(const std::string& url) {
  try {
    const auto pages = missing_pages(url);
    fetch_pages(url, pages);
    tier_.flush(kWritten);  // so that the line below is true
    spdlog::info("--prefix-peer {}: fetched {} pages", url, pages.size());
    return true;
  } catch (const PeerAway& error) {
    if (!std::exchange(waiting_, true))
      spdlog::info("--prefix-peer {}: {}; it is asked again for up to {} s", url, error.what(),
                   options_.patience.count() / 1000);
    return false;
  } catch (const std::exception& error) {
    spdlog::warn("--prefix-peer {}: {}; its pages are not fetched", url, error.what());
    return true;
  }
}

std::vector<PageLink> PageFetcher::missing_pages(const std::string& url) {
  auto pages = parse_list_answer(
      ask(url, kListPagesPath, list_request(tier_.fingerprint()), kMostListBytes));
  std::vector<PageKey> keys;
  for (const PageLink& page : pages) keys.push_back(page.key);
  const std::vector<bool> there = tier_.has(keys);
  std::vector<PageLink> missing;
  for (size_t i = 0; i < pages.size(); ++i)
    if (!there[i]) missing.push_back(pages[i]);
  // The list begins with the most recently used; what does not fit is left out. The oldest of the
  // others come first, so that they are the first to be evicted.
  if (const size_t room = tier_.free_slots(); missing.size() > room) missing.resize(room);
  std::ranges::reverse(missing);
  return missing;
}

void PageFetcher::fetch_pages(const std::string& url, const std::vector<PageLink>& pages) {
  const size_t size = tier_.page_bytes();
  const size_t at_once = pages_per_read(size);
  for (size_t first = 0; first < pages.size(); first += at_once) {
    const std::vector<PageLink> some(
        pages.begin() + static_cast<std::ptrdiff_t>(first),
        pages.begin() + static_cast<std::ptrdiff_t>(std::min(first + at_once, pages.size())));
    const std::string bytes =
        ask(url, kReadPagesPath, read_request(tier_.fingerprint(), some), some.size() * size);
    if (bytes.size() % size != 0 || bytes.size() > some.size() * size)
      throw SetupError("it sent other bytes than whole pages");
    for (size_t i = 0; i * size < bytes.size(); ++i) {
      const auto fill = [&](std::span<std::byte> to) {
        std::memcpy(to.data(), bytes.data() + i * size, size);
      };
      while (!tier_.receive(some[i].key, some[i].parent, fill)) {
        if (tier_.stats().refuted > 0 || !pause(kWhenFull)) return;
      }
    }
    if (!pause(std::chrono::milliseconds(0))) return;
  }
}

std::string PageFetcher::ask(const std::string& url, const char* path, const std::string& body,
                             size_t most_bytes) {
  const std::string nonce = fresh_nonce();
  const nlohmann::json headers = {
      {"content-type", "application/json"},
      {kNonceHeader, nonce},
      {kProofHeader, options_.secret.proof(PeerSecret::Side::kRequest, path, nonce, body)}};
  const std::string request = nlohmann::json{
      {"url", url + path},
      {"headers", headers},
      {"timeout_ms", kRequestTime.count()},
      {"most_bytes", most_bytes},
      {"answer_header",
       kProofHeader}}.dump();
  uint16_t status = 0;
  RustText answer;
  RustText proof;
  RustText error;
  if (octavo_http_post(request.data(), request.size(), body.data(), body.size(), &status,
                       answer.out(), proof.out(), error.out()) != OCTAVO_RUST_OK)
    throw PeerAway(std::string(error.view()));
  if (status == 503) throw PeerAway("it is not ready");
  if (status != 200)
    throw SetupError(fmt::format("it answered {}: {}", status, answer.view().substr(0, 300)));
  if (!options_.secret.proves(proof.view(), PeerSecret::Side::kResponse, path, nonce,
                              answer.view()))
    throw SetupError("its answer does not prove the secret of --prefix-peer-secret-file");
  return std::string(answer.view());
}

}  // namespace octavo
