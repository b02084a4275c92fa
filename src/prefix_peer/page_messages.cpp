#include "prefix_peer/page_messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octavo {
namespace {

using MessageJson = nlohmann::json;

[[noreturn]] void refuse_message(const char* what) {
  throw SetupError(fmt::format("a message of a --prefix-peer {}", what));
}

std::string hex_of_block(const BlockHash& block) {
  return fmt::format("{:02x}", fmt::join(block, ""));
}

BlockHash block_of_hex(const MessageJson& json) {
  BlockHash block = {};
  if (!json.is_string()) refuse_message("has a block in another form");
  const auto& text = json.get_ref<const std::string&>();
  if (text.size() != 2 * block.size()) refuse_message("has a block of another length");
  for (size_t i = 0; i < block.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, block[i], 16).ptr != digits + 2)
      refuse_message("has a block that is not in hex");
  }
  return block;
}

PageKey key_of_json(const MessageJson& block, const MessageJson& part) {
  if (!part.is_number_integer() || part.get<int64_t>() < INT32_MIN ||
      part.get<int64_t>() > INT32_MAX)
    refuse_message("has a part in another form");
  return {block_of_hex(block), part.get<int32_t>()};
}

MessageJson parse_message(const std::string& text) {
  const MessageJson json = MessageJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) refuse_message("is not a JSON object");
  return json;
}

// The member, which must be a list of at most `most` lists of `size` members.
MessageJson lists_of(const MessageJson& json, const char* name, size_t most, size_t size) {
  const MessageJson lists = json.value(name, MessageJson());
  if (!lists.is_array() || lists.size() > most)
    refuse_message("has no list of pages, or too long a one");
  for (const MessageJson& list : lists)
    if (!list.is_array() || list.size() != size) refuse_message("has a page of another form");
  return lists;
}

}  // namespace

std::string list_request(const std::string& fingerprint) {
  return MessageJson{{"fingerprint", fingerprint}}.dump();
}

std::string list_answer(const std::vector<DiskRecord>& pages) {
  MessageJson list = MessageJson::array();
  for (const DiskRecord& page : pages) {
    MessageJson parent;
    if (page.parent) parent = hex_of_block(page.parent->block);
    list.push_back(
        {hex_of_block(page.key.block), page.key.part, parent, page.parent ? page.parent->part : 0});
  }
  return MessageJson{{"pages", list}}.dump();
}

std::vector<PageLink> parse_list_answer(const std::string& json) {
  std::vector<PageLink> pages;
  for (const MessageJson& page : lists_of(parse_message(json), "pages", kMostListedPages, 4)) {
    PageLink link{key_of_json(page[0], page[1])};
    if (!page[2].is_null()) link.parent = key_of_json(page[2], page[3]);
    pages.push_back(link);
  }
  return pages;
}

std::string read_request(const std::string& fingerprint, const std::vector<PageLink>& pages) {
  MessageJson keys = MessageJson::array();
  for (const PageLink& page : pages) keys.push_back({hex_of_block(page.key.block), page.key.part});
  return MessageJson{{"fingerprint", fingerprint}, {"keys", keys}}.dump();
}

ReadRequest parse_request(const std::string& text) {
  const MessageJson json = parse_message(text);
  const MessageJson fingerprint = json.value("fingerprint", MessageJson());
  if (!fingerprint.is_string()) refuse_message("has no fingerprint");
  ReadRequest request{.fingerprint = fingerprint.get<std::string>()};
  if (!json.contains("keys")) return request;
  for (const MessageJson& key : lists_of(json, "keys", 64, 2))
    request.keys.push_back(key_of_json(key[0], key[1]));
  return request;
}

}  // namespace octavo
