#include "metal_sim/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/sha256.h"
#include "metal_sim/callbacks.h"

namespace octavo::metal_sim {
namespace {
namespace fs = std::filesystem;

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == 0 ? otherwise : value;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string hex_digest(const std::string& text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  std::string hex;
  for (const uint8_t byte : sha256({bytes, text.size()})) hex += fmt::format("{:02x}", byte);
  return hex.substr(0, 24);
}

// Everything except the text that determines the compiled code.
const std::string& tools_digest() {
  static const std::string digest = [] {
    std::vector<fs::path> files;
    for (const char* folder : {METAL_SIM_FOLDER "/compile", METAL_SIM_FOLDER "/shim"})
      for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file() && entry.path().extension() != ".pyc")
          files.push_back(entry.path());
    std::ranges::sort(files);
    std::string all = environment("OCTAVO_METAL_CXX", METAL_SIM_CXX);
    for (const auto& file : files) all += read_file(file);
    return hex_digest(all);
  }();
  return digest;
}

// The output of a command, and whether it succeeded.
std::pair<std::string, bool> output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("metal_sim: cannot start " + command);
  std::string output;
  std::array<char, 4096> part;
  size_t count = 0;
  while ((count = fread(part.data(), 1, part.size(), pipe)) > 0) output.append(part.data(), count);
  return {output, pclose(pipe) == 0};
}

// One process compiles a text; the others wait for it.
class FileLock {
 public:
  explicit FileLock(const fs::path& path)
      : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
    if (file_ < 0 || flock(file_, LOCK_EX) != 0)
      throw std::runtime_error("metal_sim: cannot lock " + path.string());
  }
  ~FileLock() { close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

void write_at_once(const fs::path& path, const std::string& text) {
  const fs::path made = path.string() + fmt::format(".{}", getpid());
  std::ofstream(made, std::ios::binary) << text;
  fs::rename(made, path);
}

// Loads a new copy each time, which the loader treats as another library, so that the initialisers,
// which read the function constants, run for each.
void* open_copy(const fs::path& library) {
  static int copies = 0;
  const fs::path copy = library.parent_path() / fmt::format("copy_{}_{}.so", getpid(), copies++);
  fs::copy_file(library, copy, fs::copy_options::overwrite_existing);
  void* handle = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string complaint = handle == nullptr ? dlerror() : "";
  fs::remove(copy);
  if (handle == nullptr) throw std::runtime_error("metal_sim: " + complaint);
  return handle;
}

// The options of build_instance.py.
std::string options_of(const CostBuild& build) {
  std::string options = "--costs --constants '";
  for (const auto& [index, bits] : build.constants) options += fmt::format("{}={},", index, bits);
  options += "'";
  return build.mlx_headers.empty() ? options
                                   : options + fmt::format(" --mlx '{}'", build.mlx_headers);
}

}  // namespace

CompiledText compile(const std::string& name, const std::string& text,
                     const std::optional<CostBuild>& costs) {
  const fs::path cache = environment("OCTAVO_METAL_CACHE", METAL_SIM_CACHE);
  std::string key = tools_digest() + name + "\n" + text;
  const std::string options = costs ? options_of(*costs) : "";
  if (costs) key += options + read_file(costs->mlx_headers + "/mlx/version.h");
  const fs::path folder = cache / hex_digest(key);
  CompiledText compiled{.library = folder / "kernel.so", .source = folder / (name + ".metal")};
  if (fs::exists(compiled.library)) return compiled;
  fs::create_directories(folder);
  const FileLock lock(folder / "lock");
  if (fs::exists(compiled.library)) return compiled;
  write_at_once(compiled.source, text);
  const fs::path made = folder / fmt::format("kernel_{}.so", getpid());
  const auto [complaints, ok] = output_of(fmt::format(
      "OCTAVO_METAL_CXX='{}' '{}' -S -E '{}/compile/build_instance.py' {} '{}' '{}' '{}' 2>&1",
      environment("OCTAVO_METAL_CXX", METAL_SIM_CXX), METAL_SIM_PYTHON, METAL_SIM_FOLDER, options,
      compiled.source.string(), made.string(), cache.string()));
  if (!ok)
    throw std::runtime_error(fmt::format("Metal source {} is not valid:\n{}", name, complaints));
  fs::rename(made, compiled.library);
  return compiled;
}

