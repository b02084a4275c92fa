#include "server/metrics/engine_metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/system_memory.h"

namespace octavo::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Label = ClientMetric::Label;

// Builds families one metric at a time.
class Families {
 public:
  explicit Families(std::vector<Label> labels) : labels_(std::move(labels)) {}

  void gauge(const char* name, const char* help, double value, std::vector<Label> more = {}) {
    add(name, help, MetricType::Gauge, std::move(more)).gauge.value = value;
  }
  void counter(const char* name, const char* help, double value, std::vector<Label> more = {}) {
    add(name, help, MetricType::Counter, std::move(more)).counter.value = value;
  }
  void histogram(const char* name, const char* help, const BucketCounts& counts) {
    ClientMetric::Histogram& histogram = add(name, help, MetricType::Histogram, {}).histogram;
    uint64_t so_far = 0;
    for (size_t i = 0; i < counts.counts().size(); ++i) {
      so_far += counts.counts()[i];
      const bool last = i == counts.bounds().size();
      histogram.bucket.push_back(
          {.cumulative_count = so_far,
           .upper_bound = last ? std::numeric_limits<double>::infinity() : counts.bounds()[i]});
    }
    histogram.sample_count = so_far;
    histogram.sample_sum = counts.sum();
  }

  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  // Metrics of one family must be added consecutively.
  ClientMetric& add(const char* name, const char* help, MetricType type, std::vector<Label> more) {
    if (families_.empty() || families_.back().name != name) {
      MetricFamily family;
      family.name = name;
      family.help = help;
      family.type = type;
      families_.push_back(std::move(family));
    }
    ClientMetric metric;
    metric.label = labels_;
    metric.label.insert(metric.label.end(), more.begin(), more.end());
    families_.back().metric.push_back(std::move(metric));
    return families_.back().metric.back();
  }

  std::vector<Label> labels_;
  std::vector<MetricFamily> families_;
};

void add_requests(Families& families, const EngineStats& stats) {
  families.gauge("vllm:num_requests_running", "Running sequences", stats.scheduler.running);
  families.gauge("vllm:num_requests_waiting", "Waiting sequences", stats.scheduler.waiting);
  // The value is the time of the sample, as in vLLM.
  const AdapterUse& adapters = stats.adapters;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  families.gauge("vllm:lora_requests_info", "LoRA adapters of running and waiting sequences",
                 adapters.slots == 0 ? 0 : std::chrono::duration<double>(now).count(),
                 {{"max_lora", std::to_string(adapters.slots)},
                  {"waiting_lora_adapters", fmt::format("{}", fmt::join(adapters.waiting, ","))},
                  {"running_lora_adapters", fmt::format("{}", fmt::join(adapters.running, ","))}});
}

void add_pages(Families& families, const EngineStats& stats, const api::ServedModel& model) {
  const int used = stats.referenced_pages;
  const int free = stats.page_count - used - stats.cached_pages;
  families.gauge("vllm:kv_cache_usage_perc", "Fraction of the KV pages held by running sequences",
                 stats.page_count == 0 ? 0 : static_cast<double>(used) / stats.page_count);
  families.gauge("vllm:cache_config_info", "KV cache settings", 1,
                 {{"block_size", std::to_string(model.block_tokens)},
                  {"num_gpu_blocks", std::to_string(stats.page_count)},
                  {"enable_prefix_caching", model.enable_prefix_caching ? "True" : "False"}});
  const char* help = "KV pages by state";
  families.gauge("octavo:pages", help, free, {{"state", "free"}});
  families.gauge("octavo:pages", help, stats.cached_pages, {{"state", "cached"}});
  families.gauge("octavo:pages", help, used, {{"state", "referenced"}});
}

void add_totals(Families& families, const SchedulerStats& stats) {
  const auto total = [&](const char* name, const char* help, uint64_t value) {
    families.counter(name, help, static_cast<double>(value));
  };
  total("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache",
        stats.prefix_queries);
  total("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache",
        stats.prefix_hits);
  total("vllm:num_preemptions_total",
        "Sequences preempted for lack of KV pages or for another request", stats.preemptions);
  total("vllm:generation_tokens_total", "Tokens generated", stats.generated_tokens);
  total("vllm:spec_decode_num_drafts_total", "Speculative drafts", stats.drafts);
  total("vllm:spec_decode_num_draft_tokens_total", "Draft tokens", stats.draft_tokens);
  total("vllm:spec_decode_num_accepted_tokens_total", "Draft tokens accepted",
        stats.accepted_tokens);
  total("octavo:steps_total", "Steps queued", stats.steps);
  total("octavo:failed_steps_total", "Steps that failed and were retried", stats.failed_steps);
  const char* help = "Rows computed, by kind";
  families.counter("octavo:rows_total", help, static_cast<double>(stats.prompt_tokens),
                   {{"kind", "prefill"}});
  families.counter("octavo:rows_total", help, static_cast<double>(stats.decode_tokens),
                   {{"kind", "decode"}});
}

