#include "cli/model_flags.h"

#include <fmt/format.h>

#include <cstdio>
#include <random>

#include "api/images/image_settings.h"
#include "base/compute_pool.h"
#include "base/error.h"
#include "cli/distributed/cluster_start.h"
#include "cli/model_by_name.h"
#include "cli/option_group.h"
#include "cli/parse/number_check.h"
#include "cli/progress_bar.h"
#include "llm/image_limits.h"

namespace octavo {
namespace {

constexpr const char* kModelGroup = "Model and memory";
constexpr const char* kBatchGroup = "Batching and prefix cache";

}  // namespace

void ModelFlags::add_to(CLI::App& command) {
  command.add_option("MODEL", model, kModelHelp)->required();
  add_settings_to(command);
  add_image_flags_to(command);
}

void ModelFlags::add_settings_to(CLI::App& command) {
  add_memory_flags(command);
  add_compute_flags(command);
}

void ModelFlags::add_memory_flags(CLI::App& command) {
  const OptionGroup option{command, kModelGroup};
  option("--device", device,
         "Compute device: auto (the GPU on a Mac, otherwise the CPU), cpu or metal")
      ->check(CLI::IsMember({"auto", "cpu", "metal"}));
  option("--dtype", dtype,
         "Data type for computation and the KV cache: auto (the checkpoint's type; bfloat16 for "
         "GGUF), float32, float16, bfloat16");
  command
      .add_flag(
          "--strict-config", strict_config,
          "Refuse a config.json with keys that neither octavo nor transformers knows; without "
          "this flag they are logged and ignored")
      ->group(kModelGroup);
  option
      .without_default("--chat-template", chat_template,
                       "File with a chat template to use instead of the model's own")
      ->type_name("FILE");
  option
      .without_default(
          "--merge-adapter", merge_adapter,
          "Merge the LoRA or DoRA adapter of this folder (PEFT, mlx-lm) into the weights "
          "while loading; the model must not be quantised")
      ->type_name("FOLDER");
  option
      .without_default("-q,--quantization", quantization,
                       "For vLLM's command lines: refused if it differs from the file's")
      ->group("");
  option("--kv-cache-dtype,--kv-dtype", kv_cache_dtype,
         "KV cache type: auto (same as --dtype), or int8 with one scale per token and head, which "
         "takes half the memory of bfloat16 and changes answers slightly")
      ->check(CLI::IsMember({"auto", "int8"}));
  option
      .without_default("--max-model-len", max_model_len,
                       "Context length in tokens (default: the largest that fits in memory, up "
                       "to the model's own), for example 4096, 4K or 100k")
      ->transform(context_length());
  option.without_default("--kv-memory", kv_memory,
                         "Memory for the KV cache, for example 4GiB (default: enough for one full "
                         "context, or for 32 sequences of 2048 tokens in commands that batch)");
  option("--memory-fraction", memory_fraction,
         "Fraction of this machine's memory that octavo may use");
  option.without_default("--memory-limit", memory_limit,
                         "Memory that octavo may use at most, for example 12GiB (default: only "
                         "--memory-fraction limits it)");
  option.without_default("--wired-limit", wired_limit,
                         "Metal only: amount of memory to keep wired, for example 20GiB. Off by "
                         "default: under heavy load, wired memory has crashed whole machines");
  option("--block-size", block_size, "Tokens per KV page, a multiple of 8");
}

void ModelFlags::add_compute_flags(CLI::App& command) {
  const OptionGroup option{command, kModelGroup};
  option("--max-num-batched-tokens", max_num_batched_tokens,
         "Maximum number of tokens per step; longer prompts are prefilled in chunks of this size. "
         "Default with an encoder: its context, because its texts run whole")
      ->each([this](const std::string&) { batched_tokens_given = true; })
      ->transform(whole_number(1));
  option
      .without_default(
          "--speculative-config", speculative_config,
          R"(Speculative decoding, which does not change the output: {"method": "ngram"} (prompt )"
          R"(lookup, the default), {"model": "PATH"} (a draft model), {"method": "mtp"} (the model's )"
          R"(own prediction layer), {"method": "none"}; )"
          "further keys: num_speculative_tokens, prompt_lookup_max, prompt_lookup_min")
      ->type_name("JSON");
  option
      .without_default("--threads", threads,
                       "Number of compute threads (default: the cores that this process and its "
                       "cgroup may use)")
      ->transform(whole_number(1));
  command.add_flag("--pin-threads", pin_threads, "Pin each compute thread to one core")
      ->group(kModelGroup);
}

void ModelFlags::add_image_flags_to(CLI::App& command) {
  const OptionGroup option{command, "Images"};
  option
      .without_default(
          "--limit-mm-per-prompt", limit_mm_per_prompt,
          fmt::format(
              R"(Images that a request may have, as a JSON object: {{"image": N}} (default: {}). )"
              R"({{"image": 0}} loads no vision tower)",
              api::kMaxImages))
      ->type_name("JSON");
  option("--image-max-tokens", image_max_tokens,
         "Maximum number of tokens of an image; larger images are made smaller")
      ->transform(whole_number(1));
  option
      .without_default(
          "--mm-processor-kwargs", mm_processor_kwargs,
          "Settings of the model's image processor that replace those of its files, as "
          R"(a JSON object, for example {"max_pixels": 1003520})")
      ->type_name("JSON");
  option("--mm-processor-cache-gb", mm_processor_cache_gb,
         "Memory for encoded images that later requests may use again, in GiB")
      ->transform(real_number(0, true, kMaxImageCacheGib));
}

void ModelFlags::add_batch_flags_to(CLI::App& command) {
  const OptionGroup option{command, kBatchGroup};
  option("--max-num-seqs", max_num_seqs, "Maximum number of sequences that run at the same time")
      ->transform(whole_number(1));
  option("--scheduling-policy", scheduling_policy,
         "Order of waiting requests: fcfs (first come, first served; API keys and requests take "
         "turns), or priority (by each "
         "request's priority, lower first)")
      ->check(CLI::IsMember({"fcfs", "priority"}));
  command
      .add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", enable_prefix_caching,
                "Reuse the KV cache of prompts that start with the same tokens (on by default)")
      ->each([this](const std::string&) { prefix_caching_given = true; })
      ->group(kBatchGroup);
}

