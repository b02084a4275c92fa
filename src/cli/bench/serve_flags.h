// serve_flags.h - the flags of octavo bench serve. No MLX.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "bench/load/load_figures.h"

namespace octavo {

struct BenchServeFlags {
  // The server
  std::string backend;  // of vLLM's command lines
  std::string base_url = "http://127.0.0.1:8000";
  std::string endpoint = "/v1/completions";
  std::string model;  // empty: the first that the server lists
  std::string api_key;
  double timeout_seconds = 600;
  double ready_timeout_seconds = 0;
  // The requests
  std::string dataset_name = "random";
  std::string dataset_path;
  std::optional<int> num_prompts;
  int random_input_len = 1024;
  int random_output_len = 128;
  int sharegpt_output_len = 0;  // 0: as many as the conversation's answer has
  int shared_prefix_len = 512;
  int shared_suffix_len = 128;
  int shared_prefix_groups = 1;
  int vocab_size = 1000;
  std::string tokenizer;
  std::optional<bool> ignore_eos;  // unset: depends on the dataset
  double temperature = 0;
  // The load
  double request_rate = std::numeric_limits<double>::infinity();
  int max_concurrency = 0;
  uint64_t seed = 0;
  // The report
  std::vector<double> percentiles = {99};
  std::vector<std::string> metrics = {"ttft", "tpot", "itl"};
  std::vector<std::string> goodput;  // "ttft:500", in milliseconds
  std::string plot;
  bool json = false;
  bool save_detailed = false;

  void add_to(CLI::App& command);

  bool chat() const { return endpoint.ends_with("/chat/completions"); }
  bool ids() const { return dataset_name != "sharegpt"; }  // prompts are token ids
  // Parses --goodput. Throws SetupError unless each is like "ttft:500", "tpot:100", "e2el:10000".
  bench::ServiceLevel service_level() const;
};

}  // namespace octavo
