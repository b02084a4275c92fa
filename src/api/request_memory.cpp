#include "api/request_memory.h"

#include <algorithm>

namespace octavo::api {
namespace {

// In sixteenths. The remaining six are for what text workers hold while they prepare requests:
// parsed JSON above all, which takes up to eight times the size of its body.
constexpr uint64_t kParts = 16;
constexpr uint64_t kBodyParts = 4;
constexpr uint64_t kGrammarParts = 3;
constexpr uint64_t kTemplateParts = 2;
constexpr uint64_t kStoredParts = 1;
// These are not among them: the plan adds them for a model that takes images.
constexpr uint64_t kImageParts = 4;
constexpr uint64_t kDecodingParts = 15;
// One stored response may take this part of the store, so that one client cannot empty it.
constexpr size_t kResponsesAtLeast = 16;

}  // namespace

RequestMemory divide_request_memory(uint64_t bytes) {
  const uint64_t part = bytes / kParts;
  RequestMemory memory;
  memory.body_bytes = static_cast<int64_t>(kBodyParts * part);
  memory.stored_bytes = kStoredParts * part;
  memory.stored_response_bytes = memory.stored_bytes / kResponsesAtLeast;
  memory.template_bytes = kTemplateParts * part;
  memory.grammar_bytes = kGrammarParts * part;
  memory.image_bytes = kImageParts * part;
  memory.decoding_bytes = kDecodingParts * part;
  return memory;
}

}  // namespace octavo::api
