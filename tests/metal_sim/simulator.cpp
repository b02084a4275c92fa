#include "metal_sim/simulator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

namespace octavo::metal_sim {
namespace {

using metal::ParameterKind;

// The process shares the machine and the libraries. Function constants are read when a library is
// loaded, so each set of values has its own copy.
std::mutex machine_mutex;

// The memory of a launch. Arguments that share bytes with an output share a slot, as they share a
// buffer on Metal.
class BoundMemory {
 public:
  BoundMemory(const TextLaunch& launch, KernelCounts& counts, Run& run) {
    for (const TextArgument& argument : launch.arguments) {
      if (argument.kind == ParameterKind::kThreadgroup) {
        run.threadgroup.push_back({argument.index, argument.bytes});
        continue;
      }
      Part& part = part_of(argument);
      part.arguments.push_back(&argument);
    }
    machine().device.clear();
    for (Part& part : parts_) bind(part, counts, run);
  }

  void copy_outputs() const {
    for (const Part& part : parts_)
      if (part.is_written) std::memcpy(part.begin, part.memory, part.bytes());
  }

 private:
  struct Part {
    std::vector<const TextArgument*> arguments;
    std::byte* begin;
    std::byte* end;
    bool is_written;
    std::byte* memory;
    size_t bytes() const { return static_cast<size_t>(end - begin); }
  };

  Part& part_of(const TextArgument& argument) {
    const bool is_written = argument.kind == ParameterKind::kOutput;
    for (Part& part : parts_) {
      const bool shares = argument.data != nullptr && argument.data < part.end &&
                          part.begin < argument.data + argument.bytes;
      if (!shares || !(is_written || part.is_written)) continue;
      part.begin = std::min(part.begin, argument.data);
      part.end = std::max(part.end, argument.data + argument.bytes);
      part.is_written |= is_written;
      return part;
    }
    parts_.push_back({{}, argument.data, argument.data + argument.bytes, is_written, nullptr});
    return parts_.back();
  }

  static void bind(Part& part, KernelCounts& counts, Run& run) {
    // Loads through an input that shares an output's buffer count for the input.
    const auto reads = std::ranges::find_if(
        part.arguments, [](auto* a) { return a->kind != ParameterKind::kOutput; });
    const auto writes = std::ranges::find_if(
        part.arguments, [](auto* a) { return a->kind == ParameterKind::kOutput; });
    const TextArgument& read = **(reads != part.arguments.end() ? reads : part.arguments.begin());
    const TextArgument& written =
        **(writes != part.arguments.end() ? writes : part.arguments.begin());
    part.memory = machine().device.add({.name = part.arguments.front()->name,
                                        .bytes = part.bytes(),
                                        .is_bound = part.begin != nullptr,
                                        .is_writable = part.is_written,
                                        .load_counts = &counts.arguments[read.name],
                                        .store_counts = &counts.arguments[written.name]});
    if (part.begin != nullptr) std::memcpy(part.memory, part.begin, part.bytes());
    for (const TextArgument* argument : part.arguments)
      run.buffers.at(static_cast<size_t>(argument->index)) =
          part.memory + (argument->data - part.begin);
  }

  std::vector<Part> parts_;
};

const LoadedLibrary& loaded(const TextLaunch& launch, bool counts_costs) {
  static std::map<std::tuple<std::string, std::map<int, uint32_t>, bool>,
                  std::unique_ptr<LoadedLibrary>>
      libraries;
  auto& library = libraries[{launch.text, launch.constants, counts_costs}];
  if (library) return *library;
  std::optional<CostBuild> build;
  if (counts_costs) {
    build = launch.cost_build.value_or(CostBuild{});
    build->constants = launch.constants;
  }
  library = std::make_unique<LoadedLibrary>(compile(launch.instance, launch.text, build),
                                            launch.constants);
  return *library;
}

std::string message_of(const KernelFault& fault, const TextLaunch& launch,
                       const LoadedLibrary& library) {
  const std::string place =
      fault.place().empty() ? library.place_of(fault.instruction()) : fault.place();
  std::string text = fmt::format("Metal kernel {}: {}{}", launch.instance,
                                 place.empty() ? "" : place + ": ", fault.what());
  const std::string line = library.source_line(place);
  if (!line.empty()) text += "\n    " + line;
  return text;
}

void add(KernelCounts& total, const RunCounts& run) {
  ++total.launches;
  total.threads += run.threads;
  total.barriers += run.barriers;
  total.simd_operations += run.simd_operations;
  total.multiply_adds += run.multiply_adds;
  total.threadgroup_bytes = std::max(total.threadgroup_bytes, run.threadgroup_bytes);
  total.threadgroup_loads.add(run.threadgroup_loads);
  total.threadgroup_stores.add(run.threadgroup_stores);
}

Grid grid_of(metal::Size3 size) { return {size.x, size.y, size.z}; }

}  // namespace

void MetalSimulator::run(const metal::BoundLaunch& launch) {
  TextLaunch text{.kernel = std::string(launch.kernel->name),
                  .instance = metal::instance_name(launch.kernel->name, launch.types),
                  .text = metal::instance_text(*launch.kernel, launch.types),
                  .groups = launch.groups,
                  .threads = launch.threads};
  for (const metal::ConstantValue& value : launch.constants)
    for (const metal::FunctionConstant& constant : launch.kernel->constants)
      if (constant.name == value.name) text.constants[constant.index] = value.bits;
  for (const metal::BoundArgument& argument : launch.arguments) {
    const metal::Parameter& parameter = *argument.parameter;
    text.arguments.push_back({parameter.index, std::string(parameter.name), parameter.kind,
                              argument.data, argument.bytes});
  }
  run_text(text);
}

void MetalSimulator::run_text(const TextLaunch& launch) {
  const std::scoped_lock lock(machine_mutex, mutex_);
  const LoadedLibrary& library = loaded(launch, options_.costs);
  KernelCounts& counts = counts_[launch.kernel];
  Run run{.run_thread = library.kernel(launch.instance),
          .groups = grid_of(launch.groups),
          .threads = grid_of(launch.threads),
          .code_begin = library.begin(),
          .code_end = library.end()};
  const BoundMemory memory(launch, counts, run);
  try {
    add(counts, machine().run(run, options_));
    if (options_.costs) {
      const OperationCosts operations = library.take_operations();
      counts.operations.add(operations);
      counts.multiply_adds +=
          operations.of(Operation::kMultiplyAdd) + operations.of(Operation::kMatrix);
    }
    counts.threadgroups += uint64_t{launch.groups.x} * launch.groups.y * launch.groups.z;
  } catch (const KernelFault& fault) {
    throw std::runtime_error(message_of(fault, launch, library));
  }
  memory.copy_outputs();
}

std::map<std::string, KernelCounts> MetalSimulator::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void MetalSimulator::reset() {
  const std::scoped_lock lock(mutex_);
  counts_.clear();
}

SimulatedMetal::SimulatedMetal(MachineOptions options) : simulator_(options) {
  metal::set_simulator(this);
}

SimulatedMetal::~SimulatedMetal() {
  metal::set_simulator(nullptr);
  mx::synchronize();  // queued launches refer to this object
  if (fault_) ADD_FAILURE() << *fault_;
}

std::optional<std::string> SimulatedMetal::take_fault() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(fault_, std::nullopt);
}

void SimulatedMetal::run(const metal::BoundLaunch& launch) {
  try {
    simulator_.run(launch);
  } catch (const std::runtime_error& error) {
    const std::scoped_lock lock(mutex_);
    if (!fault_) fault_ = error.what();
  }
}

}  // namespace octavo::metal_sim
