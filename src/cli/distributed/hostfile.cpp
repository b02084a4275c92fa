#include "cli/distributed/hostfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace octavo {
namespace {

using HostJson = nlohmann::json;

constexpr size_t kMostHosts = 64;
constexpr size_t kMostBytes = 1u << 20;

constexpr std::string_view kForm =
    R"(write {"hosts": [{"ssh": "NAME", "ips": ["ADDRESS"]}, ...]} or only the list)";

class HostfileReader {
 public:
  explicit HostfileReader(const std::string& name) : name_(name) {}

  Hostfile read(std::string_view text) const {
    const HostJson json = HostJson::parse(text, nullptr, false);
    if (json.is_discarded()) fail("", fmt::format("is not valid JSON; {}", kForm));
    Hostfile file;
    if (json.is_object() && json.contains("envs")) file.environment = environment(json["envs"]);
    const HostJson* hosts = &json;
    if (json.is_object()) {
      if (!json.contains("hosts")) fail("", fmt::format("has no key \"hosts\"; {}", kForm));
      hosts = &json["hosts"];
    }
    if (!hosts->is_array()) fail("", fmt::format("has no list of hosts; {}", kForm));
    if (hosts->size() > kMostHosts)
      fail("", fmt::format("lists {} hosts; the limit is {}", hosts->size(), kMostHosts));
    for (const HostJson& each : *hosts) file.hosts.push_back(host(each, file.hosts.size()));
    if (file.hosts.empty()) fail("", "lists no hosts");
    return file;
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw SetupError(fmt::format("{}: {}{}{}", name_, where, where.empty() ? "" : " ", what));
  }

  HostEntry host(const HostJson& json, size_t rank) const {
    const std::string where = fmt::format("host {}", rank);
    if (!json.is_object()) fail(where, fmt::format("is not an object; {}", kForm));
    HostEntry entry;
    if (!json.contains("ssh") || !json["ssh"].is_string())
      fail(where, "has no text \"ssh\", the name that ssh connects to");
    entry.ssh = json["ssh"].get<std::string>();
    check_ssh(entry.ssh, where);
    if (!json.contains("ips")) return entry;
    if (!json["ips"].is_array()) fail(where, "has \"ips\" that are not a list of addresses");
    for (const HostJson& ip : json["ips"]) {
      if (!ip.is_string()) fail(where, "has \"ips\" that are not a list of addresses");
      entry.ips.push_back(ip.get<std::string>());
      boost::system::error_code error;
      boost::asio::ip::make_address(entry.ips.back(), error);
      if (error) {
        fail(where, fmt::format("has the address {:?}, which is not numeric; write one such as "
                                "10.0.0.2",
                                entry.ips.back()));
      }
    }
    return entry;
  }

  // A name that begins with - would be an option of ssh.
  void check_ssh(const std::string& ssh, const std::string& where) const {
    const bool plain = std::ranges::all_of(ssh, [](unsigned char c) { return c > ' ' && c < 127; });
    if (ssh.empty() || ssh.front() == '-' || !plain)
      fail(where, fmt::format("has the ssh name {:?}, which is not a host name", ssh));
  }

  std::vector<std::pair<std::string, std::string>> environment(const HostJson& json) const {
    std::vector<std::pair<std::string, std::string>> variables;
    if (!json.is_array()) fail("", "has \"envs\" that are not a list of NAME=VALUE");
    for (const HostJson& each : json) {
      const std::string text = each.is_string() ? each.get<std::string>() : "";
      const size_t equals = text.find('=');
      const std::string key = text.substr(0, equals);
      if (equals == std::string::npos || !is_variable_name(key) ||
          text.find_first_of(std::string_view("\0\n", 2)) != std::string::npos)
        fail("", fmt::format("has {} in \"envs\"; write NAME=VALUE", each.dump()));
      variables.emplace_back(key, text.substr(equals + 1));
    }
    return variables;
  }

  static bool is_variable_name(std::string_view name) {
    constexpr std::string_view kLetters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return !name.empty() && name.find_first_not_of(kLetters) == std::string_view::npos &&
           (name.front() < '0' || name.front() > '9');
  }

  const std::string& name_;
};

}  // namespace

bool HostEntry::is_local() const {
  return ssh == "localhost" || ssh == "127.0.0.1" || ssh == "::1";
}

Hostfile parse_hostfile(std::string_view text, const std::string& name) {
  return HostfileReader(name).read(text);
}

Hostfile read_hostfile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  if (file && !std::filesystem::is_directory(path))
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || !file.eof() || file.bad())
    throw SetupError(fmt::format("--hosts {}: cannot be read, or is larger than 1 MiB", path));
  text.resize(static_cast<size_t>(file.gcount()));
  return parse_hostfile(text, path);
}

Hostfile local_hosts(int count) {
  const HostEntry host{.ssh = "localhost", .ips = {"127.0.0.1"}};
  return {.hosts = std::vector<HostEntry>(static_cast<size_t>(count), host)};
}

const std::string& address_of(const Hostfile& file, size_t rank, const std::string& name) {
  const HostEntry& host = file.hosts.at(rank);
  if (host.ips.empty()) {
    throw SetupError(
        fmt::format("{}: host {} ({}) has no \"ips\"; give the address by which the other machines "
                    "reach it",
                    name, rank, host.ssh));
  }
  return host.ips.front();
}

}  // namespace octavo
