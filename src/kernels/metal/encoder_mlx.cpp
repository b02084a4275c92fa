// macOS: submits launches through MLX's command encoder, on its queue.
#include <fmt/format.h>
#include <mlx/backend/metal/device.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "kernels/metal/compile_pipelines.h"
#include "kernels/metal/encoder.h"
#include "kernels/metal/pipeline_cache.h"
#include "kernels/metal/pipeline_collector.h"
#include "kernels/metal/simulator.h"
#include "kernels/runtime/kernel_time.h"
#include "kernels/runtime/primitive.h"

namespace octavo::metal {
namespace {

std::atomic<bool> is_time_measured{false};

// Adds the GPU's time of the current command buffer to kernel_nanoseconds() when it completes. Called
// for every launch; a buffer gets one handler.
void time_command_buffer(const mx::metal::CommandEncoder& encoder) {
  // Retained, so that a new buffer cannot have its address. A thread has one GPU stream.
  thread_local NS::SharedPtr<MTL::CommandBuffer> last;
  MTL::CommandBuffer* buffer = encoder.get_command_buffer();
  if (buffer == nullptr || buffer == last.get()) return;
  last = NS::RetainPtr(buffer);
  buffer->addCompletedHandler([](MTL::CommandBuffer* done) {
    using Clock = std::chrono::steady_clock;
    const std::chrono::duration<double> seconds(done->GPUEndTime() - done->GPUStartTime());
    add_kernel_time(std::chrono::duration_cast<Clock::duration>(seconds));
  });
}

MTL::DataType data_type(std::string_view type) {
  if (type == "bool") return MTL::DataTypeBool;
  if (type == "int") return MTL::DataTypeInt;
  OCTAVO_CHECK(type == "float");
  return MTL::DataTypeFloat;
}

struct Pipeline {
  MTL::ComputePipelineState* state;  // owned by MLX
  uint64_t most_threads;             // per threadgroup
};

// MLX's default options include safe math; the kernels call precise:: functions where the fast
// variants must not be used.
Pipeline compile(mx::metal::Device& device, const PipelineKey& key) {
  const KernelSource& kernel = *key.kernel;
  const std::vector<std::string> types = key.type_texts();
  const std::string instance = instance_name(kernel.name, types);
  MTL::Library* library =
      device.get_library("octavo_" + instance, [&] { return instance_text(kernel, types); });
  mx::metal::MTLFCList constants;
  for (size_t i = 0; i < kernel.constants.size(); ++i) {
    constants.emplace_back(&key.constants[i], data_type(kernel.constants[i].type),
                           static_cast<NS::UInteger>(kernel.constants[i].index));
  }
  MTL::ComputePipelineState* state = device.get_kernel(instance, library, key.name(), constants);
  return {state, state->maxTotalThreadsPerThreadgroup()};
}

PipelineCache<Pipeline>& pipelines() {
  static PipelineCache<Pipeline> cache;
  return cache;
}

void set_argument(mx::metal::CommandEncoder& encoder, const Launch& launch, size_t i) {
  const Argument& argument = launch.arguments()[i];
  const int index = launch.kernel().parameters[i].index;
  switch (argument.kind) {
    case ParameterKind::kInput:
      if (argument.array != nullptr) encoder.set_input_array(*argument.array, index);
      return;
    case ParameterKind::kOutput: {
      if (argument.array == nullptr) return;
      mx::array array = *argument.array;  // the same buffer
      encoder.set_output_array(array, index);
      return;
    }
    case ParameterKind::kBytes:
      encoder.set_bytes(launch.bytes_of(argument).data(), static_cast<int>(argument.bytes), index);
      return;
    case ParameterKind::kThreadgroup: {
      constexpr size_t kUnit = 16;  // required by Metal
      encoder.set_threadgroup_memory_length((argument.bytes + kUnit - 1) / kUnit * kUnit, index);
      return;
    }
  }
}

// A kernel that uses many registers may be limited to fewer than the 1024 threads per threadgroup
// that Launch::check allows; only the compiled pipeline knows. Without its validation layer, Metal
// silently drops a larger launch.
void check_threads(const Launch& launch, uint64_t most) {
  const Size3 threads = launch.threads();
  const uint64_t wanted = uint64_t{threads.x} * threads.y * threads.z;
  if (wanted <= most) return;
  throw std::runtime_error(
      fmt::format("metal kernel {}: threadgroups have {} threads, but this GPU allows {}",
                  launch.key().name(), wanted, most));
}

MTL::Size size_of(Size3 size) { return MTL::Size(size.x, size.y, size.z); }

}  // namespace

// There is no simulator on macOS.
void set_simulator(Simulator* simulator) { OCTAVO_CHECK(simulator == nullptr); }
Simulator* simulator() { return nullptr; }

mx::array Encoder::temporary(mx::Shape shape, mx::Dtype dtype) {
  mx::array array(std::move(shape), dtype, nullptr, {});
  array.set_data(mx::allocator::malloc(array.nbytes()));
  keep(array);
  return array;
}

void Encoder::keep(const mx::array& array) {
  if (PipelineCollector::current() != nullptr) return;
  mx::metal::get_command_encoder(stream_).add_temporary(array);
}

void Encoder::run(const Launch& launch) {
  if (launch.is_empty()) return;
  if (PipelineCollector* collector = PipelineCollector::current()) return collector->add(launch);
  mx::metal::Device& device = mx::metal::device(stream_.device);
  const Pipeline& pipeline = pipelines().pipeline_of(launch, [&](const PipelineKey& key) {
    spdlog::debug("compiling the Metal kernel {} at its first launch", key.name());
    return compile(device, key);
  });
  check_threads(launch, pipeline.most_threads);
  mx::metal::CommandEncoder& encoder = mx::metal::get_command_encoder(stream_);
  if (is_time_measured.load(std::memory_order_relaxed)) time_command_buffer(encoder);
  encoder.set_compute_pipeline_state(pipeline.state);
  for (size_t i = 0; i < launch.arguments().size(); ++i) set_argument(encoder, launch, i);
  encoder.dispatch_threadgroups(size_of(launch.groups()), size_of(launch.threads()));
}

// MLX holds one lock while it compiles source and another while it makes a pipeline, so a third
// thread would only wait.
void compile_pipelines(std::span<const PipelineKey> keys, const CompileProgress& progress) {
  constexpr int kThreads = 2;
  mx::metal::Device& device = mx::metal::device(mx::Device(mx::Device::gpu));
  const auto compile_missing = [&](const PipelineKey& key) {
    if (!pipelines().has(key)) pipelines().add(key, compile(device, key));
  };
  compile_on_threads(keys, kThreads, compile_missing, progress);
}

// MLX checks for a stored error only when it opens a compute encoder or waits for all queued work.
// So open one, with a barrier that has no effect.
void check_stream(mx::Stream stream) {
  const auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
  mx::metal::CommandEncoder& encoder = mx::metal::get_command_encoder(stream);
  encoder.end_encoding();  // an open encoder was already checked
  encoder.barrier();
  encoder.end_encoding();
}

}  // namespace octavo::metal

namespace octavo {

bool measure_gpu_time() {
  metal::is_time_measured = true;
  return true;
}

}  // namespace octavo
