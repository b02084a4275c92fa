// As needle, for a model that is divided over processes of this machine: the tokens of a request and
// the hash of its full logits at every step must be those of one machine, where it ran alone.
//
// usage: needle_ranks MODEL [--tensor] [--ranks 2,3,4] [--trials 6] [--rounds 3] [--neighbours 23]
//        [--tokens 40] [--longest 120] [--seed 1]
//
// Eight needles, alternately greedy and sampled, some with a constraint. Every trial is a cluster with
// a random page size, chunk budget and pool, so small that it preempts requests, and in some trials
// with drafts. In every round two needles are answered among neighbours that arrive and are aborted
// at random, and of which some share a needle's prefix. Prints one JSON line; exits with status 1 on
// a mismatch.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "scheduler/testing/toy_constraint.h"
#include "support/engine_driver.h"
#include "support/loaded_model.h"
#include "support/worker_processes.h"

namespace octavo {
namespace {

constexpr int kNeedles = 8;

struct Options {
  std::string model;
  bool tensor = false;
  std::vector<int> ranks = {2, 3, 4};
  int trials = 6;
  int rounds = 3;
  int neighbours = 23;
  int tokens = 40;
  int longest = 120;
  unsigned seed = 1;
  int connect = 0;  // of a worker: the port
  int rank = 0;

  int context() const { return longest + tokens + 64; }
};

struct Totals {
  int clusters = 0, needles = 0, constrained = 0, mismatches = 0, neighbours = 0, aborted = 0;
  int needles_with_hit = 0, failed_workers = 0;
  uint64_t preemptions = 0, failed_steps = 0;
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool chance(int percent) { return draw(1, 100) <= percent; }
  uint64_t seed() { return engine_(); }
  std::vector<TokenId> tokens(int count, int vocab) { return random_tokens(engine_, count, vocab); }

 private:
  std::mt19937 engine_;
};

SamplingParams sampled_params(Random& random) {
  SamplingParams params{.temperature = 0.8f, .seed = random.seed()};
  if (random.chance(50)) {
    params.top_p = 0.95f;
    params.repetition_penalty = 1.1f;
    params.frequency_penalty = 0.2f;
  }
  return params;
}

std::vector<Request> make_needles(const Options& options, int vocab, Random& random) {
  std::vector<Request> needles;
  for (int i = 0; i < kNeedles; ++i) {
    Request request{.prompt = random.tokens(random.draw(1, options.longest), vocab)};
    request.max_tokens = options.tokens;
    request.hash_logits = true;
    if (i % 2 == 1) request.sampling = sampled_params(random);
    if (i % 4 >= 2) {
      request.constraint = std::make_shared<ToyConstraint>(
          ToyRules{.vocab = vocab, .stop = vocab - 1, .length = options.tokens});
    }
    needles.push_back(std::move(request));
  }
  return needles;
}

Request neighbour(const Options& options, const std::vector<Request>& needles, int vocab,
                  Random& random) {
  Request request;
  if (random.chance(40)) {
    const auto& prompt = needles[static_cast<size_t>(random.draw(0, kNeedles - 1))].prompt;
    const auto depth = random.draw(1, static_cast<int>(prompt.size()));
    request.prompt.assign(prompt.begin(), prompt.begin() + depth);
  }
  const auto tail = random.tokens(random.draw(1, options.longest), vocab);
  request.prompt.insert(request.prompt.end(), tail.begin(), tail.end());
  request.prompt.resize(
      std::min<size_t>(request.prompt.size(), static_cast<size_t>(options.longest)));
  request.max_tokens = random.draw(1, options.tokens);
  request.priority = random.draw(0, 2);
  if (random.chance(30)) request.sampling = sampled_params(random);
  if (random.chance(5)) request.sampling.prompt_logprobs = 1;
  if (random.chance(5)) request.sampling.logprobs = 3;
  return request;
}

// Submits requests, and waits for all of them.
class Crowd {
 public:
  explicit Crowd(Engine& engine) : engine_(engine) {}

  // The answer is complete after wait().
  std::shared_ptr<DrivenAnswer> ask(const Request& request) {
    auto answer = std::make_shared<DrivenAnswer>();
    {
      const std::lock_guard lock(mutex_);
      ++open_;
    }
    ids_.push_back(engine_.submit(request, [this, answer](Update update) {
      const std::lock_guard lock(mutex_);
      answer->tokens.insert(answer->tokens.end(), update.tokens.begin(), update.tokens.end());
      answer->hashes.insert(answer->hashes.end(), update.hashes.begin(), update.hashes.end());
      if (update.cached_tokens) answer->cached_tokens = *update.cached_tokens;
      if (!update.finish) return;
      answer->finish = *update.finish;
      --open_;
      changed_.notify_all();
    }));
    return answer;
  }
  void abort(size_t index) { engine_.abort(ids_[index]); }
  size_t asked() const { return ids_.size(); }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ == 0; });
  }

 private:
  Engine& engine_;
  std::vector<RequestId> ids_;
  std::mutex mutex_;  // guards all below, and the answers
  std::condition_variable changed_;
  int open_ = 0;
};

class Trials {
 public:
  explicit Trials(const Options& options) : options_(options), random_(options.seed) {
    EngineOptions alone{
        .max_model_len = options.context(), .memory_fraction = 0.5, .touch_pages = false};
    alone.speculation = {.method = SpeculativeMethod::kNone, .asked = true};
    EngineDriver driver(options.model, alone);
    vocab_ = driver.engine().model().plan.vocab;
    needles_ = make_needles(options, vocab_, random_);
    for (const Request& needle : needles_) alone_.push_back(driver.run_one(needle));
  }

