// One request among many: its tokens and the hash of its full logits at every step must be
// identical alone and with other requests.
//
// usage: needle MODEL [--trials 200] [--tokens 128] [--neighbours 63] [--longest 200] [--seed 1]
//               [--dtype bfloat16] [--kv-dtype int8] [--pool-sequences 6] [--images]
//
// Eight needles, alternately greedy and at temperature 0.8 with a seed, some with a constraint,
// first run alone. Each trial runs a greedy and a sampled one together with random neighbours that
// arrive and are aborted at random, with a random page size, chunk budget (16..2048 rows) and pool.
// Small pools preempt requests, including the needles. Pages are initially filled with NaN.
// Neighbours that share a needle's prefix fill the prefix cache to a random depth. With
// --pool-sequences, every trial's pool holds that many sequences of full length. With --images, prompts
// have up to three of a few images, of which a random number is kept encoded. Prints one JSON line, in which
// "answers" is a hash of what the needles answered alone; exits with status 1 on a mismatch.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/xxh64.h"
#include "engine/runner.h"
#include "kernels/cpu/isa.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/toy_constraint.h"
#include "support/loaded_model.h"
#include "support/prompt_images.h"
#include "support/simulated_device.h"

namespace octavo {
namespace {

struct Options {
  std::string model;
  int trials = 200;
  int tokens = 128;
  int neighbours = 63;
  int longest = 200;
  int pool_sequences = 0;  // 0: random
  unsigned seed = 1;
  std::string dtype = "auto";
  std::string kv_dtype = "auto";
  bool images = false;
};

constexpr int kMostImages = 3;         // of a prompt
constexpr int kMostImageTokens = 256;  // placeholders of an image
constexpr int kTowerRows = 64;         // patches multiplied at once
constexpr int kMostSequences = 64;     // that run at once

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<uint64_t> hashes;  // of the logits of each token
  bool operator==(const Answer&) const = default;
};

struct Totals {
  int64_t needles = 0, mismatches = 0, neighbours = 0, aborted = 0, steps = 0, rows = 0;
  int64_t preemptions = 0, needles_with_hit = 0, constrained = 0;
  int64_t image_pieces = 0, image_rows = 0;
};

// Random images, and prompts with some of them.
class ImagePrompts {
 public:
  ImagePrompts(const LoadedTower& tower, std::mt19937& random) : vision_(tower.plan) {
    for (int i = 0; i < kImages; ++i) {
      const auto side = [&] { return std::uniform_int_distribution<int>(20, 300)(random); };
      Image image{.width = side(), .height = side(), .rgb = {}};
      image.rgb.resize(static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * 3);
      for (uint8_t& byte : image.rgb) byte = static_cast<uint8_t>(random());
      images_.push_back(prompt_image(vision_, image, 0, kMostImageTokens));
    }
  }

  // Rows of the largest image, and its tokens.
  int most_rows() const {
    const auto larger = [](const PromptImage& a, const PromptImage& b) {
      return a.rows() < b.rows();
    };
    return std::ranges::max(images_, larger).rows();
  }
  int most_tokens() const {
    const auto longer = [](const PromptImage& a, const PromptImage& b) {
      return a.length() < b.length();
    };
    return std::ranges::max(images_, longer).length();
  }

  // Inserts images at random places of the prompt, which has none.
  void insert(Request& request, std::mt19937& random) const {
    const int count = std::uniform_int_distribution<int>(0, kMostImages)(random);
    std::vector<int> places;
    const auto text = static_cast<int>(request.prompt.size());
    for (int i = 0; i < count; ++i)
      places.push_back(std::uniform_int_distribution<int>(0, text)(random));
    std::ranges::sort(places);
    std::vector<TokenId> prompt;
    for (int at = 0, next = 0; at <= text; ++at) {
      for (; next < count && places[static_cast<size_t>(next)] == at; ++next) {
        PromptImage image = images_[random() % images_.size()];
        image.offset = static_cast<int>(prompt.size());
        add_placeholders(image, prompt);
        request.images.push_back(image);
      }
      if (at < text) prompt.push_back(request.prompt[static_cast<size_t>(at)]);
    }
    request.prompt = std::move(prompt);
  }

  // The first `depth` tokens of the prompt, or fewer if these would divide an image.
  static void shorten(Request& request, int depth) {
    for (const PromptImage& image : request.images)
      if (image.offset < depth && depth < image.end()) depth = image.offset;
    std::erase_if(request.images, [&](const PromptImage& image) { return image.offset >= depth; });
    request.prompt.resize(static_cast<size_t>(depth));
  }

 private:
  static constexpr int kImages = 6;

