// Other platforms: queues launches on MLX's CPU stream and runs them in the simulator.
#include <mlx/backend/cpu/encoder.h>

#include <atomic>
#include <memory>
#include <utility>

#include "base/error.h"
#include "kernels/metal/compile_pipelines.h"
#include "kernels/metal/encoder.h"
#include "kernels/metal/pipeline_cache.h"
#include "kernels/metal/pipeline_collector.h"
#include "kernels/metal/simulator.h"
#include "kernels/runtime/kernel_time.h"
#include "kernels/runtime/primitive.h"

namespace octavo {

bool measure_gpu_time() { return false; }

}  // namespace octavo

namespace octavo::metal {
namespace {

std::atomic<Simulator*> current{nullptr};

struct NoPipeline {};
PipelineCache<NoPipeline>& simulated_pipelines() {
  static PipelineCache<NoPipeline> cache;
  return cache;
}

BoundLaunch bind(const Launch& launch) {
  BoundLaunch bound{.kernel = &launch.kernel(),
                    .types = launch.key().type_texts(),
                    .constants = {},
                    .arguments = {},
                    .bytes = {},
                    .groups = launch.groups(),
                    .threads = launch.threads()};
  for (size_t i = 0; i < bound.kernel->constants.size(); ++i)
    bound.constants.push_back({bound.kernel->constants[i].name, launch.key().constants[i]});
  bound.bytes.reserve(launch.arguments().size());  // arguments hold pointers into it
  for (size_t i = 0; i < launch.arguments().size(); ++i) {
    const Argument& given = launch.arguments()[i];
    BoundArgument argument{&bound.kernel->parameters[i], nullptr, 0};
    if (given.array != nullptr) {
      argument.data = const_cast<std::byte*>(given.array->data<std::byte>());
      argument.bytes = given.array->nbytes();
    } else if (given.kind == ParameterKind::kBytes) {
      const auto bytes = launch.bytes_of(given);
      bound.bytes.emplace_back(bytes.begin(), bytes.end());
      argument.data = bound.bytes.back().data();
      argument.bytes = bytes.size();
    } else {
      argument.bytes = given.bytes;
    }
    bound.arguments.push_back(argument);
  }
  return bound;
}

}  // namespace

void set_simulator(Simulator* simulator) { current = simulator; }
Simulator* simulator() { return current; }

mx::array Encoder::temporary(mx::Shape shape, mx::Dtype dtype) {
  mx::array array(std::move(shape), dtype, nullptr, {});
  allocate(array);
  keep(array);
  return array;
}

void Encoder::keep(const mx::array& array) {
  if (PipelineCollector::current() != nullptr) return;
  mx::cpu::get_command_encoder(stream_).add_temporary(array);
}

void Encoder::run(const Launch& launch) {
  if (launch.is_empty()) return;
  if (PipelineCollector* collector = PipelineCollector::current()) return collector->add(launch);
  Simulator* target = simulator();
  if (target == nullptr) throw SetupError("this build does not support Metal; use --device cpu");
  simulated_pipelines().pipeline_of(launch, [](const PipelineKey&) { return NoPipeline{}; });
  target->described(launch);
  if (!target->executes()) return;
  launch.check();
  // Shared: MLX copies its tasks.
  auto bound = std::make_shared<const BoundLaunch>(bind(launch));
  mx::cpu::get_command_encoder(stream_).dispatch([target, bound] { target->run(*bound); });
}

void compile_pipelines(std::span<const PipelineKey> keys, const CompileProgress& progress) {
  const auto compile = [](const PipelineKey& key) { simulated_pipelines().add(key, {}); };
  compile_on_threads(keys, 1, compile, progress);
}

void check_stream(mx::Stream) { OCTAVO_CHECK(false); }  // only CPU streams exist

}  // namespace octavo::metal
