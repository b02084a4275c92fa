// Any bytes from a client are divided into requests or refused, and how they arrive does not change
// the result: HTTP/1.1, and the forms of uploads.
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/testing/test_model.h"
#include "base/error.h"
#include "fuzz/fuzz_input.h"
#include "server/http/allowed_hosts.h"
#include "server/http/multipart.h"
#include "server/server_context.h"
#include "support/http_framing.h"

namespace octavo::server {
namespace {

using Pieces = std::span<const std::string_view>;

class StreamReader {
 public:
  // The requests, and whether the last one asked to close the connection. The parser refuses a
  // malformed header before the rest of the head arrives, or waits for it, depending on the pieces,
  // so for a stream that ends there, "refused" is the same as the end.
  std::string read(Pieces pieces) {
    const Framing framing = framing_of(pieces, io_, context_);
    io_.restart();
    io_.poll();  // handlers of cancelled timers
    return framing.requests + (framing.end == std::string_view("closed") ? " closed" : "");
  }

 private:
  api::TestModel model_;
  ServerOptions options_;
  boost::asio::io_context io_;
  ServerContext context_{io_, *model_, options_};
};

class ShownParts : public MultipartSink {
 public:
  void begin_part(const std::string& name, const std::optional<std::string>& filename) override {
    text += "\n[" + name + ' ' + filename.value_or("-") + "]\n";
  }
  void add_data(std::string_view bytes) override { text += bytes; }

  std::string text = {};
};

std::string form_of(const std::string& boundary, Pieces pieces) {
  ShownParts parts;
  try {
    MultipartReader reader(boundary, parts);
    for (const std::string_view piece : pieces) reader.feed(piece);
    reader.finish();
  } catch (const RequestError& error) {
    return error.what();
  }
  return parts.text;
}

void read_stream(Pieces pieces, std::string_view whole) {
  static StreamReader reader;
  OCTAVO_CHECK(reader.read(pieces) == reader.read(std::span(&whole, 1)));
}

void read_form(Pieces pieces, std::string_view whole) {
  std::string boundary = "x";
  if (const size_t end = whole.find('\n'); end != std::string_view::npos) {
    try {
      boundary = multipart_boundary(whole.substr(0, end));
    } catch (const RequestError&) {
    }
  }
  OCTAVO_CHECK(form_of(boundary, pieces) == form_of(boundary, std::span(&whole, 1)));
}

void read_values(std::string_view text) {
  query_value(text, "name");
  percent_decoded(text);
  AllowedHosts("127.0.0.1", {"octavo.example"}).allow(text);
}

}  // namespace
}  // namespace octavo::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octavo::server;
  octavo::FuzzInput input(data, size);
  const uint8_t kind = input.byte() % 8;
  const std::vector<std::string_view> pieces = input.pieces();
  if (kind == 0) {
    read_values(input.rest());
  } else if (kind == 1) {
    read_form(pieces, input.rest());
  } else {
    read_stream(pieces, input.rest());
  }
  return 0;
}
