// chat_format.h - answers as /v1/chat/completions writes them.
#pragma once

#include <string_view>
#include <vector>

#include "api/answer_format.h"
#include "api/openai/envelope.h"

namespace octavo::server {

class ChatFormat : public AnswerFormat {
 public:
  ChatFormat(const ServedModel& model, const GenerationJob& job);

  void append_event(std::string& out, const AnswerEvent& event, const Usage& usage) override;
  void append_end(std::string& out, const Usage& usage) override;
  void append_error(std::string& out, const RequestError& error) override;
  std::string whole(const std::vector<AnswerEvent>& answers, const Usage& usage) override;

 private:
  void append_choice(std::string& out, const AnswerEvent& event, std::string_view delta,
                     bool last) const;
  Json finish_of(const AnswerEvent& event, bool called) const;
  Json choice_of(const AnswerEvent& answer) const;

  const ServedModel& model_;
  const GenerationJob& job_;
  OpenAiEnvelope envelope_;
  std::vector<bool> begun_;   // choices whose role was sent
  std::vector<bool> called_;  // that called a tool
};

}  // namespace octavo::server
