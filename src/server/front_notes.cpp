#include "server/front_notes.h"

#include <fmt/format.h>

#include "api/resume.h"
#include "base/error.h"

namespace octavo::server {
namespace {

std::string hex_of(const auto& bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  throw RequestError(400, "", "the tenant header is not hexadecimal");
}

template <typename Bytes>
void read_hex(std::string_view text, Bytes& bytes) {
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<typename Bytes::value_type>(digit_of(text[2 * i]) * 16 +
                                                       digit_of(text[2 * i + 1]));
}

}  // namespace

void append_start_note(std::string& out, const api::GenerationJob& job,
                       const api::ServedModel& model, const api::Usage& usage) {
  api::Json tokens = api::Json::array();
  for (size_t i = 0; i < job.prompts.size() * static_cast<size_t>(job.engine.n); ++i)
    tokens.push_back(job.resumed.empty() ? api::Json::array()
                                         : api::Json(job.resumed[i].output.tokens));
  out += kStartNote;
  out += api::dump(
      {{"resume", api::resume_json(job, model, usage)}, {"resume_token_ids", std::move(tokens)}});
  out += "\n\n";
}

void append_token_note(std::string& out, const api::OutputEvent& event) {
  out += kTokenNote;
  out += std::to_string(event.index);
  for (const TokenId token : event.tokens) {
    out += ' ';
    out += std::to_string(token);
  }
  out += "\n\n";
}

std::string to_text(const Tenant& tenant) {
  return tenant.owner.empty() ? "" : hex_of(tenant.owner) + hex_of(tenant.cache_namespace);
}

Tenant tenant_from(std::string_view text) {
  Tenant tenant;
  if (text.empty()) return tenant;
  const size_t digits = 2 * tenant.cache_namespace.size();
  if (text.size() != 2 * digits)
    throw RequestError(400, "", "the tenant header has a wrong length");
  tenant.owner.resize(tenant.cache_namespace.size());
  read_hex(text.substr(0, digits), tenant.owner);
  read_hex(text.substr(digits), tenant.cache_namespace);
  return tenant;
}

}  // namespace octavo::server