  void add_placeholders(const PromptImage& image, std::vector<TokenId>& prompt) const {
    for (int line = 0; line < image.grid_h; ++line) {
      prompt.insert(prompt.end(), static_cast<size_t>(image.grid_w), vision_.image_token);
      if (image.row_breaks)
        prompt.push_back(line + 1 < image.grid_h ? vision_.break_token : vision_.end_token);
    }
  }

  const VisionPlan& vision_;
  std::vector<PromptImage> images_;  // all at offset 0
};

// A separate scheduler and cache over the loaded model, driven step by step, one step ahead.
class Session {
 public:
  // `tower`: null without images.
  Session(const DecoderModel& model, const LoadedTower* tower, const std::vector<CacheSpec>& specs,
          int block_tokens, int page_count, SchedulerOptions options)
      : kv_(plan_cache(specs, block_tokens), page_count, KernelPath::kNative),
        pool_(page_count),
        prefixes_(kv_.plan(), pool_),
        scheduler_(std::move(options), prefixes_),
        encoder_(tower != nullptr ? std::make_unique<ImageEncoder>(tower->plan, *tower->tower,
                                                                   tower->rows_at_once)
                                  : nullptr),
        runner_(model, kv_, {.rows_at_once = 64, .images = encoder_.get()}) {
    for (const auto& buffer : kv_.buffers())
      std::memset(const_cast<std::byte*>(buffer.data<std::byte>()), 0xff, buffer.nbytes());
  }

  Scheduler& scheduler() { return scheduler_; }

  std::vector<Update> step() {
    const bool one_in_flight = scheduler_.stats().steps_in_flight > 0;
    const auto batch = scheduler_.next();
    const bool queue_first = batch && runner_.queues_at_once(*batch);
    if (queue_first) runner_.start(*batch);
    std::vector<Update> updates;
    if (one_in_flight) updates = scheduler_.commit(runner_.finish());
    if (batch && !queue_first) runner_.start(*batch);
    if (batch) count(*batch);
    return updates;
  }
  void add_to(Totals& totals) const {
    totals.rows += rows_;
    totals.image_pieces += image_pieces_;
    totals.image_rows += image_rows_;
  }

 private:
  void count(const Batch& batch) {
    rows_ += batch.rows();
    image_pieces_ += batch.image_work.encodes != 0;
    for (const ImageRows& rows : batch.image_rows) image_rows_ += rows.count;
  }

  KvStore kv_;
  PagePool pool_;
  PrefixCache prefixes_;
  Scheduler scheduler_;
  std::unique_ptr<ImageEncoder> encoder_;
  Runner runner_;
  int64_t rows_ = 0, image_pieces_ = 0, image_rows_ = 0;
};

class Trials {
 public:
  // `tower`: null without images.
  Trials(const Options& options, const ModelDescription& description, const DecoderModel& model,
         const LoadedTower* tower)
      : options_(options),
        vocab_(description.plan.vocab),
        specs_(description.plan.cache_specs(
            description.dtype, options.kv_dtype == "int8" ? KvFormat::kInt8 : KvFormat::kPlain)),
        model_(model),
        tower_(tower),
        three_axes_(has_three_axes(description.plan)),
        random_(options.seed) {
    if (tower != nullptr) images_.emplace(*tower, random_);
    for (int i = 0; i < kNeedles; ++i) {
      Request request{.prompt = random_tokens(draw(1, options_.longest))};
      if (images_) images_->insert(request, random_);
      request.max_tokens = options_.tokens;
      request.hash_logits = true;
      if (i % 2 == 1) request.sampling = sampled_params();
      if (i % 4 >= 2) request.constraint = constraint();
      needles_.push_back(request);
      alone_.push_back(run_alone(request));
    }
  }

  void trial(Totals& totals);

  uint64_t hash_of_answers() const {
    std::vector<uint64_t> all;
    for (const Answer& answer : alone_)
      all.insert(all.end(), answer.hashes.begin(), answer.hashes.end());
    return xxh64(std::as_bytes(std::span(all)));
  }

 private:
  static constexpr int kNeedles = 8;
  static constexpr RequestId kGreedy = 1, kSampled = 2, kFirstNeighbour = 10;

  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int percent) { return draw(1, 100) <= percent; }
  std::vector<TokenId> random_tokens(int count) {
    std::vector<TokenId> tokens(static_cast<size_t>(count));
    for (auto& token : tokens) {
      do token = draw(0, vocab_ - 1);
      while (tower_ != nullptr && token == tower_->plan.image_token);
    }
    return tokens;
  }
  // Of a prompt.
  int longest() const {
    return options_.longest + (images_ ? kMostImages * images_->most_tokens() : 0);
  }
  int context() const { return longest() + options_.tokens + 64; }
  // Rows of a step. If an image's rows see one another, it fits beside a row of each other sequence.
  int budget_for(int wanted) const {
    if (!images_ || !tower_->plan.sees_block) return wanted;
    return std::max(wanted, images_->most_rows() + kMostSequences - 1);
  }

