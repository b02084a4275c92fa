// cache_folder.h - a folder of the model cache, held open. Names are looked up relative to it and
// without following symbolic links, so that no link, not even one planted between a check and its
// use, leads a download or a removal out of the cache.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

// Whether `name` can be the name of one file: not empty, "." or "..", at most 255 bytes, UTF-8
// without slashes, backslashes and control characters. Names from the hub must pass it.
bool is_file_name(const std::string& name);

// Every function throws SetupError if a name is not one part of a path, if a folder on the way is a
// symbolic link, or if the system refuses the operation.
class CacheFolder {
 public:
  // Opens the folder of the whole cache, which may be a symbolic link. nullopt: there is none.
  static std::optional<CacheFolder> open_cache(const std::filesystem::path& path);
  // The same, created if there is none.
  static CacheFolder make_cache(const std::filesystem::path& path);

  CacheFolder(CacheFolder&& other) noexcept;
  CacheFolder& operator=(CacheFolder&& other) noexcept;
  ~CacheFolder();

  // Opens the folder at the relative path `path`. nullopt: there is none.
  std::optional<CacheFolder> find(const std::filesystem::path& path) const;
  // The same, created with its parents if there is none. An empty path is this folder.
  CacheFolder make(const std::filesystem::path& path) const;

  struct Entry {
    std::string name;
    bool is_folder = false;  // false for a link to a folder
  };
  std::vector<Entry> entries() const;  // sorted by name
  bool is_empty() const { return entries().empty(); }

  // The first word of the regular file `name`; empty if it is missing, a link, or another kind of
  // file.
  std::string first_word_of(const std::string& name) const;

  // Replaces a file or link of this name atomically.
  void link(const std::string& target, const std::string& name) const;
  void write(const std::string& name, const std::string& text) const;

  // Removes a file or link, if there is one.
  void remove_file(const std::string& name) const;
  // Removes the folders inside this one that contain no files.
  void remove_empty_folders() const;
  // Removes the folder `name` and its contents; links are removed, not followed.
  void remove_tree(const std::string& name) const;

 private:
  CacheFolder(int descriptor, std::filesystem::path path)
      : descriptor_(descriptor), path_(std::move(path)) {}
  std::optional<CacheFolder> find_one(const std::string& name) const;
  CacheFolder make_one(const std::string& name) const;
  void rename_over(const std::string& fresh, const std::string& name) const;
  [[noreturn]] void fail(const char* what, const std::string& name) const;

  int descriptor_ = -1;
  std::filesystem::path path_;  // for messages
};

}  // namespace octavo
