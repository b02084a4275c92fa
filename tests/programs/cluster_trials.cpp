// Answers the same requests on one machine and on a cluster of processes on this machine, and
// compares the bits.
//
// usage: cluster_trials MODEL [--tensor] [--ranks 2] [--requests 12] [--max-tokens 40] [--mtp] [--ngram]
//        [--kv-dtype int8] [--disk FOLDER] [--fail-rank 1] [--kill-rank 1] [--worker-model MODEL] [--seed 1]
//
// The ranks divide the model by layers or, with --tensor, by outputs. With --kill-rank, that rank's process is killed at the first token: every request must end, with an
// error or with the same bits, and so must the other ranks.
// With --fail-rank, the kernels of one request's steps fail on that rank: that request must end with
// an error, and the others with the same bits. With --disk, a second cluster must read the pages of
// the first from the folder. Prints one JSON line; exits with status 1 if bits differ.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/log.h"
#include "support/engine_driver.h"
#include "support/loaded_model.h"
#include "support/worker_processes.h"

namespace octavo {
namespace {

constexpr TokenId kPoisonToken = 7;  // no other request begins with it
constexpr int kPrompt = 30;

struct Options {
  std::string model;
  int ranks = 2;
  int requests = 12;
  int max_tokens = 40;
  bool mtp = false;
  bool ngram = false;
  bool tensor = false;
  std::string kv_dtype = "auto";
  std::string disk;
  int fail_rank = -1;
  int kill_rank = -1;
  std::string worker_model;  // of the other ranks, if not the same
  unsigned seed = 1;
  std::string connect;  // of a worker: the port
  int rank = 0;
};

// Whether the step has the first row of the request that fails; every rank can tell.
bool is_poisoned(const Batch& batch) {
  for (size_t row = 0; row < batch.tokens.size(); ++row)
    if (batch.tokens[row] == kPoisonToken && batch.positions[row] == 0) return true;
  return false;
}

EngineOptions engine_options(const Options& options) {
  EngineOptions engine{.max_model_len = 512,
                       .memory_fraction = 0.5,
                       .touch_pages = false,
                       .speculate_at_any_cost = options.ngram || options.mtp};
  engine.max_num_batched_tokens = 64;
  engine.speculation.asked = true;
  engine.speculation.num_speculative_tokens = options.mtp ? 1 : 4;
  engine.speculation.method = options.mtp     ? SpeculativeMethod::kMtp
                              : options.ngram ? SpeculativeMethod::kNgram
                                              : SpeculativeMethod::kNone;
  if (options.kv_dtype == "int8") engine.kv_format = KvFormat::kInt8;
  return engine;
}

int work(const Options& options) {
  EngineOptions engine{.touch_pages = false};
  if (options.fail_rank == options.rank) engine.fails = is_poisoned;
  return work_as_rank(options.model, std::stoi(options.connect), options.rank, engine);
}

std::vector<Request> requests_for(const Options& options, int vocab) {
  std::mt19937 random(options.seed);
  std::vector<Request> requests;
  for (int i = 0; i < options.requests; ++i) {
    Request request{.prompt =
                        random_tokens(random, i % 3 == 0 ? kPrompt : 3 + 17 * (i % 7), vocab)};
    request.max_tokens = options.max_tokens;
    request.hash_logits = true;
    request.sampling = {.temperature = i % 2 == 0 ? 0.0f : 0.8f, .seed = static_cast<uint64_t>(i)};
    requests.push_back(request);
  }
  if (options.fail_rank >= 0) {
    // In one step, which draws: the last rank needs the result of its layers only then.
    requests.back().prompt.resize(3);
    requests.back().prompt.front() = kPoisonToken;
  }
  return requests;
}

struct Run {
  std::vector<DrivenAnswer> answers;
  int failed_workers = 0;
  uint64_t failed_steps = 0;
  int pages_held = 0;
};

Run run_cluster(const Options& options, EngineOptions engine,
                const std::vector<Request>& requests) {
  Run run;
  TcpListener listener("127.0.0.1", 0);
  WorkerProcesses workers({options.worker_model.empty() ? options.model : options.worker_model,
                           "--fail-rank", std::to_string(options.fail_rank)},
                          options.ranks, listener.port());
  {
    auto cluster =
        Cluster::accept(std::move(listener),
                        {.size = options.ranks, .secret = test_secret(), .self = test_hello(0)});
    engine.cluster = cluster.get();
    engine.tensor_parallel = options.tensor;
    if (options.fail_rank == 0) engine.fails = is_poisoned;
    {
      EngineDriver driver(options.model, engine);
      std::cerr << driver.engine().ranks_table();
      std::thread killer;
      if (options.kill_rank > 0) {
        killer = std::thread([&] {
          while (driver.engine().stats().scheduler.generated_tokens == 0) std::this_thread::yield();
          workers.kill(options.kill_rank);
        });
      }
      run.answers = driver.run(requests);
      if (killer.joinable()) killer.join();
      const EngineStats stats = driver.engine().stats();
      run.failed_steps = stats.scheduler.failed_steps;
      run.pages_held = stats.referenced_pages;
    }
    cluster->shutdown();
  }
  run.failed_workers = workers.join();
  return run;
}

int run(const Options& options) {
  if (!options.connect.empty()) return work(options);
  EngineOptions engine = engine_options(options);
  std::vector<Request> requests;
  std::vector<DrivenAnswer> expected;
  {
    EngineDriver driver(options.model, engine);
    requests = requests_for(options, driver.engine().model().plan.vocab);
    expected = driver.run(requests);
  }
  if (!options.disk.empty())
    engine.prefix_disk =
        PrefixDiskOptions{.path = options.disk, .bytes = uint64_t{1} << 30, .fingerprint = "test"};
  Run first = run_cluster(options, engine, requests);
  const auto count_different = [&](const Run& run) {
    int different = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (options.fail_rank >= 0 && i + 1 == requests.size()) continue;
      if (options.kill_rank > 0 && run.answers[i].finish == FinishReason::kError) continue;
      different += !run.answers[i].same_bits(expected[i]);
    }
    return different;
  };
  int different = count_different(first);
  int cached = 0;
  if (!options.disk.empty()) {
    const Run second = run_cluster(options, engine, requests);
    different += count_different(second);
    for (const DrivenAnswer& answer : second.answers) cached += answer.cached_tokens;
  }
  const bool ended = first.answers.back().finish == FinishReason::kError;
  std::cout << nlohmann::json{{"requests", requests.size()},
                              {"different", different},
                              {"failed_steps", first.failed_steps},
                              {"poisoned_ended_with_error", ended},
                              {"failed_workers", first.failed_workers},
                              {"cached_tokens", cached},
                              {"pages_held_at_the_end", first.pages_held}}
            << "\n";
  const bool failed_as_planned =
      options.fail_rank < 0 ? first.failed_steps == 0 : ended && first.failed_steps >= 2;
  if (options.kill_rank > 0) {
    // All ranks but 0 end with an error, and one of them with a signal.
    return different == 0 && ended && first.failed_workers == options.ranks - 1 ? 0 : 1;
  }
  const bool read_disk = options.disk.empty() || cached > 0;
  return different == 0 && failed_as_planned && read_disk && first.failed_workers == 0 ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::init_logging();
  octavo::Options options;
  CLI::App app("Compares the bits of a cluster's answers with those of one machine");
  app.add_option("MODEL", options.model)->required();
  app.add_option("--ranks", options.ranks);
  app.add_option("--requests", options.requests);
  app.add_option("--max-tokens", options.max_tokens);
  app.add_flag("--mtp", options.mtp);
  app.add_flag("--ngram", options.ngram);
  app.add_flag("--tensor", options.tensor);
  app.add_option("--kv-dtype", options.kv_dtype);
  app.add_option("--disk", options.disk);
  app.add_option("--fail-rank", options.fail_rank);
  app.add_option("--kill-rank", options.kill_rank);
  app.add_option("--worker-model", options.worker_model);
  app.add_option("--seed", options.seed);
  app.add_option("--connect", options.connect)->group("");
  app.add_option("--rank", options.rank)->group("");
  return octavo::run_program(app, argc, argv, [&] { return octavo::run(options); });
}
