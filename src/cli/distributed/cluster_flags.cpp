#include "cli/distributed/cluster_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/secret_file.h"
#include "cli/distributed/launch_plan.h"
#include "cli/option_group.h"
#include "cli/parse/number_check.h"

namespace octavo {
namespace {

constexpr const char* kClusterGroup = "Several machines";
constexpr const char* kSecretFlag = "--distributed-secret-file";
constexpr const char* kListenFlag = "--distributed-listen";
constexpr const char* kPipelineFlag = "--pipeline-parallel-size";
constexpr const char* kTensorFlag = "--tensor-parallel-size";
constexpr int kMostRanks = 64;

}  // namespace

void LinkFlags::add_to(CLI::App& command) {
  const OptionGroup option{command, kClusterGroup};
  option
      .without_default(kSecretFlag, secret_file,
                       "File with a secret that all machines of a cluster have in common; or set "
                       "OCTAVO_DISTRIBUTED_SECRET")
      ->type_name("FILE");
  option
      .without_default("--distributed-timeout", timeout,
                       "Seconds without a sign of life from another machine after which this one "
                       "answers its requests with an error and exits (default: 5)")
      ->transform(real_number(0.5, true, 3600))
      ->type_name("SECONDS");
  command
      .add_flag("--distributed-allow-public", allow_public,
                "Allow addresses that are not private, although the traffic is not encrypted")
      ->group(kClusterGroup);
}

std::string LinkFlags::read_secret() const {
  const char* variable = std::getenv(kClusterSecretVariable);
  std::string text = variable == nullptr ? "" : variable;
  ::unsetenv(kClusterSecretVariable);
  if (!secret_file.empty()) return read_secret_file(secret_file, kSecretFlag);
  if (!text.empty()) return checked_secret(std::move(text), kClusterSecretVariable);
  throw SetupError(fmt::format(
      "{} is missing: the machines prove to each other that they know the same secret; create one "
      "with openssl rand -hex 32, or set {}",
      kSecretFlag, kClusterSecretVariable));
}

std::chrono::milliseconds LinkFlags::deadline() const {
  return std::chrono::milliseconds(
      static_cast<int64_t>(timeout.value_or(kDefaultClusterTimeout) * 1000));
}

void ClusterFlags::add_to(CLI::App& command) {
  const OptionGroup option{command, kClusterGroup};
  option(kPipelineFlag, pipeline_parallel_size,
         "Number of machines, or processes, that the model's layers are divided over; all but this "
         "one run octavo worker")
      ->transform(whole_number(1, kMostRanks));
  option(kTensorFlag, tensor_parallel_size,
         "Number of machines, or processes, that each matrix is divided over, so that one stream "
         "gets faster; requires a fast network. All but this one run octavo worker")
      ->transform(whole_number(1, kMostRanks));
  option
      .without_default(kListenFlag, listen,
                       "Private address at which the workers connect to this machine; port 0 "
                       "picks a free one (default: 127.0.0.1:0, which only reaches workers on "
                       "this machine)")
      ->type_name("HOST:PORT");
  link.add_to(command);
}

const char* ClusterFlags::size_flag() const {
  OCTAVO_CHECK(on());
  return tensor() ? kTensorFlag : kPipelineFlag;
}

void ClusterFlags::check_sizes() const {
  if (pipeline_parallel_size > 1 && tensor())
    throw SetupError(
        fmt::format("{} {} and {} {} cannot be combined; give one of them: the first divides the "
                    "layers, which works on any network, the second every matrix, which requires a "
                    "fast one",
                    kPipelineFlag, pipeline_parallel_size, kTensorFlag, tensor_parallel_size));
}

void ClusterFlags::check() const {
  check_sizes();
  if (on()) return;
  const char* flag = !listen.empty()             ? kListenFlag
                     : !link.secret_file.empty() ? kSecretFlag
                     : link.timeout              ? "--distributed-timeout"
                     : link.allow_public         ? "--distributed-allow-public"
                                                 : nullptr;
  if (flag != nullptr)
    throw SetupError(
        fmt::format("{} requires {} or {} 2 or more", flag, kPipelineFlag, kTensorFlag));
}

ClusterSettings ClusterFlags::settings() const {
  check();
  ClusterSettings settings{.ranks = std::max(pipeline_parallel_size, tensor_parallel_size),
                           .tensor = tensor(),
                           .deadline = link.deadline()};
  if (!on()) return settings;
  settings.listen = parse_network_address(listen.empty() ? "127.0.0.1:0" : listen, kListenFlag);
  settings.listen.host = private_address_of(settings.listen.host, kListenFlag, link.allow_public);
  settings.secret = link.read_secret();
  return settings;
}

}  // namespace octavo
