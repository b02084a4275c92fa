#include "cache/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace octavo {
namespace {

constexpr uint64_t kReserveBytes = 256ull << 20;
// Requests outside the engine get this part of the budget, up to a limit.
constexpr uint64_t kRequestPart = 8;
constexpr uint64_t kMostRequestBytes = 1ull << 30;

uint64_t request_bytes_of(uint64_t budget_bytes) {
  return std::min(budget_bytes / kRequestPart, kMostRequestBytes);
}

// Of a model that takes images, with what requests hold of them: in sixteenths of the memory of
// requests, 4 for resized images and 15 for one that is decoded (api/request_memory.cpp).
uint64_t image_bytes_of(const MemoryRequest& request, uint64_t budget_bytes) {
  constexpr uint64_t kParts = 4 + 15;
  if (request.image_bytes == 0 || !request.serves_requests) return request.image_bytes;
  return request.image_bytes + request_bytes_of(budget_bytes) / 16 * kParts;
}

// The longest context whose pages fit in `bytes`.
int context_that_fits(uint64_t bytes, const CachePlan& cache, int step_tokens) {
  int low = 0;
  int high = 1 << 30;
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    const auto pages = static_cast<uint64_t>(cache.pages_held(middle, step_tokens));
    if (pages * cache.bytes_per_page_id() <= bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Page ids that fit in `bytes`. A stage whose layers keep nothing has pages of no bytes.
int pages_in(uint64_t bytes, const CachePlan& cache) {
  if (cache.bytes_per_page_id() == 0) return INT32_MAX;
  return static_cast<int>(std::min<uint64_t>(bytes / cache.bytes_per_page_id(), INT32_MAX));
}

// The most memory for pages such that no buffer exceeds `buffer_bytes`.
uint64_t bytes_in_buffers(uint64_t buffer_bytes, const CachePlan& cache) {
  return buffer_bytes / cache.page_bytes * cache.bytes_per_page_id();
}

// A note for errors if the limit is the size of a buffer.
std::string buffer_note(const MemoryRequest& request, const CachePlan& cache, uint64_t room) {
  if (!request.buffer_bytes || bytes_in_buffers(*request.buffer_bytes, cache) > room) return "";
  return fmt::format(" ({} buffers, none longer than the {} this device allows)", cache.slots,
                     format_bytes(*request.buffer_bytes));
}

uint64_t room_for_pages(const MemoryRequest& request, const CachePlan& cache,
                        const MemoryPlan& plan) {
  const uint64_t taken = plan.total_bytes();  // without pages
  if (taken >= plan.budget_bytes && plan.is_limited) {
    throw SetupError(
        fmt::format("the model needs {} without any pages, but --memory-limit is {}; raise it",
                    format_bytes(taken), format_bytes(plan.budget_bytes)));
  }
  if (taken >= plan.budget_bytes) {
    const double needed = static_cast<double>(taken) / static_cast<double>(plan.device_bytes);
    const std::string advice =
        needed < 0.97
            ? fmt::format("--memory-fraction {:.2f} would be enough", std::min(0.98, needed + 0.02))
            : std::string("this machine is too small for it: choose a smaller or quantised model");
    throw SetupError(fmt::format(
        "the model needs {} without any pages, but the budget is {} ({:.0f}% of {}): {}",
        format_bytes(taken), format_bytes(plan.budget_bytes), request.memory_fraction * 100,
        format_bytes(plan.device_bytes), advice));
  }
  uint64_t room = plan.budget_bytes - taken;
  if (request.buffer_bytes) room = std::min(room, bytes_in_buffers(*request.buffer_bytes, cache));
  if (request.kv_bytes && *request.kv_bytes > room) {
    throw SetupError(
        fmt::format("--kv-memory {} does not fit: only {} is left{}; use --kv-memory {}MiB or less",
                    format_bytes(*request.kv_bytes), format_bytes(room),
                    buffer_note(request, cache, room), room >> 20));
  }
  return request.kv_bytes.value_or(room);
}

}  // namespace

uint64_t server_budget_for(uint64_t bytes) {
  uint64_t budget = bytes + std::min(bytes / (kRequestPart - 1), kMostRequestBytes);
  while (budget - request_bytes_of(budget) < bytes) ++budget;
  return budget;
}

uint64_t bytes_besides_layers(const MemoryRequest& request, uint64_t budget_bytes) {
  return request.draft_bytes + request.adapter_bytes + image_bytes_of(request, budget_bytes) +
         request.step_bytes + request.disk_bytes +
         (request.serves_requests ? request_bytes_of(budget_bytes) : 0) + kReserveBytes;
}

MemoryPlan plan_memory(const MemoryRequest& request, const CachePlan& cache) {
  if (!(request.memory_fraction > 0 && request.memory_fraction <= 1)) {
    throw SetupError("--memory-fraction: must be above 0 and at most 1, e.g. 0.9");
  }
  MemoryPlan plan;
  plan.device_bytes = request.device_bytes;
  plan.device_note = request.device_note;
  plan.budget_bytes =
      static_cast<uint64_t>(static_cast<double>(request.device_bytes) * request.memory_fraction);
  plan.is_limited = request.limit_bytes && *request.limit_bytes < plan.budget_bytes;
  if (plan.is_limited) plan.budget_bytes = *request.limit_bytes;
  plan.weights_bytes = request.weights_bytes;
  plan.draft_bytes = request.draft_bytes;
  plan.adapter_bytes = request.adapter_bytes;
  plan.image_bytes = image_bytes_of(request, plan.budget_bytes);
  plan.step_bytes = request.step_bytes;
  plan.disk_bytes = request.disk_bytes;
  if (request.serves_requests) plan.request_bytes = request_bytes_of(plan.budget_bytes);
  plan.reserve_bytes = kReserveBytes;

  const uint64_t room = room_for_pages(request, cache, plan);
  const int fits = context_that_fits(room, cache, request.step_tokens);
  if (fits == 0) {
    throw SetupError(
        fmt::format("{} left for pages{}, but one sequence needs at least {}: raise --kv-memory or "
                    "--memory-fraction, or "
                    "lower --block-size",
                    format_bytes(room), buffer_note(request, cache, room),
                    format_bytes(cache.groups.size() * cache.bytes_per_page_id())));
  }
  if (request.max_model_len && *request.max_model_len > fits) {
    throw SetupError(fmt::format(
        "--max-model-len {} needs {} of pages, but only {} is left{}; use --max-model-len {} or "
        "less",
        *request.max_model_len,
        format_bytes(
            static_cast<uint64_t>(cache.pages_held(*request.max_model_len, request.step_tokens)) *
            cache.bytes_per_page_id()),
        format_bytes(room), buffer_note(request, cache, room), fits));
  }
  plan.max_model_len = request.max_model_len.value_or(std::min(request.model_context, fits));
  const int64_t usual =
      int64_t{request.usual_sequences} *
      cache.pages_held(std::min(plan.max_model_len, request.usual_tokens), request.step_tokens);
  const int wanted = static_cast<int>(std::min<int64_t>(
      INT32_MAX,
      std::max<int64_t>(usual, cache.pages_held(plan.max_model_len, request.step_tokens))));
  const int most = pages_in(room, cache);
  plan.page_count = request.kv_bytes ? most : std::min(wanted, most);
  plan.kv_bytes = static_cast<uint64_t>(plan.page_count) * cache.bytes_per_page_id();
  plan.least_kv_bytes =
      cache.bytes_per_page_id() * static_cast<uint64_t>(cache.pages_held(
                                      request.max_model_len.value_or(1), request.step_tokens));
  return plan;
}

std::string MemoryPlan::table() const {
  auto row = [](const char* name, uint64_t bytes, const std::string& note) {
    return fmt::format("  {:<22}{:>10}  {}\n", name, format_bytes(bytes), note);
  };
  return row("machine", device_bytes, device_note) +
         row("budget", budget_bytes, is_limited ? "--memory-limit" : "--memory-fraction of it") +
         row("weights", weights_bytes, "") +
         (draft_bytes > 0 ? row("draft model", draft_bytes, "weights, pages and steps") : "") +
         (adapter_bytes > 0 ? row("adapters", adapter_bytes, "LoRA slots and loaded adapters")
                            : "") +
         (image_bytes > 0
              ? row("images", image_bytes, "encoded ones, one being encoded, and those of requests")
              : "") +
         row("steps", step_bytes, "activations and logits of the largest, and one queued ahead") +
         (disk_bytes == 0 ? "" : row("disk tier", disk_bytes, "pages being copied")) +
         (request_bytes == 0
              ? ""
              : row("requests", request_bytes, "bodies, grammars and stored responses")) +
         row("reserve", reserve_bytes, "") +
         row("pages", kv_bytes, fmt::format("{} pages, context {}", page_count, max_model_len)) +
         row("left", budget_bytes > total_bytes() ? budget_bytes - total_bytes() : 0, "");
}

}  // namespace octavo