void ModelFlags::add_worker_flags_to(CLI::App& command) {
  command.add_option("MODEL", model, std::string(kModelHelp) + "; the same files as on rank 0");
  add_settings_to(command);
  // Rank 0 sends its own values.
  for (const char* flag :
       {"--dtype", "--chat-template", "--quantization", "--kv-cache-dtype", "--max-model-len",
        "--kv-memory", "--block-size", "--max-num-batched-tokens", "--speculative-config"})
    command.remove_option(command.get_option(flag));
}

void ModelFlags::add_disk_flags_to(CLI::App& command) {
  const OptionGroup option{command, kBatchGroup};
  option
      .without_default("--prefix-disk", prefix_disk,
                       "Also keep the prefix cache in this folder, so that it survives restarts "
                       "and eviction from memory (default: memory only)")
      ->type_name("FOLDER");
  option("--prefix-disk-size", prefix_disk_size,
         "Maximum size of the files in that folder, for example 20GiB");
}

void ModelFlags::find() {
  DownloadFlags download{.memory_fraction = memory_fraction, .strict_config = strict_config};
  if (on_progress)
    download.on_bytes = [this](uint64_t done, uint64_t total) {
      on_progress("download", done, total);
    };
  const FoundModel found = find_model_by_name(model, download);
  if (found.place != kPathPlace) name = model;
  model = found.path;
}

