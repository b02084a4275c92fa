// ollama_format.h - output in the format of /api/chat and /api/generate: lines of JSON.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields/json_text.h"
#include "api/ollama/ollama_request.h"
#include "api/output_format.h"

namespace octavo::api {

enum class OllamaKind : uint8_t {
  kChat,      // {"message":{"role","content","thinking","tool_calls"}}
  kGenerate,  // {"response","thinking","tool_calls"}
};

class OllamaFormat : public OutputFormat {
 public:
  // `arrival`: when the request arrived. `model` and `job` must outlive this object.
  OllamaFormat(OllamaKind kind, const ServedModel& model, const OllamaJob& job,
               std::chrono::steady_clock::time_point arrival);

  void append_event(std::string& out, const OutputEvent& event, const Usage& usage) override;
  void append_end(std::string& out, const Usage& usage) override;
  void append_error(std::string& out, const RequestError& error) override;
  const char* content_type() const override { return "application/x-ndjson"; }
  // A line without text: the format has no comments.
  void append_keep_alive(std::string& out) const override;
  std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) override;

  // The answer to a request without text.
  std::string loaded() const;

 private:
  // What one line, or a whole answer, carries.
  struct Piece {
    std::string content = {};
    std::string thinking = {};
    std::string calls = {};  // JSON objects, separated by commas
  };
  // A tool call while its arguments arrive.
  struct Call {
    int index = -1;  // none
    std::string id = {};
    std::string name = {};
    std::string arguments = {};
  };

  std::vector<Piece> pieces_of(const OutputEvent& event);
  void take_part(std::vector<Piece>& pieces, const OutputPart& part);
  void end_call(std::vector<Piece>& pieces);
  // {"model","created_at", and the text; without the closing brace.
  std::string begin_line(const Piece& piece) const;
  // Members that wait for a line: log probabilities, and with `resumable` token ids and `resume`.
  void append_waiting(std::string& out, const Usage& usage);
  std::string metrics(const Usage& usage) const;

  OllamaKind kind_;
  const ServedModel& model_;
  const OllamaJob& job_;
  std::chrono::steady_clock::time_point arrival_;
  std::string head_;  // {"model":NAME,"created_at":"
  Call call_;
  std::vector<TokenLogprobs> logprobs_;
  std::vector<TokenId> tokens_;
  bool says_resume_;  // the next line must carry `resume`
  const char* done_reason_ = "stop";
};

// For OpenAPI.
Json ollama_answer_schema(OllamaKind kind);
// An operation whose response is JSON, or lines of JSON if the body sets stream.
Json ollama_operation(const char* summary, Json body_schema, Json answer_schema);

}  // namespace octavo::api
