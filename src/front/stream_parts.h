// stream_parts.h - divides a child's stream into what the client gets and the notes of the child
// (server/front_notes.h), which tell how to continue the stream on another child. No MLX.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::front {

// The state of an answer after the parts that were taken.
class AnswerSoFar {
 public:
  // A line without its end. Throws RequestError(500) if it is not a note.
  void read_note(std::string_view line);

  bool can_resume() const { return !resume_.empty(); }
  // Members to insert into the request's body: "resume":{...},"resume_token_ids":[[...]]
  std::string members() const;

 private:
  std::string resume_ = {};  // JSON
  std::vector<std::vector<int32_t>> tokens_ = {};
};

// Takes the bytes of one stream, in any division.
class StreamParts {
 public:
  explicit StreamParts(AnswerSoFar& answer) : answer_(answer) {}

  void put(std::string_view bytes);
  // The client's bytes of all whole parts since the last call.
  std::string take();
  // At the end of the stream: the last part has no note.
  std::string take_last();

 private:
  void end_line(std::string_view line);

  AnswerSoFar& answer_;
  std::string line_ = {};    // its beginning
  std::string part_ = {};    // lines of the part that has not ended
  std::string whole_ = {};   // whole parts
  bool after_note_ = false;  // an empty line belongs to the comment before it
};

}  // namespace octavo::front
