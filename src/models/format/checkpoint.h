// checkpoint.h - a model's weight files, mapped and checked; finds tensors by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "models/format/gguf_metadata.h"
#include "models/format/tensor_view.h"

namespace octavo {

// Immutable once open, so any thread may read it. Views and metadata are valid as long as it lives
// (also after a move).
class Checkpoint {
 public:
  // `path` is a .gguf or .safetensors file, a file of any name that begins as GGUF does, or a
  // folder that holds the first of these it has: model.safetensors, model.safetensors.index.json
  // with its files, *.safetensors, one .gguf. Of a split GGUF file (name-00001-of-00003.gguf) any
  // piece will do. Throws SetupError when there is none, or a file is damaged.
  static Checkpoint open(const std::filesystem::path& path);

  // In the order in which they lie in the files.
  std::span<const TensorView> tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;  // nullptr: no such tensor
  // Throws SetupError naming the nearest names when there is no such tensor.
  const TensorView& at(std::string_view name) const;

  // The metadata of a GGUF file; nullptr for safetensors.
  const Gguf* gguf() const { return gguf_ ? &*gguf_ : nullptr; }

  // What was opened: the folder or the file.
  const std::filesystem::path& path() const { return path_; }
  // Where the files that belong to it stand: config.json, tokenizer.json and so on.
  std::filesystem::path folder() const;
  uint64_t file_bytes() const;

  // Drops the pages of `tensor` from this process's memory: it will not be read again soon.
  void release(const TensorView& tensor) const;

 private:
  explicit Checkpoint(std::filesystem::path path) : path_(std::move(path)) {}

  void open_folder();
  void open_index(const std::filesystem::path& index);
  void add_safetensors(const std::filesystem::path& file);
  void add_gguf(const std::filesystem::path& file);
  void index_names();

  std::filesystem::path path_;
  std::vector<MappedFile> files_;
  std::vector<TensorView> tensors_;
  std::vector<uint32_t> by_name_;  // positions in tensors_, in the order of their names
  std::optional<Gguf> gguf_;
};

}  // namespace octavo