  // Keeps `kept` of the largest images.
  ImageOptions image_options(int kept) const {
    if (!images_) return {};
    return {.enabled = true,
            .three_axes = three_axes_,
            .sees_block = tower_->plan.sees_block,
            .max_image_tokens = images_->most_rows(),
            .kept_tokens = kept * images_->most_rows(),
            .pieces = [this](const PromptImage& image) { return tower_->pieces(image); }};
  }

  // Temperature 0.8 and a seed; half of them also with top_k, top_p and penalties.
  SamplingParams sampled_params() {
    SamplingParams params{.temperature = 0.8f, .seed = random_()};
    if (chance(50)) {
      params.top_p = 0.95f;
      params.repetition_penalty = 1.1f;
      params.frequency_penalty = 0.2f;
    }
    return params;
  }

  // Alternates even and odd tokens until max_tokens.
  std::shared_ptr<const Constraint> constraint() {
    return std::make_shared<ToyConstraint>(
        ToyRules{.vocab = vocab_, .stop = vocab_ - 1, .length = options_.tokens});
  }

  Answer run_alone(const Request& request) {
    const CachePlan plan = plan_cache(specs_, 32);
    Session session(model_, tower_, specs_, 32, plan.pages_held(context(), 1024),
                    {.max_num_batched_tokens = 1024,
                     .max_model_len = context(),
                     .vocab = vocab_,
                     .images = image_options(kMostImages)});
    session.scheduler().add(kGreedy, request);
    Answer answer;
    while (!session.scheduler().idle()) take(session.step(), kGreedy, answer);
    return answer;
  }

  static void take(const std::vector<Update>& updates, RequestId id, Answer& answer) {
    for (const Update& update : updates) {
      if (update.request != id) continue;
      answer.tokens.insert(answer.tokens.end(), update.tokens.begin(), update.tokens.end());
      answer.hashes.insert(answer.hashes.end(), update.hashes.begin(), update.hashes.end());
    }
  }

  Request neighbour(const Request& greedy, const Request& sampled) {
    Request request;
    const bool same = chance(10);  // prompt: states are stored at the ends of prompts
    if (same || chance(30)) {      // shares a needle's prefix
      const Request& from = chance(50) ? greedy : sampled;
      request.prompt = from.prompt;
      request.images = from.images;
      const int depth = draw(1, static_cast<int>(from.prompt.size()));
      if (!same) ImagePrompts::shorten(request, depth);
    } else if (images_ && chance(50)) {
      images_->insert(request, random_);
    }
    if (!same) {
      const auto tail = random_tokens(draw(1, options_.longest));
      request.prompt.insert(request.prompt.end(), tail.begin(), tail.end());
    }
    if (static_cast<int>(request.prompt.size()) > longest())
      ImagePrompts::shorten(request, longest());
    request.max_tokens = draw(1, options_.tokens);
    request.n = chance(5) ? 2 : 1;
    request.priority = draw(0, 2);
    if (chance(30)) request.sampling = sampled_params();
    if (chance(30)) request.constraint = constraint();
    if (chance(5)) request.sampling.prompt_logprobs = 1;
    if (chance(5)) request.sampling.logprobs = 3;
    return request;
  }

  // Aborts a random neighbour with an id below `end`; returns whether it was running.
  bool abort_one(Scheduler& scheduler, RequestId end) {
    const int neighbours = static_cast<int>(end - kFirstNeighbour);
    const auto pick = static_cast<RequestId>(draw(0, neighbours - 1));
    return !scheduler.abort(kFirstNeighbour + pick).empty();
  }

  Options options_;
  int vocab_;
  std::vector<CacheSpec> specs_;
  const DecoderModel& model_;
  const LoadedTower* tower_;
  bool three_axes_;
  std::mt19937 random_;
  std::optional<ImagePrompts> images_;
  std::vector<Request> needles_;
  std::vector<Answer> alone_;
};

