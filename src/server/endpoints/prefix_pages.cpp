// POST /octavo/prefix_pages/list and /octavo/prefix_pages/read: pages of the disk tier, for replicas
// that know the secret (prefix_peer/peer_secret.h). Only on the internal listener.
#include <chrono>
#include <thread>

#include "cache/disk_tier.h"
#include "prefix_peer/page_messages.h"
#include "prefix_peer/peer_secret.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"

namespace octavo::server {

using namespace api;

namespace {

constexpr std::chrono::seconds kReadPatience{5};

struct PeerAnswer {
  std::string body;
  std::string proof;
};

// Up to the first page that is missing or late. Blocks its text worker.
std::string read_from_disk(DiskTier& tier, const std::vector<PageKey>& keys) {
  const auto read = tier.read(keys);
  const auto end = std::chrono::steady_clock::now() + kReadPatience;
  std::string bytes;
  size_t arrived = 0;
  while (arrived < keys.size() && std::chrono::steady_clock::now() < end) {
    for (const DiskTier::Arrival& arrival : tier.take(*read)) {
      if (arrival.bytes.empty()) return bytes;
      bytes.append(reinterpret_cast<const char*>(arrival.bytes.data()), arrival.bytes.size());
      ++arrived;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return bytes;
}

// Only pages of the common namespace may be asked for.
void refuse_other_namespaces(const DiskTier& tier, const std::vector<PageKey>& keys) {
  if (!tier.are_common(keys))
    throw RequestError(404, "keys", "is not a page that may be shared, or it was evicted");
}

std::string answer_of(DiskTier& tier, const ReadRequest& request) {
  if (request.fingerprint != tier.fingerprint())
    throw RequestError(409, "fingerprint",
                       "differs: both replicas need the same program, model files, --dtype, "
                       "--kv-cache-dtype and --block-size");
  if (request.keys.empty()) return list_answer(tier.common_pages(kMostListedPages));
  if (request.keys.size() > pages_per_read(tier.page_bytes()))
    throw RequestError(400, "keys", "has too many pages");
  refuse_other_namespaces(tier, request.keys);
  return read_from_disk(tier, request.keys);
}

Awaitable<void> prefix_pages(ServerContext& context, Exchange& exchange) {
  const Place place(context, exchange.request());
  const HttpRequest& request = exchange.request();
  const auto on_worker = [&secret = *context.options.peer_secret, &tier = *context.model.disk,
                          path = request.path, nonce = std::string(request.header(kNonceHeader)),
                          proof = std::string(request.header(kProofHeader))](std::string body,
                                                                             const Preparation&) {
    if (!secret.proves(proof, PeerSecret::Side::kRequest, path, nonce, body))
      throw RequestError(403, "",
                         "The request does not prove the secret of --prefix-peer-secret-file");
    PeerAnswer answer{.body = answer_of(tier, parse_request(body)), .proof = {}};
    answer.proof = secret.proof(PeerSecret::Side::kResponse, path, nonce, answer.body);
    return answer;
  };
  PeerAnswer answer = co_await with_text_body(context, exchange, on_worker);
  HttpResponse response{.content_type = "application/octet-stream", .body = std::move(answer.body)};
  response.headers.emplace_back(kProofHeader, std::move(answer.proof));
  co_await exchange.send(std::move(response));
}

}  // namespace

std::vector<Endpoint> prefix_page_endpoints() {
  return {{.method = "POST", .path = kListPagesPath, .handler = prefix_pages},
          {.method = "POST", .path = kReadPagesPath, .handler = prefix_pages}};
}

}  // namespace octavo::server
