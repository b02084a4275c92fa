#include "server/api_keys.h"

#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "base/constant_time.h"
#include "base/error.h"
#include "base/sha256.h"

namespace octavo::server {
namespace {

// Digests have a fixed length and do not reveal how much of a key matched.
std::string digest_of(std::string_view key) {
  const std::vector<uint8_t> bytes(key.begin(), key.end());
  const Sha256Digest digest = sha256(bytes);
  return {digest.begin(), digest.end()};
}

std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view value = request.header("Authorization");
  if (value.size() > kBearer.size() &&
      equal_ignoring_case(value.substr(0, kBearer.size()), kBearer))
    return value.substr(kBearer.size());
  return request.header("x-api-key");
}

}  // namespace

std::string owner_of(const HttpRequest& request) {
  const std::string_view key = key_of(request);
  return key.empty() ? "" : digest_of(key);
}

std::string owner_of_key(std::string_view key) { return digest_of(key); }

ApiKeys::ApiKeys(const std::vector<ApiKey>& keys, int64_t max_requests)
    : max_requests_(max_requests > 0 ? max_requests : std::numeric_limits<int64_t>::max()) {
  replace(keys);
}

void ApiKeys::replace(const std::vector<ApiKey>& keys) {
  std::map<std::string_view, std::shared_ptr<AcceptedKey>> known;
  for (const auto& key : keys_) known[key->owner] = key;
  std::vector<std::shared_ptr<AcceptedKey>> accepted;
  for (const ApiKey& key : keys) {
    if (is_blank_key(key.key)) throw SetupError("an API key is empty; every key needs a value");
    std::string owner = digest_of(key.key);
    const auto stays = known.find(owner);
    accepted.push_back(stays != known.end() ? stays->second
                                            : std::make_shared<AcceptedKey>(AcceptedKey{
                                                  .owner = std::move(owner),
                                                  .name = key.name,
                                                  .requests = Allowance(max_requests_)}));
  }
  for (size_t i = 0; i < keys.size(); ++i) accepted[i]->name = keys[i].name;
  keys_ = std::move(accepted);
}

std::shared_ptr<AcceptedKey> ApiKeys::find(const HttpRequest& request) const {
  const std::string_view key = key_of(request);
  if (key.empty()) return nullptr;
  const std::string seen = digest_of(key);
  size_t found = keys_.size();
  for (size_t i = 0; i < keys_.size(); ++i)
    if (equal_in_constant_time(seen, keys_[i]->owner)) found = i;
  return found < keys_.size() ? keys_[found] : nullptr;
}

std::shared_ptr<AcceptedKey> ApiKeys::find_owner(std::string_view owner) const {
  for (const auto& key : keys_)
    if (key->owner == owner) return key;
  return nullptr;
}

std::set<std::string> ApiKeys::names() const {
  std::set<std::string> names;
  for (const auto& key : keys_) names.insert(key->name);
  return names;
}

}  // namespace octavo::server