void add_images(Families& families, const SchedulerStats& stats) {
  if (!stats.takes_images) return;
  const auto total = [&](const char* name, const char* help, uint64_t value) {
    families.counter(name, help, static_cast<double>(value));
  };
  total("vllm:mm_cache_queries_total", "Images looked up among those that are encoded",
        stats.image_queries);
  total("vllm:mm_cache_hits_total", "Images found there", stats.image_hits);
  total("octavo:images_encoded_total", "Images encoded", stats.images_encoded);
}

void add_disk(Families& families, const DiskStats& stats) {
  if (!stats.on) return;
  const auto total = [&](const char* name, const char* help, uint64_t value) {
    families.counter(name, help, static_cast<double>(value));
  };
  families.gauge("octavo:prefix_disk_bytes",
                 "Bytes of the disk tier's files, including other models'",
                 static_cast<double>(stats.bytes));
  families.gauge("octavo:prefix_disk_pages", "This model's pages on disk",
                 static_cast<double>(stats.pages));
  families.gauge("octavo:prefix_disk_shut_out", "1 while another process uses the folder",
                 stats.shut_out ? 1 : 0);
  families.gauge("octavo:prefix_disk_writes_off", "1 while writing is suspended after disk errors",
                 stats.writes_off ? 1 : 0);
  total("octavo:prefix_disk_hits_total", "Prompts with pages found on disk", stats.hits);
  total("octavo:prefix_disk_misses_total", "Prompts with no pages on disk beyond those in memory",
        stats.misses);
  total("octavo:prefix_disk_restored_tokens_total",
        "Prompt tokens restored from disk instead of computed", stats.restored_tokens);
  total("octavo:prefix_disk_read_pages_total", "Pages read and verified", stats.read);
  total("octavo:prefix_disk_written_pages_total", "Pages written", stats.written);
  total("octavo:prefix_disk_received_pages_total", "Pages fetched from other servers",
        stats.received);
  total("octavo:prefix_disk_proven_pages_total",
        "Fetched pages that were also computed here, with the same bytes", stats.proven);
  total("octavo:prefix_disk_refuted_pages_total",
        "Fetched pages with other bytes than computed here; no more are fetched", stats.refuted);
  total("octavo:prefix_disk_evicted_pages_total", "Pages evicted", stats.evicted);
  total("octavo:prefix_disk_corrupt_pages_total", "Pages dropped because they failed verification",
        stats.corrupt);
  total("octavo:prefix_disk_write_errors_total", "Pages that could not be written",
        stats.write_errors);
  total("octavo:prefix_disk_dropped_pages_total",
        "Pages not written because the disk could not keep up", stats.dropped);
}

void add_times(Families& families, const EngineStats& stats) {
  families.histogram("vllm:iteration_tokens_total", "Rows per step", stats.step_rows);
  families.histogram("octavo:step_seconds", "Time between the results of consecutive steps",
                     stats.step_seconds);
  const char* help = "Engine thread time by activity";
  families.counter("octavo:engine_seconds_total", help, stats.times.scheduling,
                   {{"part", "scheduling"}});
  families.counter("octavo:engine_seconds_total", help, stats.times.queueing,
                   {{"part", "queueing"}});
  families.counter("octavo:engine_seconds_total", help, stats.times.waiting, {{"part", "kernels"}});
  families.gauge("octavo:resident_memory_bytes", "Resident memory of the process",
                 static_cast<double>(resident_bytes()));
}

}  // namespace

EngineMetrics::EngineMetrics(const api::ServedModel& model, prometheus::Labels labels)
    : model_(model) {
  for (const auto& [name, value] : labels) labels_.push_back({name, value});
}

std::vector<MetricFamily> EngineMetrics::Collect() const {
  const EngineStats stats = model_.engine.stats();
  Families families(labels_);
  add_requests(families, stats);
  add_pages(families, stats, model_);
  add_totals(families, stats.scheduler);
  add_images(families, stats.scheduler);
  add_disk(families, stats.scheduler.disk);
  add_times(families, stats);
  return families.take();
}

}  // namespace octavo::server