void Trials::trial(Totals& totals) {
  const size_t pick = static_cast<size_t>(draw(0, kNeedles / 2 - 1)) * 2;
  Request greedy = needles_[pick];
  Request sampled = needles_[pick + 1];
  greedy.priority = draw(0, 2);
  sampled.priority = draw(0, 2);
  constexpr int kBudgets[] = {16, 17, 40, 64, 200, 512, 1000, 2048};
  constexpr int kBlocks[] = {8, 16, 32, 48};
  const int budget = budget_for(kBudgets[draw(0, 7)]);
  const int block = kBlocks[draw(0, 3)];
  const CachePlan plan = plan_cache(specs_, block);
  const int least = plan.pages_held(context(), budget);
  const int random_pages = least * (chance(60) ? draw(100, 160) : draw(160, 2000)) / 100;
  const int pages = options_.pool_sequences == 0
                        ? random_pages
                        : std::max(least, options_.pool_sequences * plan.pages_for(context()));
  const int kept = images_ ? draw(1, 2 * kMostImages) : 0;
  Session session(model_, tower_, specs_, block, pages,
                  {.max_num_seqs = draw(4, kMostSequences),
                   .max_num_batched_tokens = budget,
                   .max_model_len = context(),
                   .vocab = vocab_,
                   .policy = chance(50) ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs,
                   .images = image_options(kept)});
  Scheduler& scheduler = session.scheduler();
  RequestId next = kFirstNeighbour;
  Answer greedy_answer, sampled_answer;
  int open = 2;  // needles
  const int greedy_from = draw(0, 20);
  const int sampled_from = draw(0, 20);
  for (int step = 0; open > 0; ++step) {
    if (step == greedy_from) scheduler.add(kGreedy, greedy);
    if (step == sampled_from) scheduler.add(kSampled, sampled);
    for (int arrivals = draw(0, 4);
         arrivals > 0 && next < kFirstNeighbour + static_cast<RequestId>(options_.neighbours);
         --arrivals)
      scheduler.add(next++, neighbour(greedy, sampled));
    if (chance(10) && next > kFirstNeighbour) totals.aborted += abort_one(scheduler, next);
    const auto updates = session.step();
    take(updates, kGreedy, greedy_answer);
    take(updates, kSampled, sampled_answer);
    for (const Update& update : updates) {
      if (update.request > kSampled) continue;
      open -= update.finish.has_value();
      totals.needles_with_hit += update.cached_tokens.value_or(0) > 0;
    }
  }
  for (RequestId id = kFirstNeighbour; id < next; ++id) scheduler.abort(id);
  while (!scheduler.idle()) session.step();
  totals.needles += 2;
  totals.constrained += 2 * (greedy.constraint != nullptr);
  totals.mismatches += greedy_answer != alone_[pick];
  totals.mismatches += sampled_answer != alone_[pick + 1];
  totals.neighbours += static_cast<int64_t>(next - kFirstNeighbour);
  totals.preemptions += static_cast<int64_t>(scheduler.stats().preemptions);
  totals.steps += static_cast<int64_t>(scheduler.stats().steps);
  session.add_to(totals);
}

int run(const Options& options) {
  LoadedModel loaded(options.model, options.dtype);
  std::optional<LoadedTower> tower;
  if (options.images && !loaded.description.vision)
    throw SetupError("--images: " + loaded.description.vision_absent);
  if (options.images) tower.emplace(loaded.description, loaded.source, kTowerRows);
  Trials trials(options, loaded.description, loaded.model, tower ? &*tower : nullptr);
  Totals totals;
  for (int i = 0; i < options.trials; ++i) {
    trials.trial(totals);
    if ((i + 1) % 50 == 0)
      std::cerr << i + 1 << " trials, " << totals.mismatches << " mismatches\n";
  }
  std::cout << nlohmann::ordered_json{{"trials", options.trials},
                                      {"needles", totals.needles},
                                      {"constrained_needles", totals.constrained},
                                      {"mismatches", totals.mismatches},
                                      {"neighbours", totals.neighbours},
                                      {"aborted", totals.aborted},
                                      {"preemptions", totals.preemptions},
                                      {"needles_with_prefix_hit", totals.needles_with_hit},
                                      {"steps", totals.steps},
                                      {"rows", totals.rows},
                                      {"image_pieces", totals.image_pieces},
                                      {"image_rows", totals.image_rows},
                                      {"answers", fmt::format("{:016x}", trials.hash_of_answers())},
                                      {"launches", launch_counts()},
                                      {"isa", std::string(cpu::name_of(cpu::active_isa()))}}
            << "\n";
  return totals.mismatches == 0 ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Compares a request's bits alone and with other requests");
  app.add_option("MODEL", options.model)->required();
  app.add_option("--trials", options.trials);
  app.add_option("--tokens", options.tokens);
  app.add_option("--neighbours", options.neighbours);
  app.add_option("--longest", options.longest);
  app.add_option("--pool-sequences", options.pool_sequences);
  app.add_option("--seed", options.seed);
  app.add_option("--dtype", options.dtype);
  app.add_option("--kv-dtype", options.kv_dtype);
  app.add_flag("--images", options.images, "prompts have images");
  bool metal = false;
  app.add_flag("--metal", metal, "run the kernels in the Metal simulator");
  return octavo::run_program(app, argc, argv, [&] {
    octavo::SimulatedDevice device(metal);
    const int status = octavo::run(options);
    device.finish();
    return status;
  });
}
