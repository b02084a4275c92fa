// Any bytes as a tokenizer.json are refused with a SetupError, or give a tokenizer that encodes and
// decodes any text, or refuses it with a RequestError. Panics of the library are such errors.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"

namespace octavo {
namespace {

constexpr size_t kTextBytes = 64;

void request_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const RequestError&) {
  }
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  request_of([&] {
    const std::vector<TokenId> ids = tokenizer.encode(text, true);
    tokenizer.decode(ids, false);
    tokenizer.decode(ids, true);
    for (const TokenId id : ids) tokenizer.token_id(tokenizer.token_text(id));
  });
  request_of([&] { tokenizer.encode_marked(text, U'\uE000', false); });
  request_of([&] { tokenizer.encode_pair(text, "a b", 5); });
}

}  // namespace
}  // namespace octavo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octavo;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  std::shared_ptr<const Tokenizer> tokenizer;
  try {
    tokenizer = Tokenizer::from_json(json);
  } catch (const SetupError&) {
    return 0;
  }
  OCTAVO_CHECK(tokenizer->vocab_size() >= 0);
  tokenizer->special_tokens();
  use(*tokenizer, "Hello, it's 1234\n\n  \u00e9\u65e5\u672c <|im_end|>[MASK]\t.");
  use(*tokenizer, json.substr(json.size() - std::min(json.size(), kTextBytes)));
  request_of([&] { tokenizer->decode(std::vector<TokenId>{-1, 0, 1, 1 << 30}, false); });
  return 0;
}
