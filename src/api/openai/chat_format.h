// chat_format.h - output in the format of /v1/chat/completions.
#pragma once

#include <string_view>
#include <vector>

#include "api/openai/envelope.h"
#include "api/output_format.h"

namespace octavo::api {

class ChatFormat : public OutputFormat {
 public:
  ChatFormat(const ServedModel& model, const GenerationJob& job);

  void append_event(std::string& out, const OutputEvent& event, const Usage& usage) override;
  void append_end(std::string& out, const Usage& usage) override;
  void append_error(std::string& out, const RequestError& error) override;
  std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) override;

 private:
  void append_choice(std::string& out, const OutputEvent& event, std::string_view delta,
                     bool last) const;
  Json finish_of(const OutputEvent& event, bool called) const;
  Json choice_of(const OutputEvent& answer) const;

  const ServedModel& model_;
  const GenerationJob& job_;
  OpenAiEnvelope envelope_;
  std::vector<bool> begun_;   // choices whose role has been sent
  std::vector<bool> called_;  // choices that called a tool
};

}  // namespace octavo::api
