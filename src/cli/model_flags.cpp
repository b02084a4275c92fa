#include "cli/model_flags.h"

#include <random>

#include "base/compute_pool.h"
#include "cli/model_by_name.h"
#include "cli/progress_bar.h"

namespace octavo {

void ModelFlags::add_to(CLI::App& command) {
  command.add_option("MODEL", model, kModelHelp)->required();
  const std::string group = "Model and memory";
  command
      .add_option("--device", device,
                  "What computes: auto (the GPU of a Mac, else the CPU), cpu or metal")
      ->check(CLI::IsMember({"auto", "cpu", "metal"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--dtype", dtype,
                  "Compute and KV type: auto (the checkpoint's own; GGUF: bfloat16), float32, "
                  "float16, bfloat16")
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--kv-cache-dtype,--kv-dtype", kv_cache_dtype,
          "How K and V are kept: auto (the compute type), or int8 with a scale per token and "
          "head: half the memory of bfloat16, slightly different answers")
      ->check(CLI::IsMember({"auto", "int8"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--max-model-len", max_model_len,
                  "Context in tokens (default: the largest that fits, up to the model's own)")
      ->check(CLI::PositiveNumber)
      ->group(group);
  command
      .add_option("--kv-memory", kv_memory,
                  "Memory for KV pages, like 4GiB (default: what one full context needs, or 32 "
                  "sequences of 2048 tokens where many run at once)")
      ->group(group);
  command
      .add_option("--memory-fraction", memory_fraction,
                  "Share of this machine's memory octavo may use")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--wired-limit", wired_limit,
                  "On Metal: keep up to this much memory from being paged out, like 20GiB. Off by "
                  "default: with many requests at once it has brought whole machines down")
      ->group(group);
  command.add_option("--block-size", block_size, "Tokens per KV page, a multiple of 8")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--max-num-batched-tokens", max_num_batched_tokens,
                  "Rows of the largest step: long prompts run in such chunks")
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--speculative-config", speculative_config,
          R"(Guess answers ahead, which changes no bit of them: {"method": "ngram"} (prompt )"
          R"(lookup, the default), {"model": "PATH"} (a draft model), {"method": "none"}; )"
          "with num_speculative_tokens, prompt_lookup_max, prompt_lookup_min")
      ->type_name("JSON")
      ->group(group);
  command
      .add_option("--threads", threads,
                  "Threads that compute (default: the cores this process and its cgroup may use)")
      ->check(CLI::PositiveNumber)
      ->group(group);
  command.add_flag("--pin-threads", pin_threads, "Keep each of them on one core")->group(group);
}

void ModelFlags::add_batch_flags_to(CLI::App& command) {
  const std::string group = "Many at once";
  command
      .add_option("--max-num-seqs", max_num_seqs, "Sequences that run at the same time, at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--scheduling-policy", scheduling_policy,
                  "Who goes first: fcfs (as they came), or priority (each request's own number, "
                  "lower first)")
      ->check(CLI::IsMember({"fcfs", "priority"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", enable_prefix_caching,
                "Compute a beginning that prompts share only once (on unless switched off)")
      ->group(group);
}

void ModelFlags::add_disk_flags_to(CLI::App& command) {
  const std::string group = "Many at once";
  command
      .add_option("--prefix-disk", prefix_disk,
                  "Keep prefix pages in this folder too, so that beginnings seen before are not "
                  "computed again after a restart, or when memory was short (default: memory only)")
      ->type_name("FOLDER")
      ->group(group);
  command
      .add_option("--prefix-disk-size", prefix_disk_size,
                  "Bytes that folder's files may take, like 20GiB: never more")
      ->capture_default_str()
      ->group(group);
}

void ModelFlags::find() {
  const FoundModel found = find_model_by_name(model, {.memory_fraction = memory_fraction});
  if (found.place != kPathPlace) name = model;
  model = found.path;
}

EngineOptions ModelFlags::engine_options() const {
  EngineOptions options = ModelSettings::engine_options();
  if (!options.speculation.model.empty())
    options.speculation.model = find_model_by_name(options.speculation.model).path;
  return options;
}

EngineOptions ModelFlags::options_for_one() const {
  EngineOptions options = engine_options();
  options.max_num_seqs = 1;
  options.touch_pages = false;
  return options;
}

std::unique_ptr<Llm> ModelFlags::load(const EngineOptions& options) const {
  set_compute_options(compute_options());
  ProgressBar bar("Loading");
  return std::make_unique<Llm>(model, options,
                               [&](uint64_t done, uint64_t total) { bar.update(done, total); });
}

void SamplingFlags::add_to(CLI::App& command) {
  const std::string group = "Sampling";
  command.add_option("--temperature", temperature, "0 takes the likeliest token each time")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--top-p", top_p,
                  "Keep the likeliest tokens that together reach this probability")
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-k", top_k, "Keep this many of the likeliest tokens; 0 keeps all")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--min-p", min_p,
                  "Drop tokens below this share of the likeliest one's probability")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--repetition-penalty", repetition_penalty,
                  "Above 1: tokens of prompt and answer become less likely to come again")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--presence-penalty", presence_penalty,
                  "Taken off the logits of tokens the answer has, -2 to 2")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--frequency-penalty", frequency_penalty,
                  "Taken off for each time the answer has the token, -2 to 2")
      ->capture_default_str()
      ->group(group);
  command.add_option("--seed", seed, "The same seed gives the same answer (default: a fresh one)")
      ->group(group);
}

SamplingParams SamplingFlags::params() const {
  std::random_device device;
  const uint64_t fresh = (uint64_t{device()} << 32) | device();
  return {.temperature = temperature,
          .top_p = top_p,
          .min_p = min_p,
          .top_k = top_k,
          .seed = seed.value_or(fresh),
          .repetition_penalty = repetition_penalty,
          .presence_penalty = presence_penalty,
          .frequency_penalty = frequency_penalty};
}

}  // namespace octavo
