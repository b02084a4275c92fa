// On macOS: launches go through MLX's own command encoder, on its queue.
#include <fmt/format.h>
#include <mlx/backend/metal/device.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "kernels/metal/encoder.h"
#include "kernels/metal/simulator.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/primitive.h"

namespace octavo::metal {
namespace {

MTL::DataType data_type(std::string_view type) {
  if (type == "bool") return MTL::DataTypeBool;
  if (type == "int") return MTL::DataTypeInt;
  OCTAVO_CHECK(type == "float");
  return MTL::DataTypeFloat;
}

// Compiled by the first launch that needs it, and kept by MLX. Its default options are what we
// want: safe math; functions that must not be the fast ones are called as precise:: in the kernels.
MTL::ComputePipelineState* pipeline(mx::metal::Device& device, const Launch& launch) {
  const KernelSource& kernel = launch.kernel();
  const std::string instance = instance_name(kernel.name, launch.types());
  MTL::Library* library = device.get_library("octavo_" + instance,
                                             [&] { return instance_text(kernel, launch.types()); });
  mx::metal::MTLFCList constants;
  for (const ConstantValue& value : launch.constants()) {
    for (const FunctionConstant& wanted : kernel.constants) {
      if (wanted.name != value.name) continue;
      constants.emplace_back(&value.bits, data_type(wanted.type),
                             static_cast<NS::UInteger>(wanted.index));
    }
  }
  return device.get_kernel(instance, library, launch.pipeline_name(), constants);
}

void set_argument(mx::metal::CommandEncoder& encoder, const Argument& argument, int index) {
  switch (argument.kind) {
    case ParameterKind::kInput:
      if (argument.array) encoder.set_input_array(*argument.array, index);
      return;
    case ParameterKind::kOutput: {
      if (!argument.array) return;
      mx::array array = *argument.array;  // the same buffer
      encoder.set_output_array(array, index);
      return;
    }
    case ParameterKind::kBytes:
      encoder.set_bytes(argument.bytes.data(), static_cast<int>(argument.bytes.size()), index);
      return;
    case ParameterKind::kThreadgroup: {
      constexpr size_t kUnit = 16;  // Metal takes multiples of it
      encoder.set_threadgroup_memory_length(
          (argument.threadgroup_bytes + kUnit - 1) / kUnit * kUnit, index);
      return;
    }
  }
}

// A kernel that needs many registers runs in smaller threadgroups than the 1024 of Launch::check,
// and only the compiled pipeline knows. Without its validation layer Metal drops a larger launch
// and says nothing.
void check_threads(const Launch& launch, MTL::ComputePipelineState* pipeline) {
  const Size3 threads = launch.threads();
  const uint64_t wanted = uint64_t{threads.x} * threads.y * threads.z;
  const uint64_t most = pipeline->maxTotalThreadsPerThreadgroup();
  if (wanted <= most) return;
  throw std::runtime_error(fmt::format("metal kernel {}: threadgroups of {} on a GPU that takes {}",
                                       launch.pipeline_name(), wanted, most));
}

MTL::Size size_of(Size3 size) { return MTL::Size(size.x, size.y, size.z); }

}  // namespace

// Nothing simulates Metal where it is.
void set_simulator(Simulator* simulator) { OCTAVO_CHECK(simulator == nullptr); }
Simulator* simulator() { return nullptr; }

mx::array Encoder::temporary(mx::Shape shape, mx::Dtype dtype) {
  mx::array array(std::move(shape), dtype, nullptr, {});
  array.set_data(mx::allocator::malloc(array.nbytes()));
  mx::metal::get_command_encoder(stream_).add_temporary(array);
  return array;
}

void Encoder::run(const Launch& launch) {
  launch.check();
  if (launch.is_empty()) return;
  count_launch((std::string(launch.kernel().name) + ".metal").c_str());
  MTL::ComputePipelineState* compiled = pipeline(mx::metal::device(stream_.device), launch);
  check_threads(launch, compiled);
  mx::metal::CommandEncoder& encoder = mx::metal::get_command_encoder(stream_);
  encoder.set_compute_pipeline_state(compiled);
  for (size_t i = 0; i < launch.arguments().size(); ++i)
    set_argument(encoder, launch.arguments()[i], launch.kernel().parameters[i].index);
  encoder.dispatch_threadgroups(size_of(launch.groups()), size_of(launch.threads()));
}

// MLX looks for a stored error when it opens a compute encoder, and at no other time that does not
// wait for all that is queued. So one is opened, with a barrier that orders nothing.
void check_stream(mx::Stream stream) {
  const auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
  mx::metal::CommandEncoder& encoder = mx::metal::get_command_encoder(stream);
  encoder.end_encoding();  // one that is open has been looked at
  encoder.barrier();
  encoder.end_encoding();
}

}  // namespace octavo::metal
