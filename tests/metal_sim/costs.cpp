#include "metal_sim/costs.h"

#include <algorithm>
#include <bit>
#include <span>

namespace octavo::metal_sim {
namespace {

constexpr size_t kLineBytes = 128;
constexpr size_t kWordBytes = 4;
constexpr size_t kBanks = 32;
// Accesses are combined if they are among so many that follow each other in the program.
constexpr size_t kCombined = 32;

// The numbers of the blocks of `unit` bytes that a request touches, each once.
template <typename Addresses>
std::vector<uintptr_t> blocks_of(const Addresses& addresses, uint32_t lanes, unsigned bytes,
                                 size_t unit) {
  std::vector<uintptr_t> blocks;
  for (size_t lane = 0; lane < addresses.size(); ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const uintptr_t last = (addresses[lane] + bytes - 1) / unit;
    for (uintptr_t block = addresses[lane] / unit; block <= last; ++block) blocks.push_back(block);
  }
  std::ranges::sort(blocks);
  blocks.erase(std::ranges::unique(blocks).begin(), blocks.end());
  return blocks;
}

}  // namespace

uint64_t OperationCosts::arithmetic() const {
  uint64_t sum = 0;
  for (const Operation kind :
       {Operation::kMultiplyAdd, Operation::kMatrix, Operation::kFloat, Operation::kSpecial,
        Operation::kInteger, Operation::kConversion, Operation::kLane, Operation::kPrivate})
    sum += of(kind);
  return sum;
}

void OperationCosts::add(const OperationCosts& other) {
  for (size_t i = 0; i < kOperationKinds; ++i) counts[i] += other.counts[i];
  registers = std::max(registers, other.registers);
  spilled_bytes = std::max(spilled_bytes, other.spilled_bytes);
  if (other.hottest <= hottest) return;
  hottest = other.hottest;
  block_operations = other.block_operations;
  block_chain = other.block_chain;
  block_carried = other.block_carried;
}

void MemoryCosts::add(const MemoryCosts& other) {
  requests += other.requests;
  lanes += other.lanes;
  lane_bytes += other.lane_bytes;
  bytes += other.bytes;
  lines += other.lines;
  passes += other.passes;
  least_passes += other.least_passes;
}

void AccessTrace::add(uint32_t lane, const void* instruction, uintptr_t address, unsigned bytes,
                      Place place) {
  Site& site = sites_[instruction];
  const size_t time = site.times[lane]++;
  if (time == site.requests.size()) {
    site.requests.push_back(requests_.size());
    requests_.push_back(
        {.addresses = {}, .lanes = 0, .bytes = bytes, .element_bytes = bytes, .place = place});
  }
  Request& request = requests_[site.requests[time]];
  request.addresses[lane] = address;
  request.lanes |= 1u << lane;
}

bool AccessTrace::continues(const Request& first, const Request& next) {
  if (first.place.costs != next.place.costs || first.lanes != next.lanes ||
      first.element_bytes != next.element_bytes || first.element_bytes > kWordBytes ||
      first.bytes + next.bytes > 4 * first.element_bytes)
    return false;
  for (size_t lane = 0; lane < first.addresses.size(); ++lane)
    if ((first.lanes >> lane & 1) != 0 &&
        first.addresses[lane] + first.bytes != next.addresses[lane])
      return false;
  return true;
}

void AccessTrace::count(const Request& request) {
  MemoryCosts& costs = *request.place.costs;
  const auto lanes = static_cast<uint64_t>(std::popcount(request.lanes));
  ++costs.requests;
  costs.lanes += lanes;
  costs.lane_bytes += lanes * request.bytes;
  costs.bytes += blocks_of(request.addresses, request.lanes, request.bytes, 1).size();
  if (request.place.is_device) {
    costs.lines += blocks_of(request.addresses, request.lanes, request.bytes, kLineBytes).size();
    return;
  }
  const auto words = blocks_of(request.addresses, request.lanes, request.bytes, kWordBytes);
  std::array<uint64_t, kBanks> in_bank = {};
  for (const uintptr_t word : words) ++in_bank[word % kBanks];
  costs.passes += *std::ranges::max_element(in_bank);
  costs.least_passes += (words.size() + kBanks - 1) / kBanks;
}

void AccessTrace::flush() {
  const auto first_address = [](const Request& request) {
    return request.addresses[static_cast<size_t>(std::countr_zero(request.lanes))];
  };
  for (size_t begin = 0; begin < requests_.size(); begin += kCombined) {
    const auto near =
        std::span(requests_).subspan(begin, std::min(kCombined, requests_.size() - begin));
    std::ranges::stable_sort(near, {}, first_address);
    for (size_t i = 0; i < near.size();) {
      Request& request = near[i++];
      while (i < near.size() && continues(request, near[i])) request.bytes += near[i++].bytes;
      count(request);
    }
  }
  requests_.clear();
  sites_.clear();
}

}  // namespace octavo::metal_sim
