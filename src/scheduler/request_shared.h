// request_shared.h - data shared by the choices of a request. No MLX.
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
  size_t model_stop_tokens = 0;           // the first so many are the model's own
  std::shared_ptr<const LogitRules> rules = nullptr;
  SequenceKeys keys = {};
  int max_length = 0;  // of prompt and output
  // Where other sequences may continue from this prompt; see snapshot_edges().
  std::vector<int> snapshot_edges = {};
  bool whole_prompt = false;  // SchedulerOptions::whole_prompts
};

std::shared_ptr<const RequestShared> share_request(RequestId id, Request request,
                                                   const SchedulerOptions& options,
                                                   const CachePlan& plan);

}  // namespace octavo
