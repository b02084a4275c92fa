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

// Immutable once open, so any thread may read it. Views and metadata are valid for its lifetime
// (also after a move).
class Checkpoint {
 public:
  // `path`: a .gguf or .safetensors file, a file of any name with the GGUF magic, or a folder, in
  // which the first of these is used: model.safetensors, model.safetensors.index.json with its
  // files, *.safetensors, one .gguf. Any piece of a split GGUF file (name-00001-of-00003.gguf) may
  // be given. Throws SetupError if there is no model or a file is damaged.
  static Checkpoint open(const std::filesystem::path& path);

  // In file order.
  std::span<const TensorView> tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;  // nullptr if there is none
  // Throws SetupError with the closest names if the tensor does not exist.
  const TensorView& at(std::string_view name) const;

  // The metadata of a GGUF file; nullptr for safetensors.
  const Gguf* gguf() const { return gguf_ ? &*gguf_ : nullptr; }

  // The folder or file that was opened.
  const std::filesystem::path& path() const { return path_; }
  // The folder of config.json, tokenizer.json and so on.
  std::filesystem::path folder() const;
  uint64_t file_bytes() const;

  // Releases the mapped pages of `tensor`, which has been read, from memory; they are read again on
  // the next access. Throws SetupError if its file has become shorter.
  void release(const TensorView& tensor) const;
  // Throws SetupError if a part of a file that has been read is no longer there.
  void check() const;

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
  std::vector<uint32_t> by_name_;  // indices into tensors_, sorted by name
  std::optional<Gguf> gguf_;
};

}  // namespace octavo