  void trial(Totals& totals) {
    const int ranks = options_.ranks[static_cast<size_t>(
        random_.draw(0, static_cast<int>(options_.ranks.size()) - 1))];
    constexpr int kBudgets[] = {16, 17, 40, 64, 200, 512};
    constexpr int kBlocks[] = {8, 16, 32, 48};
    EngineOptions engine{.block_tokens = kBlocks[random_.draw(0, 3)],
                         .max_model_len = options_.context(),
                         .memory_fraction = 0.5,
                         .max_num_seqs = random_.draw(4, 32),
                         .max_num_batched_tokens = kBudgets[random_.draw(0, 5)],
                         .touch_pages = false,
                         .speculate_at_any_cost = true};
    engine.speculation.asked = true;
    engine.speculation.method =
        random_.chance(30) ? SpeculativeMethod::kNgram : SpeculativeMethod::kNone;
    // The smallest pool that is accepted, or a little more.
    for (uint64_t kv = 256u << 10;; kv += kv / 2) {
      engine.kv_bytes = kv;
      try {
        run_cluster(ranks, engine, totals);
        return;
      } catch (const SetupError& error) {
        const std::string text = error.what();
        if (text.find(" pages, but ") == std::string::npos) throw;
      }
    }
  }

 private:
  void run_cluster(int ranks, EngineOptions engine, Totals& totals) {
    TcpListener listener("127.0.0.1", 0);
    WorkerProcesses workers({options_.model}, ranks, listener.port());
    {
      auto cluster = Cluster::accept(
          std::move(listener), {.size = ranks, .secret = test_secret(), .self = test_hello(0)});
      engine.cluster = cluster.get();
      engine.tensor_parallel = options_.tensor;
      {
        EngineDriver driver(options_.model, engine);
        for (int i = 0; i < options_.rounds; ++i) round(driver.engine(), totals);
        const EngineStats stats = driver.engine().stats();
        totals.preemptions += stats.scheduler.preemptions;
        totals.failed_steps += stats.scheduler.failed_steps;
      }
      cluster->shutdown();
    }
    totals.failed_workers += workers.join();
    ++totals.clusters;
  }

  void round(Engine& engine, Totals& totals) {
    const auto pick = static_cast<size_t>(random_.draw(0, kNeedles / 2 - 1)) * 2;
    Crowd crowd(engine);
    std::vector<std::shared_ptr<DrivenAnswer>> found(2);
    const int from[] = {random_.draw(0, options_.neighbours), random_.draw(0, options_.neighbours)};
    std::vector<size_t> needle_places;
    for (int i = 0; i <= options_.neighbours; ++i) {
      for (size_t needle = 0; needle < 2; ++needle) {
        if (from[needle] != i) continue;
        needle_places.push_back(crowd.asked());
        Request request = needles_[pick + needle];
        request.priority = random_.draw(0, 2);
        found[needle] = crowd.ask(request);
      }
      crowd.ask(neighbour(options_, needles_, vocab_, random_));
      ++totals.neighbours;
      if (random_.chance(10)) totals.aborted += abort_one(crowd, needle_places);
      std::this_thread::sleep_for(std::chrono::milliseconds(random_.draw(0, 3)));
    }
    crowd.wait();
    for (size_t needle = 0; needle < 2; ++needle) {
      const DrivenAnswer& answer = *found[needle];
      ++totals.needles;
      totals.constrained += needles_[pick + needle].constraint != nullptr;
      totals.needles_with_hit += answer.cached_tokens > 0;
      totals.mismatches += !answer.same_bits(alone_[pick + needle]);
    }
  }

  bool abort_one(Crowd& crowd, const std::vector<size_t>& needle_places) {
    const auto place = static_cast<size_t>(random_.draw(0, static_cast<int>(crowd.asked()) - 1));
    if (std::ranges::count(needle_places, place) > 0) return false;
    crowd.abort(place);
    return true;
  }

  Options options_;
  Random random_;
  int vocab_ = 0;
  std::vector<Request> needles_;
  std::vector<DrivenAnswer> alone_;
};

int run(const Options& options) {
  if (options.connect > 0)
    return work_as_rank(options.model, options.connect, options.rank, {.touch_pages = false});
  Trials trials(options);
  Totals totals;
  for (int i = 0; i < options.trials; ++i) trials.trial(totals);
  std::cout << nlohmann::ordered_json{{"clusters", totals.clusters},
                                      {"needles", totals.needles},
                                      {"constrained_needles", totals.constrained},
                                      {"mismatches", totals.mismatches},
                                      {"neighbours", totals.neighbours},
                                      {"aborted", totals.aborted},
                                      {"preemptions", totals.preemptions},
                                      {"needles_with_prefix_hit", totals.needles_with_hit},
                                      {"failed_steps", totals.failed_steps},
                                      {"failed_workers", totals.failed_workers}}
            << "\n";
  const bool ended_well = totals.failed_steps == 0 && totals.failed_workers == 0;
  return totals.mismatches == 0 && ended_well ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::init_logging();
  octavo::Options options;
  CLI::App app("Compares a request's bits on one machine with those of a divided model under load");
  app.add_option("MODEL", options.model)->required();
  app.add_flag("--tensor", options.tensor);
  app.add_option("--ranks", options.ranks)->delimiter(',');
  app.add_option("--trials", options.trials);
  app.add_option("--rounds", options.rounds);
  app.add_option("--neighbours", options.neighbours);
  app.add_option("--tokens", options.tokens);
  app.add_option("--longest", options.longest);
  app.add_option("--seed", options.seed);
  app.add_option("--connect", options.connect)->group("");
  app.add_option("--rank", options.rank)->group("");
  return octavo::run_program(app, argc, argv, [&] { return octavo::run(options); });
}
