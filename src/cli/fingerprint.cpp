#include "cli/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "base/mapped_file.h"
#include "base/xxh64.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::exists(path)) return {};  // loading it says so better
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    const auto ending = entry.path().extension();
    if (ending == ".safetensors" || ending == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

void append_sample(const fs::path& path, std::string& out) {
  constexpr int kPieces = 16;
  constexpr size_t kPieceBytes = 4096;
  const uint64_t size = fs::file_size(path);
  out += fmt::format("{} {}\n", path.filename().string(), size);
  std::ifstream file(path, std::ios::binary);
  std::string piece(kPieceBytes, '\0');
  for (int i = 0; i < kPieces; ++i) {
    file.clear();
    file.seekg(static_cast<std::streamoff>(size / kPieces * static_cast<uint64_t>(i)));
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    out.append(piece, 0, static_cast<size_t>(file.gcount()));
  }
}

fs::path this_program() {
#ifdef __APPLE__
  std::string path(4096, '\0');
  auto size = static_cast<uint32_t>(path.size());
  if (_NSGetExecutablePath(path.data(), &size) != 0) return {};
  return path.c_str();
#else
  return "/proc/self/exe";
#endif
}

}  // namespace

std::string sample_of_model(const std::string& path) {
  std::string sample;
  for (const fs::path& file : files_of(path)) append_sample(file, sample);
  return sample;
}

std::string page_source_fingerprint(const std::string& model_path) {
  // Kernels change between builds of one version, and a page must be what this build would compute.
  std::string facts =
      fmt::format("program {:016x}\n", xxh64(MappedFile(fs::canonical(this_program())).bytes()));
  for (const fs::path& file : files_of(model_path))
    facts += fmt::format("{}\n", fs::last_write_time(file).time_since_epoch().count());
  return facts + sample_of_model(model_path);
}

}  // namespace octavo
