// messages_format.h - output in the format of /v1/messages: a message of content blocks.
#pragma once

#include <string>

#include "api/fields/json_text.h"
#include "api/output_format.h"
#include "api/resume.h"

namespace octavo::api {

class MessagesFormat : public OutputFormat {
 public:
  // `model` and `job` must outlive this object.
  MessagesFormat(const ServedModel& model, const GenerationJob& job);

  void append_event(std::string& out, const OutputEvent& event, const Usage& usage) override;
  void append_end(std::string& out, const Usage& usage) override;
  void append_error(std::string& out, const RequestError& error) override;
  std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) override;

 private:
  enum class Block : uint8_t { kNone, kText, kThinking, kToolUse };

  void begin(std::string& out, const Usage& usage);
  void append_part(std::string& out, const OutputPart& part);
  void open(std::string& out, Block block, const OutputPart& part);
  void append_delta(std::string& out, std::string_view kind, std::string_view field,
                    std::string_view text) const;
  void close(std::string& out);

  const ServedModel& model_;
  const GenerationJob& job_;
  Json head_;  // the message without content
  bool begun_ = false;
  Block open_ = Block::kNone;
  int index_ = -1;  // of the open or last block
  bool pinged_ = false;
  bool called_ = false;  // a tool was called
  Json delta_;           // the stop reason
  EventTokens tokens_;
};

// For OpenAPI.
Json message_schema();

}  // namespace octavo::api
