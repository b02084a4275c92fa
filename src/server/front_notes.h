// front_notes.h - what a child process and its front process tell each other besides requests and
// answers: headers, and comment lines in streams. The front removes both. No MLX.
//
// A stream consists of parts. Each part but the last ends with a note that names its tokens, so that
// after the death of the child another one can continue with the next part.
#pragma once

#include <string>
#include <string_view>

#include "api/output_events.h"
#include "server/tenant.h"

namespace octavo::server {

// In requests: the tenant, as to_text() writes it. Its owner is the one that is stored: a child that
// starts again has no API keys to find the owners of its state with.
inline constexpr const char* kTenantHeader = "x-octavo-tenant";
// In requests with a tenant: the name of the API key; without it, the key has none.
inline constexpr const char* kKeyNameHeader = "x-octavo-key-name";
// In requests: a line of a batch.
inline constexpr const char* kBackgroundHeader = "x-octavo-background";
// In responses that are generated: the id of the answer, without a prefix.
inline constexpr const char* kAnswerHeader = "x-octavo-answer";

// Notes are lines that begin with this, followed by an empty line.
inline constexpr std::string_view kStartNote = ": octavo start ";   // JSON
inline constexpr std::string_view kTokenNote = ": octavo tokens ";  // CHOICE ID ID...

// The fields `resume` and `resume_token_ids` of a request that continues the answer: with the tokens
// it began with, not yet its own. `usage`: at its first event.
void append_start_note(std::string& out, const api::GenerationJob& job,
                       const api::ServedModel& model, const api::Usage& usage);
void append_token_note(std::string& out, const api::OutputEvent& event);

// Two hexadecimal digests; empty for no tenant.
std::string to_text(const Tenant& tenant);
// Throws RequestError(400) for text that to_text() does not write.
Tenant tenant_from(std::string_view text);

}  // namespace octavo::server