LoadedLibrary::LoadedLibrary(CompiledText compiled, const std::map<int, uint32_t>& constants)
    : compiled_(std::move(compiled)) {
  Loading loading{.constants = constants};
  {
    const LoadingScope scope(loading);
    void* handle = open_copy(compiled_.library);
    if (void* runs = dlsym(handle, "msl_block_runs")) {
      block_runs_ = static_cast<uint64_t*>(runs);
      block_costs_ = static_cast<const int32_t*>(dlsym(handle, "msl_block_costs"));
      registers_ = static_cast<const int32_t*>(dlsym(handle, "msl_registers"));
      block_count_ = *static_cast<const int32_t*>(dlsym(handle, "msl_block_count"));
    }
  }
  if (!loading.missing_constant.empty())
    throw std::runtime_error("function constant " + loading.missing_constant + " has no value");
  kernels_ = std::move(loading.kernels);
  if (kernels_.empty()) throw std::runtime_error("no kernel in " + compiled_.source.string());
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(kernels_.begin()->second), &info);
  begin_ = reinterpret_cast<uintptr_t>(info.dli_fbase);
  dl_iterate_phdr(
      [](dl_phdr_info* module, size_t, void* data) {
        auto& self = *static_cast<LoadedLibrary*>(data);
        if (module->dlpi_addr != self.begin_) return 0;
        for (int i = 0; i < module->dlpi_phnum; ++i) {
          const auto& part = module->dlpi_phdr[i];
          if (part.p_type == PT_LOAD)
            self.end_ = std::max(self.end_, self.begin_ + part.p_vaddr + part.p_memsz);
        }
        return 1;
      },
      this);
}

void (*LoadedLibrary::kernel(const std::string& name) const)() {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) throw std::runtime_error("no kernel named " + name);
  return found->second;
}

OperationCosts LoadedLibrary::take_operations() const {
  constexpr size_t kColumns = kOperationKinds + 2;  // and the two chains
  OperationCosts total;
  for (size_t block = 0; block < static_cast<size_t>(block_count_); ++block) {
    const uint64_t runs = std::exchange(block_runs_[block], 0);
    const std::span row(block_costs_ + block * kColumns, kColumns);
    OperationCosts one;
    for (size_t i = 0; i < kOperationKinds; ++i) one.counts[i] = static_cast<uint64_t>(row[i]);
    one.block_operations = one.arithmetic();
    one.hottest = one.block_operations * runs;
    one.block_chain = static_cast<uint64_t>(row[kOperationKinds]);
    one.block_carried = static_cast<uint64_t>(row[kOperationKinds + 1]);
    for (uint64_t& count : one.counts) count *= runs;
    total.add(one);
  }
  if (registers_ != nullptr) {
    total.registers = registers_[0];
    total.spilled_bytes = registers_[1];
  }
  return total;
}

std::string LoadedLibrary::place_of(const void* instruction) const {
  const auto address = reinterpret_cast<uintptr_t>(instruction);
  if (address < begin_ || address >= end_) return {};
  // It is a return address, so the call is before it. Inlined functions are listed innermost first.
  const auto [frames, ok] =
      output_of(fmt::format("addr2line -i -s -e '{}' {:#x} 2>/dev/null", compiled_.library.string(),
                            address - begin_ - 1));
  for (size_t at = 0; at < frames.size();) {
    const size_t end = std::min(frames.find('\n', at), frames.size());
    std::string frame = frames.substr(at, end - at);
    frame = frame.substr(0, frame.find(' '));  // " (discriminator 2)"
    if (frame.starts_with(compiled_.source.filename().string())) return frame;
    at = end + 1;
  }
  return {};
}

std::string LoadedLibrary::source_line(const std::string& place) const {
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos || place.substr(0, colon) != compiled_.source.filename().string())
    return {};
  std::ifstream file(compiled_.source);
  std::string line;
  for (int wanted = std::atoi(place.c_str() + colon + 1); wanted > 0 && std::getline(file, line);)
    --wanted;
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

}  // namespace octavo::metal_sim
