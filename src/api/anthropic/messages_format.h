// messages_format.h - answers as /v1/messages writes them: a message of content blocks.
#pragma once

#include <string>

#include "api/answer_format.h"
#include "api/fields/json_text.h"

namespace octavo::server {

class MessagesFormat : public AnswerFormat {
 public:
  MessagesFormat(const ServedModel& model, const GenerationJob& job);

  void append_event(std::string& out, const AnswerEvent& event, const Usage& usage) override;
  void append_end(std::string& out, const Usage& usage) override;
  void append_error(std::string& out, const RequestError& error) override;
  std::string whole(const std::vector<AnswerEvent>& answers, const Usage& usage) override;

 private:
  enum class Block : uint8_t { kNone, kText, kThinking, kToolUse };

  void begin(std::string& out, const Usage& usage);
  void append_part(std::string& out, const OutputPart& part);
  void open(std::string& out, Block block, const OutputPart& part);
  void append_delta(std::string& out, std::string_view kind, std::string_view field,
                    std::string_view text) const;
  void close(std::string& out);

  Json head_;  // the message without content
  bool begun_ = false;
  Block open_ = Block::kNone;
  int index_ = -1;  // of the block that is open, or was
  bool pinged_ = false;
  bool called_ = false;  // a tool
  Json delta_;           // how the answer ended
};

// Of OpenAPI.
Json message_schema();

}  // namespace octavo::server
