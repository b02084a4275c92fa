// responses_format.h - output in the format of /v1/responses: a list of items.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "api/openai/responses_request.h"
#include "api/output_format.h"
#include "api/resume.h"

namespace octavo::api {

class ResponsesFormat : public OutputFormat {
 public:
  // `keep` receives the response before the client does, who may refer to it at once.
  // Returns whether the response is stored now; one that is too large is not.
  using Keep = std::function<bool(const Json& response)>;
  ResponsesFormat(const ServedModel& model, const ResponsesJob& job, Keep keep);

  void append_event(std::string& out, const OutputEvent& event, const Usage& usage) override;
  void append_end(std::string& out, const Usage& usage) override;
  void append_error(std::string& out, const RequestError& error) override;
  std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) override;

 private:
  enum class Item : uint8_t { kMessage, kReasoning, kCall };

  void append(std::string& out, std::string_view type, Json fields);
  void append_delta(std::string& out, std::string_view type, std::string_view text);
  void append_state(std::string& out, std::string_view type);
  void begin(std::string& out, const Usage& usage);
  void append_part(std::string& out, const OutputPart& part);
  void open(std::string& out, Item item, const OutputPart& part);
  // Ends the open item, if any.
  void close(std::string& out, const char* status);
  Json content_part() const;
  void finish(const OutputEvent& event);
  void complete(const Usage& usage);

  const ServedModel& model_;
  const ResponsesJob& job_;
  Keep keep_;
  Json response_;
  int sequence_ = 0;
  bool begun_ = false;
  std::optional<Item> open_ = {};
  Json item_ = {};         // the open item
  std::string item_text_;  // its text or arguments so far
  EventTokens tokens_;
};

// For OpenAPI.
Json response_schema();

}  // namespace octavo::api
