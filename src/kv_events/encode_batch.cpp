#include "kv_events/encode_batch.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace octavo::kv_events {
namespace {

using Json = nlohmann::ordered_json;

std::string kind_of(const SoftmaxSpec& spec) {
  if (spec.values_in_keys) return spec.window > 0 ? "sliding_window_mla" : "mla_attention";
  return spec.window > 0 ? "sliding_window" : "full_attention";
}

const char* medium_name(CacheMedium medium) {
  // "GPU" is vLLM's word for the memory that steps read, on every device.
  return medium == CacheMedium::kMemory ? "GPU" : "STORAGE";
}

Json key_json(const ExtraKey& key, EventForm form) {
  if (const auto* offset = std::get_if<int64_t>(&key.value)) return {key.name, *offset};
  const auto& text = std::get<std::string>(key.value);
  return form == EventForm::kArray ? Json(text) : Json::array({key.name, text});
}

Json keys_json(const ExtraKeys& extra, EventForm form) {
  if (extra.empty()) return nullptr;
  Json keys = Json::array();
  for (const ExtraKey& key : extra) keys.push_back(key_json(key, form));
  return keys;
}

Json adapter_name(const ExtraKeys& extra) {
  for (const ExtraKey& key : extra)
    if (const auto* text = std::get_if<std::string>(&key.value); text && key.name == kAdapterKey)
      return *text;
  return nullptr;
}

class EventWriter {
 public:
  EventWriter(const std::vector<GroupFacts>& groups, EventForm form)
      : groups_(groups), form_(form) {}

  void add(const Stored& stored) {
    const CachedBlock& block = stored.block;
    const Json adapter = adapter_name(block.extra);
    const bool follows = open_ && open_->medium == stored.medium &&
                         open_->block.group == block.group && block.parent == open_->block.hash &&
                         adapter == lora_name_;
    if (!follows) {
      close();
      parent_ = block.parent ? Json(*block.parent) : Json();
      lora_name_ = adapter;
    }
    hashes_.push_back(block.hash);
    for (TokenId token : block.tokens) tokens_.push_back(token);
    keys_.push_back(keys_json(block.extra, form_));
    open_ = &stored;
  }

  void add(const Removed& removed) {
    close();
    write("BlockRemoved", {{"block_hashes", Json::array({removed.hash})},
                           {"medium", medium_name(removed.medium)},
                           {"group_idx", removed.group}});
  }

  void add(const Cleared&) {
    close();
    write("AllBlocksCleared", Json::object());
  }

  Json take() {
    close();
    return std::move(events_);
  }

 private:
  // Writes the event of the blocks added so far.
  void close() {
    if (!open_) return;
    const int group = open_->block.group;
    const GroupFacts& facts = groups_[static_cast<size_t>(group)];
    Json fields = {{"block_hashes", std::exchange(hashes_, Json::array())},
                   {"parent_block_hash", parent_},
                   {"token_ids", std::exchange(tokens_, Json::array())},
                   {"block_size", facts.block_tokens},
                   {"lora_id", nullptr},
                   {"medium", medium_name(open_->medium)},
                   {"lora_name", lora_name_},
                   {"extra_keys", std::exchange(keys_, Json::array())},
                   {"group_idx", group},
                   {"kv_cache_spec_kind", facts.kind}};
    if (facts.window > 0) fields["kv_cache_spec_sliding_window"] = facts.window;
    open_ = nullptr;
    write("BlockStored", std::move(fields));
  }

  void write(const char* type, Json fields) {
    if (form_ == EventForm::kArray) {
      Json event = Json::array({type});
      for (Json& value : fields) event.push_back(std::move(value));
      events_.push_back(std::move(event));
      return;
    }
    Json event = {{"type", type}};
    event.update(fields);
    events_.push_back(std::move(event));
  }

  const std::vector<GroupFacts>& groups_;
  EventForm form_;
  Json events_ = Json::array();
  const Stored* open_ = nullptr;  // the last block of the event being collected
  Json parent_;
  Json lora_name_;
  Json hashes_ = Json::array();
  Json tokens_ = Json::array();
  Json keys_ = Json::array();
};

}  // namespace

std::vector<GroupFacts> group_facts(const CachePlan& plan) {
  std::vector<GroupFacts> groups;
  for (const CacheGroup& group : plan.groups)
    groups.push_back({kind_of(group.spec), group.spec.window, group.block_tokens});
  if (plan.state) groups.push_back({.kind = "mamba", .block_tokens = plan.common_tokens()});
  return groups;
}

std::vector<uint8_t> encode_batch(double seconds, const std::deque<Change>& changes,
                                  const std::vector<GroupFacts>& groups, EventForm form) {
  EventWriter writer(groups, form);
  for (const Change& change : changes)
    std::visit([&](const auto& each) { writer.add(each); }, change);
  return Json::to_msgpack(Json::array({seconds, writer.take(), 0}));
}

}  // namespace octavo::kv_events
