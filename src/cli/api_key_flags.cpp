#include "cli/api_key_flags.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace octavo {

void ApiKeyFlags::add_to(CLI::App& command, const std::string& group) {
  command
      .add_option(
          "--api-key", keys,
          "API key that clients send as Authorization: Bearer KEY; may be repeated. Other users "
          "can see it in the process list: prefer --api-key-file or the variable OCTAVO_API_KEY")
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option("--api-key-file", file,
                  "File with one API key per line, as KEY or NAME:KEY; names appear in the access "
                  "log and in metrics. SIGHUP reads it again")
      ->group(group);
}

std::vector<server::ApiKey> ApiKeyFlags::read() const {
  std::vector<server::ApiKey> all;
  if (!file.empty()) all = server::read_api_key_file(file);
  const auto add = [&](const std::string& key) {
    const auto is_same = [&](const server::ApiKey& each) { return each.key == key; };
    if (std::ranges::none_of(all, is_same)) all.push_back({.key = key});
  };
  // An empty key would be matched by requests that send none.
  for (const std::string& key : keys) {
    if (server::is_blank_key(key))
      throw SetupError("--api-key: the key is empty; give a key, or leave the flag out");
    add(key);
  }
  if (const char* key = std::getenv("OCTAVO_API_KEY")) {
    if (server::is_blank_key(key))
      throw SetupError("OCTAVO_API_KEY: the key is empty; set a key, or unset the variable");
    add(key);
  }
  return all;
}

}  // namespace octavo
