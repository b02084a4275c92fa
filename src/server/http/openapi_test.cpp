#include "server/http/openapi.h"

#include <gtest/gtest.h>

#include <set>

#include "api/anthropic/messages_request.h"
#include "api/openai/chat_request.h"
#include "api/openai/completion_request.h"
#include "api/openai/embedding_request.h"
#include "api/openai/responses_request.h"
#include "api/openai/score_request.h"
#include "server/endpoints/endpoints.h"

namespace octavo::server {

using namespace api;

namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(c));
  return text;
}

template <typename Target>
void expect_fields(const Json& document, const char* path, const FieldTable<Target>& table) {
  const Json& schema =
      document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
  std::set<std::string> names;
  for (const auto& field : table) {
    EXPECT_TRUE(names.insert(field.name).second)
        << field.name << " stands twice in the table of " << path;
    EXPECT_EQ(schema["properties"].contains(field.name), field.use != FieldUse::kRefused)
        << field.name;
  }
}

TEST(Openapi, HasEveryEndpointWithADescription) {
  const auto endpoints = all_endpoints();
  const Json document = openapi_document(endpoints);
  size_t described = 0;
  for (const Endpoint& endpoint : endpoints) {
    const auto method = lower(endpoint.method);
    const bool there = document["paths"].contains(endpoint.path) &&
                       document["paths"][endpoint.path].contains(method);
    EXPECT_EQ(there, !endpoint.doc.is_null()) << endpoint.method << " " << endpoint.path;
    if (!there) continue;
    ++described;
    const Json& operation = document["paths"][endpoint.path][method];
    EXPECT_EQ(operation.contains("security"), endpoint.needs_key) << endpoint.path;
    EXPECT_TRUE(operation["responses"].contains("200")) << endpoint.path;
  }
  EXPECT_GE(described, 15u);
}

TEST(Openapi, HasAcceptedFieldsButNotRefusedOnes) {
  const Json document = openapi_document(all_endpoints());
  expect_fields(document, "/v1/completions", completion_fields());
  expect_fields(document, "/v1/chat/completions", chat_fields());
  expect_fields(document, "/v1/messages", messages_fields());
  expect_fields(document, "/v1/messages/count_tokens", messages_fields());
  expect_fields(document, "/v1/responses", responses_fields());
  expect_fields(document, "/v1/embeddings", embedding_fields());
  for (const char* path : {"/v1/rerank", "/rerank", "/v2/rerank"})
    expect_fields(document, path, rerank_fields());
  for (const char* path : {"/v1/score", "/score"}) expect_fields(document, path, score_fields());
}

}  // namespace
}  // namespace octavo::server
