#include "server/http/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/error.h"

namespace octavo::server {
namespace {

using testing::ElementsAre;

struct Parts : MultipartSink {
  struct Part {
    std::string name, filename, data;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;
  void begin_part(const std::string& name, const std::optional<std::string>& filename) override {
    parts.push_back({name, filename.value_or("-"), ""});
  }
  void add_data(std::string_view bytes) override { parts.back().data += bytes; }
};

// As httpx writes it.
const std::string kForm =
    "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
    "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".jsonl\"\r\n"
    "Content-Type: application/octet-stream\r\n\r\none\r\n--bx\r\n\r\n--\r\n--b--\r\nignored";

TEST(Multipart, PartsAreTheSameInPiecesOfAnySize) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    Parts parts;
    MultipartReader reader("b", parts);
    // The text "--bx" begins like a delimiter at the start of a line.
    std::string form = kForm;
    form.replace(form.find("--bx"), 4, "--cx");
    for (std::string_view rest = form; !rest.empty();) {
      const size_t size = std::min<size_t>(rest.size(), 1 + random() % (i % 40 + 1));
      reader.feed(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    reader.finish();
    EXPECT_THAT(parts.parts,
                ElementsAre(Parts::Part{"purpose", "-", "batch"},
                            Parts::Part{"file", "a \"b\".jsonl", "one\r\n--cx\r\n\r\n--"}));
  }
}

TEST(Multipart, MistakesAreRefused) {
  const auto read = [](const std::string& form) {
    Parts parts;
    MultipartReader reader("b", parts);
    reader.feed(form);
    reader.finish();
  };
  EXPECT_THROW(read(""), RequestError);
  EXPECT_THROW(read("--b\r\n\r\nx\r\n--b--"), RequestError);  // no name
  EXPECT_THROW(read(kForm), RequestError);                    // "--bx" is not a delimiter
  EXPECT_THROW(read("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx"), RequestError);
  EXPECT_THROW(read("--b\r\n" + std::string(10000, 'x')), RequestError);
  std::string many;
  for (int i = 0; i < 20; ++i) many += "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n";
  EXPECT_THROW(read(many + "--b--"), RequestError);
}

TEST(Multipart, TheSizeOfHeadersDoesNotDependOnHowTheyArrive) {
  const auto read = [](size_t header_bytes, bool in_pieces) {
    Parts parts;
    MultipartReader reader("b", parts);
    std::string header = "Content-Disposition: form-data; name=a; x=";
    header.resize(header_bytes, 'x');
    const std::string begin = "--b\r\n" + header + "\r\n\r";
    const std::string end = "\ndata\r\n--b--";
    if (in_pieces) {
      reader.feed(begin);
      reader.feed(end);
    } else {
      reader.feed(begin + end);
    }
    reader.finish();
    return parts.parts;
  };
  for (const bool in_pieces : {false, true}) {
    EXPECT_THAT(read(8192, in_pieces), ElementsAre(Parts::Part{"a", "-", "data"}));
    EXPECT_THROW(read(8193, in_pieces), RequestError);
  }
}

TEST(Multipart, TheBoundaryComesFromTheContentType) {
  EXPECT_EQ(multipart_boundary("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(multipart_boundary("Multipart/Form-Data; charset=utf-8; boundary=\"a b\""), "a b");
  EXPECT_THROW(multipart_boundary("application/json"), RequestError);
  EXPECT_THROW(multipart_boundary("multipart/form-data"), RequestError);
  EXPECT_THROW(multipart_boundary("multipart/form-data; boundary=" + std::string(100, 'x')),
               RequestError);
}

}  // namespace
}  // namespace octavo::server
