#include "server/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include "server/metrics/engine_metrics.h"

namespace octavo::server {
namespace {

using Bounds = prometheus::Histogram::BucketBoundaries;

const Bounds kFirstTokenSeconds = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                   1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
const Bounds kTokenSeconds = {.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                              .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
const Bounds kRequestSeconds = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};

// 1, 2, 5, 10, 20 and so on, up to `most`.
Bounds one_two_five(int most) {
  Bounds bounds;
  for (double tens = 1;; tens *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit * tens > most) return bounds;
      bounds.push_back(digit * tens);
    }
  }
}

}  // namespace

ServerMetrics::ServerMetrics(const api::ServedModel& model)
    : HttpMetrics({{"model_name", model.name()}, {"engine", "0"}}),
      engine_(std::make_unique<EngineMetrics>(model, labels_)),
      time_to_first_token(histogram("vllm:time_to_first_token_seconds",
                                    "From a request's arrival to its first token",
                                    kFirstTokenSeconds)),
      inter_token_latency(histogram("vllm:inter_token_latency_seconds",
                                    "Time between consecutive output tokens", kTokenSeconds)),
      time_per_output_token(histogram("vllm:request_time_per_output_token_seconds",
                                      "Mean time per output token after the first", kTokenSeconds)),
      e2e_request_latency(histogram("vllm:e2e_request_latency_seconds",
                                    "From a request's arrival to its end", kRequestSeconds)),
      request_queue_time(histogram("vllm:request_queue_time_seconds",
                                   "From a request's arrival until it was scheduled",
                                   kRequestSeconds)),
      request_inference_time(histogram("vllm:request_inference_time_seconds",
                                       "From a request's scheduling to its last token",
                                       kRequestSeconds)),
      request_prefill_time(histogram("vllm:request_prefill_time_seconds",
                                     "From a request's scheduling to its first token",
                                     kRequestSeconds)),
      request_decode_time(histogram("vllm:request_decode_time_seconds",
                                    "From a request's first token to its last", kRequestSeconds)),
      request_prompt_tokens(histogram("vllm:request_prompt_tokens", "Number of prompt tokens",
                                      one_two_five(model.max_model_len))),
      request_generation_tokens(histogram("vllm:request_generation_tokens",
                                          "Number of generated tokens",
                                          one_two_five(model.max_model_len))),
      prompt_tokens(counter("vllm:prompt_tokens_total", "Prompt tokens processed")),
      prompt_tokens_by_key(registry_, labels_, "octavo:prompt_tokens_by_key_total",
                           "Prompt tokens by the name of the API key"),
      generation_tokens_by_key(registry_, labels_, "octavo:generation_tokens_by_key_total",
                               "Generated tokens by the name of the API key"),
      text_workers_stuck(gauge("octavo:text_workers_stuck",
                               "Text workers that have been busy with one request for over 10 s")) {
  for (const auto reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort, FinishReason::kError})
    request_success(reason);  // create the counter, so that rates include the first event
}

prometheus::Histogram& ServerMetrics::histogram(const char* name, const char* help,
                                                const Bounds& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(labels_,
                                                                                    bounds);
}

void ServerMetrics::set_key_names(const std::set<std::string>& names) {
  HttpMetrics::set_key_names(names);
  prompt_tokens_by_key.set_names(names);
  generation_tokens_by_key.set_names(names);
}

prometheus::Counter& ServerMetrics::request_success(FinishReason reason) {
  return counter("vllm:request_success_total", "Finished choices by finish reason",
                 {{"finished_reason", std::string(octavo::name_of(reason))}});
}

std::string ServerMetrics::text() const {
  auto families = engine_->Collect();
  auto own = registry_.Collect();
  families.insert(families.end(), std::make_move_iterator(own.begin()),
                  std::make_move_iterator(own.end()));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace octavo::server
