#include "llm/fingerprint.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "base/mapped_file.h"
#include "base/sha256.h"
#include "base/xxh64.h"
#include "kernels/arithmetic.h"
#include "kernels/runtime/device.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::exists(path)) return {};  // loading reports a better error
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

// The file this code was loaded from: liboctavo.so or the program.
fs::path this_code() {
  static const char here = 0;
  Dl_info info;
  if (dladdr(&here, &info) != 0 && info.dli_fname != nullptr) {
    const std::string name = fs::path(info.dli_fname).filename().string();
    if (name.find(".so") != std::string::npos || name.ends_with(".dylib")) return info.dli_fname;
  }
  return this_program();
}

}  // namespace

std::string sample_of_model(const std::string& path) {
  std::string sample;
  for (const fs::path& file : files_of(path)) append_sample(file, sample);
  return sample;
}

std::string page_source_fingerprint(const std::string& model_path) {
  // Kernels may change between builds of one version, and a page must have the bits that this build
  // computes.
  std::string facts =
      fmt::format("program {:016x}\n", xxh64(MappedFile(fs::canonical(this_code())).bytes()));
  for (const fs::path& file : files_of(model_path))
    facts += fmt::format("{}\n", fs::last_write_time(file).time_since_epoch().count());
  return facts + sample_of_model(model_path);
}

std::string answer_fingerprint(const ModelSettings& settings, const Llm& llm,
                               const std::string& version) {
  const std::string arithmetic = arithmetic_name();
  const bool on_gpu = device_facts().kind == DeviceKind::kMetal;
  // Metal's kernels have no version of their own.
  std::string facts = fmt::format("{} {} {} {}\n", on_gpu ? version : "", arithmetic,
                                  name_of(llm.engine().model().dtype), settings.kv_cache_dtype);
  // sample_of_model() does not cover the subfolders with the pooling config.
  if (const auto& pooling = llm.engine().model().pooling) {
    facts += pooling->describe() + "\n";
    if (pooling->labels > 0)
      facts +=
          fmt::format("prompt {} {}\n", static_cast<int>(pooling->pair_prompt), pooling->normalize);
  }
  if (const auto& merged = llm.engine().merged_adapter())
    facts += fmt::format("merged {:02x}\n", fmt::join(*merged, ""));
  // What the model's files do not say about its images.
  if (llm.engine().max_image_tokens() > 0)
    facts += fmt::format("images {} {}\n", settings.image_max_tokens, settings.mm_processor_kwargs);
  facts += sample_of_model(settings.model);
  if (!settings.chat_template.empty()) append_sample(settings.chat_template, facts);
  const std::vector<uint8_t> bytes(facts.begin(), facts.end());
  const Sha256Digest digest = sha256(bytes);
  std::string text = fmt::format("fp_{}_", on_gpu ? "metal" : arithmetic);
  for (size_t i = 0; i < 6; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace octavo
