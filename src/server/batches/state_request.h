// state_request.h - what the endpoints of files and batches share. I/O thread only.
#pragma once

#include <string>

#include "server/http/endpoint.h"
#include "server/http_context.h"
#include "server/persistent_state.h"
#include "state/file_table.h"

namespace octavo::server {

// Throws RequestError(501) naming the flag if there is no folder for state.
PersistentState& state_of(HttpContext& context);

// As the database has it.
std::string state_owner(const HttpContext& context, const HttpRequest& request);

// The limits of files and batches are divided by this for each owner: 2 if there are several API keys,
// so that no key can take all there is.
int state_parts(const HttpContext& context);

// `limit`, `after` and `order` of a list's query. Throws RequestError(400).
state::Page page_of(const HttpRequest& request, int default_limit, int most);

// A web page may send a form or an empty body to another site without a CORS preflight. Throws
// RequestError(403) if the header Origin names another site that is not allowed.
void refuse_other_sites(const HttpContext& context, const HttpRequest& request);

// The text between `prefix` and `suffix` of the path.
std::string id_in_path(const HttpRequest& request, std::string_view prefix,
                       std::string_view suffix = {});

// Adds the parameter in the path, or those of a list's query, to an OpenAPI operation.
api::Json with_path_id(api::Json doc, const char* name);
api::Json with_page(api::Json doc);

}  // namespace octavo::server
