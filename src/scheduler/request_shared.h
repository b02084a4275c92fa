// request_shared.h - what the choices of a request share. No MLX.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cache/sequence_cache.h"
#include "kernels/types/row_sampling.h"
#include "scheduler/request.h"
#include "scheduler/update.h"

namespace octavo {

struct SchedulerOptions;

struct RequestShared {
  RequestId id = 0;
  Request request;
  std::vector<TokenId> stop_tokens = {};  // the model's own, unless ignored, and the request's
  size_t model_stop_tokens = 0;           // how many of them, at the front, are the model's own
  std::shared_ptr<const LogitRules> rules = nullptr;
  SequenceKeys keys = {};
  int max_length = 0;  // tokens of prompt and answer
  // Where others may go on from this prompt: its message borders and its end, at full pages.
  std::vector<int> snapshot_edges = {};
};

std::shared_ptr<const RequestShared> share_request(RequestId id, Request request,
                                                   const SchedulerOptions& options,
                                                   const CachePlan& plan);

}  // namespace octavo
