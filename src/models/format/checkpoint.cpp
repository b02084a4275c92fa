#include "models/format/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/nearest_names.h"
#include "models/format/gguf.h"
#include "models/format/gguf_split.h"
#include "models/format/printable.h"
#include "models/format/safetensors.h"
#include "models/format/weight_map.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExpected =
    "expected a .gguf file, a .safetensors file, or a folder that holds model.safetensors, "
    "model.safetensors.index.json, other *.safetensors files or one .gguf file";

[[noreturn]] void fail(const fs::path& path, std::string_view message) {
  throw SetupError(fmt::format("{}: {}", path.string(), message));
}

// Also false if the path is not accessible.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Ollama's files are named only by their hash.
bool begins_as_gguf(const fs::path& path) {
  std::array<char, 4> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) && std::string_view(magic.data(), 4) == "GGUF";
}

// The files of `folder` with this extension, by name.
std::vector<fs::path> files_with_extension(const fs::path& folder, std::string_view extension) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == extension && fs::is_regular_file(path, error)) files.push_back(path);
    error.clear();  // ignore dangling links
  }
  if (error) fail(folder, "cannot be read: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

bool holds(const MappedFile& file, const TensorView& tensor) {
  const std::byte* begin = file.bytes().data();
  return std::greater_equal<>{}(tensor.bytes.data(), begin) &&
         std::less_equal<>{}(tensor.bytes.data() + tensor.bytes.size(),
                             begin + file.bytes().size());
}

// The tensors of `names` (which the index places in `file`), in the file's order.
std::vector<TensorView> select(std::vector<TensorView> tensors, std::vector<std::string> names,
                               const fs::path& file, const fs::path& index) {
  std::sort(names.begin(), names.end());
  std::erase_if(tensors, [&](const TensorView& tensor) {
    return !std::binary_search(names.begin(), names.end(), tensor.name);
  });
  if (tensors.size() == names.size()) return tensors;
  for (const std::string& name : names) {
    const auto has_name = [&](const TensorView& tensor) { return tensor.name == name; };
    if (std::none_of(tensors.begin(), tensors.end(), has_name)) {
      fail(index, fmt::format("tensor {} should be in {}, but is not", in_quotes(name),
                              file.filename().string()));
    }
  }
  return tensors;
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& path) {
  Checkpoint checkpoint(path);
  std::error_code error;
  if (!is_there(path)) fail(path, fmt::format("no such file or folder; {}", kExpected));
  if (fs::is_directory(path, error)) {
    checkpoint.open_folder();
  } else if (path.extension() == ".gguf" || begins_as_gguf(path)) {
    checkpoint.add_gguf(path);
  } else if (path.extension() == ".safetensors") {
    checkpoint.add_safetensors(path);
  } else {
    fail(path, fmt::format("not a model file; {}", kExpected));
  }
  checkpoint.check();
  checkpoint.index_names();
  return checkpoint;
}

void Checkpoint::open_folder() {
  const fs::path single = path_ / "model.safetensors";
  const fs::path index = path_ / "model.safetensors.index.json";
  if (is_there(single)) return add_safetensors(single);
  if (is_there(index)) return open_index(index);
  const auto shards = files_with_extension(path_, ".safetensors");
  for (const fs::path& shard : shards) add_safetensors(shard);
  if (!shards.empty()) return;
  const auto ggufs = files_with_extension(path_, ".gguf");
  if (ggufs.empty()) fail(path_, fmt::format("no model in this folder; {}", kExpected));
  // Several files are one model only if they are pieces of a split file.
  if (ggufs.size() > 1 && gguf_pieces(ggufs.front()) != ggufs) {
    std::vector<std::string> names;
    for (const fs::path& file : ggufs) names.push_back(file.filename().string());
    fail(path_, fmt::format("{} .gguf files in this folder, pass the path of one of them: {}",
                            names.size(), fmt::join(names, ", ")));
  }
  add_gguf(ggufs.front());
}

void Checkpoint::open_index(const fs::path& index) {
  const auto files = parse_weight_map(read_text_file(index), index.string());
  for (const auto& [file_name, names] : files) {
    const fs::path file = path_ / file_name;
    if (!is_there(file)) {
      fail(index,
           fmt::format("the file {}, which it lists, is missing; download it into this folder",
                       in_quotes(file_name)));
    }
    const size_t before = tensors_.size();
    add_safetensors(file);
    const auto added = tensors_.begin() + static_cast<std::ptrdiff_t>(before);
    auto chosen = select({added, tensors_.end()}, names, file, index);
    tensors_.erase(added, tensors_.end());
    std::move(chosen.begin(), chosen.end(), std::back_inserter(tensors_));
  }
}

void Checkpoint::add_safetensors(const fs::path& file) {
  const MappedFile& mapped = files_.emplace_back(file);
  Safetensors parsed = parse_safetensors(mapped.bytes(), file.string());
  std::move(parsed.tensors.begin(), parsed.tensors.end(), std::back_inserter(tensors_));
}

void Checkpoint::add_gguf(const fs::path& file) {
  const auto pieces = gguf_pieces(file);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const MappedFile& mapped = files_.emplace_back(pieces[i]);
    GgufFile parsed = parse_gguf(mapped.bytes(), pieces[i].string());
    check_gguf_piece(parsed.metadata, i, pieces.size());
    if (i == 0) gguf_ = std::move(parsed.metadata);  // the other pieces have no further metadata
    std::move(parsed.tensors.begin(), parsed.tensors.end(), std::back_inserter(tensors_));
  }
}

void Checkpoint::index_names() {
  if (tensors_.empty()) fail(path_, "the model has no tensors");
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  const auto name = [&](uint32_t position) -> const std::string& {
    return tensors_[position].name;
  };
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return name(a) < name(b); });
  const auto twin = std::adjacent_find(by_name_.begin(), by_name_.end(),
                                       [&](uint32_t a, uint32_t b) { return name(a) == name(b); });
  if (twin != by_name_.end()) {
    fail(path_,
         fmt::format("the tensor {} is in two of the model's files", in_quotes(name(*twin))));
  }
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](uint32_t position, std::string_view n) { return tensors_[position].name < n; });
  if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
  return &tensors_[*found];
}

const TensorView& Checkpoint::at(std::string_view name) const {
  if (const TensorView* tensor = find(name)) return *tensor;
  std::string nearest;
  std::vector<std::string> names;
  for (const TensorView& tensor : tensors_) names.emplace_back(tensor.name);
  for (const std::string_view other : nearest_names(name, names, 3)) {
    nearest += (nearest.empty() ? "" : ", ") + in_quotes(other);
  }
  fail(path_,
       fmt::format("no tensor is named {}; the closest names are {}", in_quotes(name), nearest));
}

fs::path Checkpoint::folder() const {
  return fs::is_directory(path_) ? path_ : path_.parent_path();
}

uint64_t Checkpoint::file_bytes() const {
  uint64_t bytes = 0;
  for (const MappedFile& file : files_) bytes += file.bytes().size();
  return bytes;
}

void Checkpoint::release(const TensorView& tensor) const {
  if (tensor.bytes.empty()) return;
  const auto file = std::find_if(files_.begin(), files_.end(),
                                 [&](const MappedFile& f) { return holds(f, tensor); });
  OCTAVO_CHECK(file != files_.end());
  file->release(tensor.bytes);
  file->check();
}

void Checkpoint::check() const {
  for (const MappedFile& file : files_) file.check();
}

}  // namespace octavo
