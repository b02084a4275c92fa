// response_models.h - which child holds a stored response of /v1/responses. I/O thread only. No MLX.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace octavo::front {

class ResponseModels {
 public:
  struct Place {
    std::string model = {};
    uint64_t generation = 0;  // of the child; another one has not stored the response
  };

  // Forgets the oldest entries beyond `most`.
  explicit ResponseModels(size_t most = 1u << 16) : most_(most) {}

  void remember(std::string_view owner, std::string_view id, Place place);
  std::optional<Place> find(std::string_view owner, std::string_view id) const;

 private:
  struct Entry {
    Place place;
    std::list<std::string>::iterator age;
  };

  size_t most_;
  std::list<std::string> keys_;  // oldest first
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace octavo::front
