// multipart.h - reads multipart/form-data piece by piece. No socket.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octavo::server {

// What the reader finds. The views are valid during the call only.
class MultipartSink {
 public:
  virtual ~MultipartSink() = default;
  // `filename`: only of parts that are files.
  virtual void begin_part(const std::string& name, const std::optional<std::string>& filename) = 0;
  virtual void add_data(std::string_view bytes) = 0;
};

// Throws RequestError(400, 415) unless `content_type` is multipart/form-data with a boundary.
std::string multipart_boundary(std::string_view content_type);

class MultipartReader {
 public:
  MultipartReader(const std::string& boundary, MultipartSink& sink);

  // The body in pieces of any size. Throws RequestError(400).
  void feed(std::string_view bytes);
  // After the last piece. Throws RequestError(400) if the form is not complete.
  void finish() const;

 private:
  enum class Place { kBetween, kHeaders, kData, kEnd };
  // These return false if more bytes are needed.
  bool read_between();
  bool read_headers();
  bool read_data();

  MultipartSink& sink_;
  std::string delimiter_;        // "\r\n--" and the boundary
  std::string unread_ = "\r\n";  // so that the first delimiter is like the others
  Place place_ = Place::kData;
  bool preamble_ = true;
  int parts_ = 0;
};

}  // namespace octavo::server
