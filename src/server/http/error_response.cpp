#include "server/http/error_response.h"

namespace octavo::server {

HttpResponse error_response(int status, std::string_view message, std::string_view param) {
  HttpResponse response{
      .status = status,
      .error = api::ErrorNote{.message = std::string(message), .param = std::string(param)}};
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse error_response(const RequestError& error) {
  return error_response(error.status(), error.what(), error.param());
}

}  // namespace octavo::server
