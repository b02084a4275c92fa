#include "cache/block_hash.h"

#include <string_view>

namespace octavo {
namespace {

// Appends canonical CBOR: every length and number in its shortest form.
class CborWriter {
 public:
  void array(size_t items) { head(4, items); }
  void integer(int64_t value) {
    value >= 0 ? head(0, static_cast<uint64_t>(value)) : head(1, static_cast<uint64_t>(-1 - value));
  }
  void bytes(std::span<const uint8_t> value) {
    head(2, value.size());
    out_.insert(out_.end(), value.begin(), value.end());
  }
  void text(std::string_view value) {
    head(3, value.size());
    out_.insert(out_.end(), value.begin(), value.end());
  }
  void null() { out_.push_back(0xf6); }

  std::span<const uint8_t> written() const { return out_; }

 private:
  void head(int major, uint64_t value) {
    const auto type = static_cast<uint8_t>(major << 5);
    if (value < 24) {
      out_.push_back(static_cast<uint8_t>(type | value));
      return;
    }
    const int log_bytes = value < 0x100 ? 0 : value < 0x10000 ? 1 : value < 0x100000000 ? 2 : 3;
    out_.push_back(static_cast<uint8_t>(type | (24 + log_bytes)));
    for (int byte = (1 << log_bytes) - 1; byte >= 0; --byte)
      out_.push_back(static_cast<uint8_t>(value >> (8 * byte)));
  }

  std::vector<uint8_t> out_;
};

}  // namespace

const BlockHash& none_hash() {
  static const BlockHash hash = [] {
    CborWriter cbor;
    cbor.text("vllm-none-hash");
    return sha256(cbor.written());
  }();
  return hash;
}

BlockHash hash_block(const BlockHash& parent, std::span<const TokenId> tokens,
                     const ExtraKeys& extra) {
  CborWriter cbor;
  cbor.array(3);
  cbor.bytes(parent);
  cbor.array(tokens.size());
  for (TokenId token : tokens) cbor.integer(token);
  if (extra.empty()) {
    cbor.null();
  } else {
    cbor.array(extra.size());
    for (const ExtraKey& key : extra) {
      cbor.array(2);
      cbor.text(key.name);
      if (const auto* text = std::get_if<std::string>(&key.value)) {
        cbor.text(*text);
      } else {
        cbor.integer(std::get<int64_t>(key.value));
      }
    }
  }
  return sha256(cbor.written());
}

uint64_t short_hash(const BlockHash& hash) {
  uint64_t value = 0;
  for (size_t i = hash.size() - 8; i < hash.size(); ++i) value = value << 8 | hash[i];
  return value;
}

}  // namespace octavo
