// GET / and /page/...: the playground. Its embedded files are static and need no key; the requests
// they make do.
#include "api/api_error.h"
#include "server/endpoints/endpoints.h"
#include "server/http/error_response.h"
#include "server/page_files.h"

namespace octavo::server {

HttpResponse page_file(const HttpRequest& request) {
  const std::string_view name =
      request.path == "/"
          ? std::string_view("index.html")
          : std::string_view(request.path).substr(std::string_view("/page/").size());
  for (const PageFile& file : page_files()) {
    if (file.name != name) continue;
    return {
        .content_type = std::string(file.content_type),
        .headers =
            {{"Content-Security-Policy",
              "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
              "form-action 'self'; object-src 'none'"},
             {"Referrer-Policy", "no-referrer"},
             {"Cache-Control", "no-cache"}},
        .body = std::string(file.content)};
  }
  return error_response(404, "file not found");
}

std::vector<Endpoint> page_endpoints() {
  std::vector<Endpoint> endpoints;
  for (const char* path : {"/", "/page/{file}"}) {
    endpoints.push_back(simple_endpoint(
        "GET", path, [](ServerContext&, const HttpRequest& request) { return page_file(request); },
        nullptr));
    endpoints.back().needs_key = false;
  }
  return endpoints;
}

}  // namespace octavo::server
