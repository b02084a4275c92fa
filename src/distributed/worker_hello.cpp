#include "distributed/worker_hello.h"

#include "distributed/wire.h"

namespace octavo {
namespace {

constexpr size_t kMostHelloText = 512;

}  // namespace

std::vector<std::byte> encode(const WorkerHello& hello) {
  WireWriter writer;
  writer.put(static_cast<int32_t>(hello.rank));
  writer.put_text(hello.version);
  writer.put(static_cast<int32_t>(hello.arithmetic));
  writer.put_text(hello.isa);
  writer.put(hello.memory_bytes);
  writer.put_text(hello.model_digest);
  writer.put_text(hello.address);
  return writer.take();
}

WorkerHello decode_hello(std::span<const std::byte> bytes) {
  WireReader reader(bytes, "hello");
  WorkerHello hello;
  hello.rank = reader.get_int(0, 1 << 16);
  hello.version = reader.get_text(kMostHelloText);
  hello.arithmetic = reader.get<int32_t>();
  hello.isa = reader.get_text(kMostHelloText);
  hello.memory_bytes = reader.get<uint64_t>();
  hello.model_digest = reader.get_text(kMostHelloText);
  hello.address = reader.get_text(kMostHelloText);
  reader.end();
  return hello;
}

}  // namespace octavo
