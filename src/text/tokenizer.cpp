#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/rust_border.h"
#include "base/units.h"
#include "text/utf8.h"

namespace octavo {
namespace {

static_assert(sizeof(TokenId) == sizeof(uint32_t));

// Texts of fewer bytes per allowed token are encoded without counting first: most of them fit.
constexpr size_t kUsualTokenBytes = 4;
// Pieces are cut anywhere, so their tokens are not exactly those of the whole text. A cut changes
// the tokens near it; twice as many over pieces of this size are a wide margin, not a proven bound.
constexpr size_t kPieceBytes = 64u << 10;
constexpr size_t kSureFactor = 2;

std::shared_ptr<const Tokenizer> named_error(const std::filesystem::path& path, auto make) {
  try {
    return make();
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

// `encode` fills the ids or the error, and returns a status. Throws RequestError.
std::vector<TokenId> taken_ids(auto encode) {
  octavo_ids ids{nullptr, 0};
  RustText error;
  const octavo_rust_status status = encode(&ids, error);
  if (status != OCTAVO_RUST_OK) {
    throw RequestError(status == OCTAVO_RUST_BUG ? 500 : 400, "prompt",
                       fmt::format("the text cannot be encoded: {}", error.view()));
  }
  std::vector<TokenId> result(ids.data, ids.data + ids.size);
  octavo_ids_free(ids);
  return result;
}

}  // namespace

Tokenizer::Tokenizer(octavo_tokenizer* handle, TokenizerOptions options)
    : handle_(handle), options_(options) {
  size_t size = 0;
  expect_ok(octavo_tokenizer_vocab_size(handle_, &size));
  vocab_size_ = static_cast<int>(size);
}

Tokenizer::~Tokenizer() { octavo_tokenizer_free(handle_); }

std::shared_ptr<const Tokenizer> Tokenizer::from_json(std::string_view json,
                                                      TokenizerOptions options) {
  octavo_tokenizer* handle = nullptr;
  RustText error;
  if (octavo_tokenizer_new(json.data(), json.size(), &handle, error.out()) != OCTAVO_RUST_OK) {
    throw SetupError(fmt::format("the tokenizer cannot be read: {}", error.view()));
  }
  return std::shared_ptr<const Tokenizer>(new Tokenizer(handle, options));
}

std::shared_ptr<const Tokenizer> Tokenizer::from_file(const std::filesystem::path& path,
                                                      TokenizerOptions options) {
  const std::string json = read_text_file(path);
  return named_error(path, [&] { return from_json(json, options); });
}

std::string Tokenizer::checked_text(std::string_view text) const {
  if (text.size() > options_.max_text_bytes) {
    throw RequestError(
        400, "prompt",
        fmt::format("the text is {}; at most {} can be encoded", format_bytes(text.size()),
                    format_bytes(options_.max_text_bytes)));
  }
  return replace_invalid_utf8(text);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  return encode_marked(text, 0, add_special_tokens);
}

std::vector<TokenId> Tokenizer::encode_marked(std::string_view text, char32_t marker,
                                              bool add_special_tokens) const {
  const std::string valid = checked_text(text);
  return taken_ids([&](octavo_ids* ids, RustText& error) {
    return marker == 0 ? octavo_tokenizer_encode(handle_, valid.data(), valid.size(),
                                                 add_special_tokens, ids, error.out())
                       : octavo_tokenizer_encode_marked(handle_, valid.data(), valid.size(), marker,
                                                        add_special_tokens, ids, error.out());
  });
}

Tokenizer::Pair Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                       size_t max_tokens) const {
  const std::string valid[2] = {checked_text(first), checked_text(second)};
  const char* const texts[2] = {valid[0].data(), valid[1].data()};
  const size_t sizes[2] = {valid[0].size(), valid[1].size()};
  size_t second_text = 0;
  Pair pair;
  pair.tokens = taken_ids([&](octavo_ids* ids, RustText& error) {
    return octavo_tokenizer_encode_pair(handle_, texts, sizes, max_tokens, ids, &second_text,
                                        error.out());
  });
  pair.second_text = static_cast<int>(second_text);
  return pair;
}

bool Tokenizer::exceeds(std::string_view text, size_t max_tokens) const {
  if (text.size() > options_.max_text_bytes) return false;  // encode() reports it
  if (text.size() <= kPieceBytes || text.size() / kUsualTokenBytes <= max_tokens) return false;
  size_t tokens = 0;
  while (!text.empty()) {
    size_t end = std::min(kPieceBytes, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    tokens += encode(text.substr(0, end), false).size();
    if (tokens > kSureFactor * max_tokens) return true;
    text.remove_prefix(end);
  }
  return false;
}

std::vector<std::string> Tokenizer::special_tokens() const {
  RustText json;
  expect_ok(octavo_tokenizer_special_tokens(handle_, json.out()));
  return nlohmann::json::parse(json.view()).get<std::vector<std::string>>();
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  RustText text;
  RustText error;
  const octavo_rust_status status =
      octavo_tokenizer_decode(handle_, reinterpret_cast<const uint32_t*>(ids.data()), ids.size(),
                              skip_special_tokens, text.out(), error.out());
  if (status != OCTAVO_RUST_OK) {
    throw RequestError(500, "tokens",
                       fmt::format("the tokens cannot be decoded: {}", error.view()));
  }
  return std::string(text.view());
}

std::optional<TokenId> Tokenizer::token_id(std::string_view token) const {
  if (!is_valid_utf8(token)) return std::nullopt;
  bool found = false;
  uint32_t id = 0;
  expect_ok(octavo_tokenizer_token_to_id(handle_, token.data(), token.size(), &found, &id));
  return found ? std::optional(static_cast<TokenId>(id)) : std::nullopt;
}

std::string Tokenizer::token_text(TokenId id) const {
  bool found = false;
  RustText text;
  expect_ok(octavo_tokenizer_id_to_token(handle_, static_cast<uint32_t>(id), &found, text.out()));
  return std::string(text.view());
}

std::string Tokenizer::json() const {
  RustText json;
  RustText error;
  if (octavo_tokenizer_json(handle_, json.out(), error.out()) != OCTAVO_RUST_OK)
    throw SetupError(fmt::format("the tokenizer cannot be written as JSON: {}", error.view()));
  return std::string(json.view());
}

bool Tokenizer::is_special(TokenId id) const {
  bool special = false;
  expect_ok(octavo_tokenizer_is_special(handle_, static_cast<uint32_t>(id), &special));
  return special;
}

}  // namespace octavo
