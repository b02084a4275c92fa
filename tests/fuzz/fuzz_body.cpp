// Any body of a request becomes a job, or is refused with a RequestError that is not a bug of ours.
// The first byte of the input chooses the route.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/anthropic/messages_request.h"
#include "api/ollama/ollama_embed.h"
#include "api/ollama/ollama_request.h"
#include "api/openai/chat_request.h"
#include "api/openai/completion_request.h"
#include "api/openai/embedding_request.h"
#include "api/openai/responses_request.h"
#include "api/openai/score_request.h"
#include "api/openai/token_requests.h"
#include "api/render_format.h"
#include "api/testing/image_model.h"
#include "api/testing/test_model.h"
#include "base/error.h"
#include "front/routing_fields.h"
#include "fuzz/fuzz_input.h"
#include "server/batches/batch_request.h"

namespace octavo::api {
namespace {

// One of each kind, and a stored response.
struct Models {
  TestModel chat = {};
  ImageModel images = ImageModel(ImageFamily::kQwen);
  TestModel embedding = {};
  TestModel scoring = {};
  ResponseStore responses = ResponseStore(ResponseStoreLimits{});
  ResponseShelf shelf = {.store = responses};

  Models() {
    chat->max_model_len = 2048;
    chat->dialect = choose_chat_dialect(
        chat->text, {258}, {.tool_call_parser = "hermes", .reasoning_parser = "qwen3"});
    embedding->pooling = PoolingPlan{};
    scoring->pooling = PoolingPlan{.labels = 1};
    scoring->score_head = std::make_shared<const ScoreHead>(
        ScoreHead::Layers{.out = {.rows = 1, .columns = 2, .weight = {1, -1}}});
    for (ServedModel* pooling : {&*embedding, &*scoring}) pooling->hidden = 2;
    responses.put("", "resp_1",
                  {.object = R"({"id": "resp_1", "object": "response", "output": []})",
                   .input = R"([{"type": "message", "role": "user", "content": "a"}])"});
  }
};

// What a router reads of a body that is a whole object is what the server reads.
void route(const Json& body, std::string_view text) {
  const auto model = body.find("model");
  if (model == body.end() || !model->is_string() || body.contains("keep_alive")) return;
  OCTAVO_CHECK(front::routing_fields(text).model == model->get<std::string>());
}

struct Route {
  const char* path;
  void (*prepare)(const Json& body, Models& models);
};

void render(const GenerationJob& job, const ServedModel& model) {
  for (size_t i = 0; i < job.prompts.size(); ++i) rendered_prompt(job, i, "id", model);
}

constexpr auto kRoutes = std::to_array<Route>({
    {"/v1/chat/completions",
     [](const Json& body, Models& models) {
       render(prepare_chat(body, *models.chat), *models.chat);
     }},
    {"images", [](const Json& body, Models& models) { prepare_chat(body, *models.images); }},
    {"/v1/completions",
     [](const Json& body, Models& models) {
       render(prepare_completion(body, *models.chat), *models.chat);
     }},
    {"/v1/messages",
     [](const Json& body, Models& models) { prepare_messages(body, *models.chat); }},
    {"/v1/messages/count_tokens",
     [](const Json& body, Models& models) { count_message_tokens(body, *models.images); }},
    {"/v1/responses",
     [](const Json& body, Models& models) { prepare_responses(body, *models.chat, models.shelf); }},
    {"/v1/responses/input_tokens",
     [](const Json& body, Models& models) {
       count_response_tokens(body, *models.images, models.shelf);
     }},
    {"/v1/embeddings",
     [](const Json& body, Models& models) { prepare_embedding(body, *models.embedding); }},
    {"/v1/rerank", [](const Json& body, Models& models) { prepare_rerank(body, *models.scoring); }},
    {"/v1/score", [](const Json& body, Models& models) { prepare_score(body, *models.scoring); }},
    {"/tokenize", [](const Json& body, Models& models) { tokenize_text(body, *models.chat); }},
    {"/detokenize",
     [](const Json& body, Models& models) { detokenize_tokens(body, *models.chat); }},
    {"/api/chat",
     [](const Json& body, Models& models) { prepare_ollama_chat(body, *models.chat); }},
    {"/api/generate",
     [](const Json& body, Models& models) { prepare_ollama_generate(body, *models.images); }},
    {"/api/embed",
     [](const Json& body, Models& models) { prepare_ollama_embed(body, *models.embedding); }},
    {"/api/embeddings",
     [](const Json& body, Models& models) { prepare_ollama_embeddings(body, *models.embedding); }},
    {"/v1/batches", [](const Json& body, Models&) { server::read_batch_request(body); }},
});

}  // namespace
}  // namespace octavo::api

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octavo::api;
  static Models models;
  octavo::FuzzInput input(data, size);
  const Route& route_of_input = input.any(kRoutes);
  try {
    const Json body = parse_object(input.rest());
    route(body, input.rest());
    route_of_input.prepare(body, models);
  } catch (const octavo::RequestError& error) {
    OCTAVO_CHECK(error.status() != 500);
  }
  return 0;
}
