// cluster_flags.h - the flags that divide a model over several machines: of rank 0, and those that
// `octavo worker` has in common with it. No MLX.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "cli/distributed/network_address.h"

namespace octavo {

// --distributed-secret-file, --distributed-timeout, --distributed-allow-public.
struct LinkFlags {
  std::string secret_file;
  std::optional<double> timeout;
  bool allow_public = false;

  void add_to(CLI::App& command);
  // The file's, otherwise that of OCTAVO_DISTRIBUTED_SECRET, which is removed from the environment
  // so that processes started later do not have it. Throws SetupError if there is neither.
  std::string read_secret() const;
  std::chrono::milliseconds deadline() const;
};

inline constexpr double kDefaultClusterTimeout = 5;

// Of rank 0, derived from its flags.
struct ClusterSettings {
  int ranks = 1;
  bool tensor = false;         // outputs of matrices are divided, not layers
  NetworkAddress listen = {};  // numeric
  std::string secret = {};
  std::chrono::milliseconds deadline{5000};
};

struct ClusterFlags {
  int pipeline_parallel_size = 1;
  int tensor_parallel_size = 1;
  std::string listen;
  LinkFlags link;

  void add_to(CLI::App& command);
  bool tensor() const { return tensor_parallel_size > 1; }
  bool on() const { return pipeline_parallel_size > 1 || tensor(); }
  // The flag that divides the model, for messages; requires on().
  const char* size_flag() const;
  // Throws SetupError if layers and matrices are to be divided at the same time.
  void check_sizes() const;
  // Also throws SetupError if a flag is given that has no effect.
  void check() const;
  // Throws SetupError that names the flag to change. Call once, before other threads are started.
  ClusterSettings settings() const;
};

}  // namespace octavo
