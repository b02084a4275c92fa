// Any bytes as a message between ranks are decoded or refused with a WireError. The input is the
// message, or says how a valid one is made and changed.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

#include "fuzz/fuzz_input.h"
#include "support/control_messages.h"

namespace octavo {
namespace {

// Then each three bytes of the input change one byte of the message.
MessageBytes changed_message(const ControlMessage& kind, FuzzInput& input) {
  const uint32_t low = input.byte();
  RandomMessages random(low | uint32_t{input.byte()} << 8);
  MessageBytes bytes = kind.make(random);
  kind.decode(bytes);  // valid
  while (input.rest().size() >= 3 && !bytes.empty()) {
    const size_t at_low = input.byte();
    const size_t at = at_low | size_t{input.byte()} << 8;
    bytes[at % bytes.size()] ^= std::byte{input.byte()};
  }
  return bytes;
}

}  // namespace
}  // namespace octavo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octavo;
  static const auto kinds = control_messages();
  FuzzInput input(data, size);
  const ControlMessage& kind = std::next(kinds.begin(), input.byte() % kinds.size())->second;
  const bool as_it_is = input.byte() % 2 == 0;
  const auto rest = std::as_bytes(std::span(input.rest()));
  const MessageBytes bytes =
      as_it_is ? MessageBytes(rest.begin(), rest.end()) : changed_message(kind, input);
  try {
    kind.decode(bytes);
  } catch (const WireError&) {
  }
  return 0;
}
