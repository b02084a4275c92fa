// scripted_child.h - a child for tests: a thread that answers requests on a Unix socket with bytes
// that a test chooses, and may end in the middle of them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"

namespace octavo::front {

// A socket that is closed at the end.
class OwnedSocket {
 public:
  explicit OwnedSocket(int handle) : handle_(handle) {}
  ~OwnedSocket() {
    if (handle_ >= 0) ::close(handle_);
  }
  OwnedSocket(const OwnedSocket&) = delete;
  OwnedSocket& operator=(const OwnedSocket&) = delete;
  int handle() const { return handle_; }

 private:
  int handle_;
};

inline sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

// Reads one request; empty at the end of the connection.
inline std::string read_request(int socket) {
  std::string text;
  size_t whole = std::string::npos;
  while (text.size() < whole) {
    char bytes[4096];
    const auto got = ::recv(socket, bytes, sizeof(bytes), 0);
    if (got <= 0) return {};
    text.append(bytes, static_cast<size_t>(got));
    const size_t head = text.find("\r\n\r\n");
    if (head == std::string::npos) continue;
    const size_t length = text.find("Content-Length: ");
    whole = head + 4;
    if (length < head) whole += std::stoul(text.substr(length + 16));
  }
  return text;
}

inline std::string body_of(const std::string& message) {
  const size_t head = message.find("\r\n\r\n");
  return head == std::string::npos ? "" : message.substr(head + 4);
}

class ScriptedChild {
 public:
  // What to send for a request, and after how many bytes the child ends.
  struct Answer {
    std::string bytes = {};
    size_t ends_after = std::string::npos;
    size_t piece = std::string::npos;    // bytes per write
    std::chrono::milliseconds pause{0};  // after each write
  };
  using Script = std::function<Answer(const std::string& request)>;

  ScriptedChild(std::string path, Script script)
      : path_(std::move(path)), script_(std::move(script)) {
    OCTAVO_CHECK(::pipe(stop_) == 0);
    start();
    thread_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedChild() {
    OCTAVO_CHECK(::write(stop_[1], "x", 1) == 1);
    thread_.join();
    for (std::thread& each : serving_) each.join();
    ::close(listener_);
    ::close(stop_[0]);
    ::close(stop_[1]);
    ::unlink(path_.c_str());
  }
  ScriptedChild(const ScriptedChild&) = delete;
  ScriptedChild& operator=(const ScriptedChild&) = delete;

  uint64_t generation() const { return generation_; }
  int connections() const { return connections_; }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  size_t sent() const { return sent_; }
  bool saw_client_leave() const { return left_; }

 private:
  void start() {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = unix_address(path_);
    OCTAVO_CHECK(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
                 0);
    OCTAVO_CHECK(::listen(listener_, 64) == 0);
  }
  bool readable(int socket) {
    pollfd both[] = {{.fd = socket, .events = POLLIN, .revents = 0},
                     {.fd = stop_[0], .events = POLLIN, .revents = 0}};
    return ::poll(both, 2, -1) > 0 && (both[1].revents & POLLIN) == 0;
  }
  void accept_all() {
    while (readable(listener_)) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      ++connections_;
      serving_.emplace_back([this, socket] { serve(socket); });
    }
  }
  void serve(int handle) {
    const OwnedSocket socket(handle);
    while (readable(handle)) {
      const std::string request = read_request(handle);
      if (request.empty()) return;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      const Answer answer = script_(request);
      const size_t whole = std::min(answer.ends_after, answer.bytes.size());
      if (!send_all(handle, std::string_view(answer.bytes).substr(0, whole), answer)) {
        left_ = true;
        return;
      }
      if (answer.ends_after == std::string::npos) continue;
      ++generation_;
      return;
    }
  }
  bool send_all(int handle, std::string_view bytes, const Answer& answer) {
    while (!bytes.empty()) {
      pollfd both[] = {{.fd = handle, .events = POLLOUT, .revents = 0},
                       {.fd = stop_[0], .events = POLLIN, .revents = 0}};
      ::poll(both, 2, -1);
      if (both[1].revents != 0) return false;
      const auto sent = ::send(handle, bytes.data(), std::min(answer.piece, bytes.size()),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) continue;
      if (sent < 0) return false;
      sent_ += static_cast<size_t>(sent);
      bytes.remove_prefix(static_cast<size_t>(sent));
      if (answer.pause.count() > 0) std::this_thread::sleep_for(answer.pause);
    }
    return true;
  }

  std::string path_;
  Script script_;
  int listener_ = -1;
  int stop_[2] = {-1, -1};
  std::atomic<uint64_t> generation_ = 1;
  std::atomic<int> connections_ = 0;
  std::atomic<size_t> sent_ = 0;
  std::atomic<bool> left_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::vector<std::thread> serving_;
  std::thread thread_;
};

}  // namespace octavo::front
