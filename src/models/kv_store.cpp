#include "models/kv_store.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/runtime/device_buffer.h"

namespace octavo {

KvStore::KvStore(CachePlan plan, int page_count, KernelPath path, size_t stage)
    : plan_(std::move(plan)), slots_(plan_.stages.at(stage)), page_count_(page_count), path_(path) {
  for (int slot = 0; slot < slots_.count; ++slot) {
    memory_.push_back(
        make_device_buffer({page_count, static_cast<int>(plan_.page_bytes)}, mx::uint8));
    bytes_.push_back(memory_.back().data<std::byte>());
  }
  buffers_ = memory_;
}

void KvStore::touch() {
  for (auto& buffer : memory_) touch_device_buffer(buffer);
}

void KvStore::copy_out(PageId page, std::span<std::byte> to) const {
  OCTAVO_CHECK(page >= 0 && page < page_count_ && to.size() == bytes_per_page());
  const size_t offset = static_cast<size_t>(page) * plan_.page_bytes;
  for (size_t slot = 0; slot < bytes_.size(); ++slot)
    std::memcpy(to.data() + slot * plan_.page_bytes, bytes_[slot] + offset, plan_.page_bytes);
}

void KvStore::copy_in(PageId page, std::span<const std::byte> from) {
  OCTAVO_CHECK(page >= 0 && page < page_count_ && from.size() == bytes_per_page());
  const size_t offset = static_cast<size_t>(page) * plan_.page_bytes;
  for (size_t slot = 0; slot < bytes_.size(); ++slot)
    std::memcpy(bytes_[slot] + offset, from.data() + slot * plan_.page_bytes, plan_.page_bytes);
}

size_t KvStore::buffer_of(int layer) const {
  const int slot = plan_.places.at(static_cast<size_t>(layer)).slot;
  OCTAVO_CHECK(slot >= slots_.first && slot < slots_.end());
  return static_cast<size_t>(slot - slots_.first);
}

KvPages KvStore::layer(int layer) const {
  const LayerPlace place = plan_.places.at(static_cast<size_t>(layer));
  const CacheGroup& group = plan_.groups[static_cast<size_t>(place.group)];
  return {buffers_[buffer_of(layer)], group.geometry(), path_};
}

StatePages KvStore::state(int layer) const {
  const LayerPlace place = plan_.places.at(static_cast<size_t>(layer));
  return {buffers_[buffer_of(layer)], plan_.state.value().geometry(place.row), path_};
}

void KvStore::rebind(int layer, const mx::array& written) { buffers_[buffer_of(layer)] = written; }

}  // namespace octavo
