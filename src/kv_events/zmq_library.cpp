// The functions of libzmq that cppzmq's header calls, found in the library when one is called first: a
// server without KV events does not load it, and packages need not contain it. The first call throws
// SetupError if there is no library.
#include <dlfcn.h>
#include <fmt/format.h>
#include <zmq.h>

#include "base/error.h"

// F(result, name, parameters, arguments)
#define OCTAVO_ZMQ_FUNCTIONS(F)                                                                  \
  F(int, zmq_errno, (), ())                                                                      \
  F(const char*, zmq_strerror, (int error), (error))                                             \
  F(void*, zmq_ctx_new, (), ())                                                                  \
  F(int, zmq_ctx_term, (void* context), (context))                                               \
  F(int, zmq_msg_init, (zmq_msg_t * message), (message))                                         \
  F(int, zmq_msg_init_data,                                                                      \
    (zmq_msg_t * message, void* data, size_t size, zmq_free_fn* free, void* hint),               \
    (message, data, size, free, hint))                                                           \
  F(int, zmq_msg_send, (zmq_msg_t * message, void* socket, int flags), (message, socket, flags)) \
  F(int, zmq_msg_recv, (zmq_msg_t * message, void* socket, int flags), (message, socket, flags)) \
  F(int, zmq_msg_close, (zmq_msg_t * message), (message))                                        \
  F(void*, zmq_msg_data, (zmq_msg_t * message), (message))                                       \
  F(size_t, zmq_msg_size, (const zmq_msg_t* message), (message))                                 \
  F(int, zmq_msg_more, (const zmq_msg_t* message), (message))                                    \
  F(void*, zmq_socket, (void* context, int type), (context, type))                               \
  F(int, zmq_close, (void* socket), (socket))                                                    \
  F(int, zmq_setsockopt, (void* socket, int option, const void* value, size_t size),             \
    (socket, option, value, size))                                                               \
  F(int, zmq_getsockopt, (void* socket, int option, void* value, size_t* size),                  \
    (socket, option, value, size))                                                               \
  F(int, zmq_bind, (void* socket, const char* endpoint), (socket, endpoint))                     \
  F(int, zmq_connect, (void* socket, const char* endpoint), (socket, endpoint))                  \
  F(int, zmq_send, (void* socket, const void* data, size_t size, int flags),                     \
    (socket, data, size, flags))                                                                 \
  F(int, zmq_poll, (zmq_pollitem_t * items, int count, long milliseconds),                       \
    (items, count, milliseconds))

namespace octavo::kv_events {
namespace {

struct ZmqFunctions {
#define OCTAVO_ZMQ_MEMBER(result, name, parameters, arguments) decltype(&::name) name;
  OCTAVO_ZMQ_FUNCTIONS(OCTAVO_ZMQ_MEMBER)
#undef OCTAVO_ZMQ_MEMBER
};

[[noreturn]] void refuse_zmq() {
  const char* error = ::dlerror();
  throw SetupError(
      fmt::format("--kv-events-config: cannot load ZeroMQ ({}); install it (Debian: apt install "
                  "libzmq5; macOS: brew install zeromq), or remove the flag",
                  error != nullptr ? error : "unknown error"));
}

void* open_zmq() {
#ifdef __APPLE__
  // Homebrew's folder is not one of those that the system searches.
  constexpr const char* kNames[] = {"libzmq.5.dylib", "/opt/homebrew/lib/libzmq.5.dylib"};
#else
  constexpr const char* kNames[] = {"libzmq.so.5"};
#endif
  for (const char* name : kNames)
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  refuse_zmq();
}

template <typename Function>
void find_in(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) refuse_zmq();
}

const ZmqFunctions& zmq_functions() {
  static const ZmqFunctions functions = [] {
    void* library = open_zmq();  // stays loaded
    ZmqFunctions found;
#define OCTAVO_ZMQ_FIND(result, name, parameters, arguments) find_in(library, #name, found.name);
    OCTAVO_ZMQ_FUNCTIONS(OCTAVO_ZMQ_FIND)
#undef OCTAVO_ZMQ_FIND
    return found;
  }();
  return functions;
}

}  // namespace
}  // namespace octavo::kv_events

extern "C" {
#define OCTAVO_ZMQ_FORWARD(result, name, parameters, arguments) \
  result name parameters { return octavo::kv_events::zmq_functions().name arguments; }
OCTAVO_ZMQ_FUNCTIONS(OCTAVO_ZMQ_FORWARD)
#undef OCTAVO_ZMQ_FORWARD
}
#undef OCTAVO_ZMQ_FUNCTIONS