EngineOptions ModelFlags::engine_options() const {
  EngineOptions options = ModelSettings::engine_options();
  options.tensor_parallel = cluster.tensor();
  if (!options.speculation.model.empty())
    options.speculation.model =
        find_model_by_name(options.speculation.model, {.strict_config = strict_config}).path;
  return options;
}

EngineOptions ModelFlags::options_for_one() const {
  EngineOptions options = engine_options();
  options.max_num_seqs = 1;
  options.touch_pages = false;
  return options;
}

std::unique_ptr<Cluster> ModelFlags::form_cluster(
    const std::function<void(const std::string&)>& say) const {
  const auto print = [](const std::string& text) { fmt::print(stderr, "octavo: {}\n", text); };
  return octavo::form_cluster(cluster.settings(), *this, say ? say : print);
}

std::unique_ptr<Llm> ModelFlags::load(const EngineOptions& options) const {
  set_compute_options(compute_options());
  ProgressBar bar("Loading");
  auto llm = std::make_unique<Llm>(
      model, options,
      [&](uint64_t done, uint64_t total) {
        bar.update(done, total);
        if (on_progress) on_progress("load", done, total);
      },
      chat_template);
  llm->limit_images(max_images());
  check_quantization(llm->engine().model());
  return llm;
}

void ModelFlags::check_quantization(const ModelDescription& description) const {
  if (quantization.empty()) return;
  const std::string own = description.container == "GGUF"    ? "gguf"
                          : description.quantization.empty() ? "none"
                                                             : description.quantization;
  if (quantization == own || own.starts_with(quantization)) {
    fmt::print(stderr, "octavo: --quantization {}: not needed, it is the file's own\n",
               quantization);
    return;
  }
  throw SetupError(fmt::format(
      "--quantization {}: octavo runs a model as it is stored, and this one has {}; leave the flag "
      "out, or choose another model",
      quantization, own));
}

void SamplingFlags::add_to(CLI::App& command) {
  const OptionGroup option{command, "Sampling"};
  option("--temperature", temperature,
         "Sampling temperature; 0 always picks the most likely token");
  option("--top-p", top_p,
         "Sample from the most likely tokens whose probabilities add up to this value");
  option("--top-k", top_k, "Sample from this many of the most likely tokens; 0 disables the limit");
  option("--min-p", min_p,
         "Drop tokens whose probability is below this fraction of the most likely token's");
  option("--repetition-penalty", repetition_penalty,
         "Values above 1 make tokens that are in the prompt or the answer less likely");
  option("--presence-penalty", presence_penalty,
         "Subtracted from the logits of tokens already generated, -2 to 2");
  option("--frequency-penalty", frequency_penalty,
         "Subtracted from a token's logit once for each time it was generated, -2 to 2");
  option.without_default("--seed", seed,
                         "Random seed; the same seed gives the same answer (default: random)");
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

void PoolingFlags::add_to(CLI::App& command) {
  const OptionGroup option{command, "Embeddings"};
  option("--runner", runner,
         "generate for text, pooling for embeddings and scores, or auto (as the model's files say)")
      ->check(CLI::IsMember({"auto", "generate", "pooling"}));
  option
      .without_default(
          "--pooler-config", pooler_config,
          R"(How token vectors become one embedding, for example {"pooling_type": "MEAN"}: )"
          "pooling_type (LAST, MEAN, CLS), use_activation (normalise to length 1), dimensions "
          "(default: as the model's files say, otherwise true and LAST, or CLS for encoders)")
      ->type_name("JSON");
  option
      .without_default("--hf-overrides", hf_overrides,
                       "Settings missing from the model's config: is_matryoshka (requests may "
                       "choose fewer dimensions), matryoshka_dimensions (the sizes to allow), "
                       "max_position_embeddings (allows a longer --max-model-len), architectures, "
                       "classifier_from_token and is_original_qwen3_reranker (Qwen3-Reranker)")
      ->type_name("JSON");
}

}  // namespace octavo
