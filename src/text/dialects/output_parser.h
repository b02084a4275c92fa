// output_parser.h - splits a model's output into content, reasoning and tool calls, incrementally.
// One per answer, one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/dialects/call_reader.h"
#include "text/dialects/dialect.h"
#include "text/output_part.h"

namespace octavo {

struct OutputParserOptions {
  Dialect dialect = {};
  std::vector<Tool> tools = {};      // empty: calls are content
  bool starts_in_reasoning = false;  // the prompt ends with the opening marker
  int max_calls = 0;                 // the answer ends after this many calls; 0: unlimited
};

// Reads byte by byte, so how the text is split into pushes affects only when parts are returned.
// - Whitespace next to a marker belongs to the marker; other text is passed on byte for byte.
// - A possible prefix of a marker is held back until it is complete or ruled out.
// - Text that looked like a call but is not one becomes content, including its markers, as soon as
//   that is known. Once a call's name has been returned, all text up to the call's end is its
//   arguments, even if it is not valid JSON or the answer is truncated.
class OutputParser : private CallSink {
 public:
  // `options` must outlive the parser.
  explicit OutputParser(const OutputParserOptions& options);

  std::vector<OutputPart> push(std::string_view text);
  // Ends the answer and returns the parts held back.
  std::vector<OutputPart> finish();
  // The limit max_calls has been reached, or finish() was called.
  bool ended() const { return state_ == State::kEnded; }
  int calls() const { return calls_; }
  // Whether the next text is reasoning, unless a marker follows.
  bool reasoning() const { return reasoning_; }

 private:
  enum class State : uint8_t {
    kText,
    kSection,    // after the marker that opens all calls
    kCallStart,  // after a marker that opens a call or a list of calls
    kCall,
    kListGap,  // after a call in a list
    kSpill,    // broken arguments, up to a closing marker
    kHeader,
    kEnded,
  };
  enum class MarkerKind : uint8_t {
    kReasoningOpen,
    kReasoningClose,
    kSectionOpen,
    kCallOpen,
    kCloser,
    kHeaderOpen,
    kMessageEnd,
  };
  struct Marker {
    std::string_view text;
    MarkerKind kind;
  };

  void begin_call(const std::string& name) override;
  void add_arguments(std::string_view text) override;
  void add(PartKind kind, std::string_view text);

  void run();
  void take(char c);
  void take_text(char c);
  void take_plain(char c);
  void take_in_section(char c);
  void take_call_start(char c);
  void take_in_call(char c);
  void take_in_list_gap(char c);
  void take_spill(char c);
  void take_in_header(char c);
  void on_marker(const Marker& marker);
  void open_call(State state);
  void header_read();
  void end_call();
  void give_up();
  bool is_active(const Marker& marker) const;
  // The active marker equal to `held_`, or null; whether an active marker starts with `held_`.
  const Marker* complete() const;
  bool may_become_marker() const;

  const OutputParserOptions& options_;
  std::vector<Marker> markers_;
  std::vector<OutputPart> out_;
  std::string input_;  // unread from at_ on
  size_t at_ = 0;

  State state_ = State::kText;
  bool reasoning_ = false;       // the current text is reasoning
  bool reasoned_ = false;        // there has been reasoning
  bool said_something_ = false;  // text has been returned since the last marker
  bool after_call_ = false;      // only whitespace since a call
  bool in_list_ = false;
  bool drop_space_ = false;  // after a marker
  std::string space_;        // whitespace held back: the next byte may begin a marker
  std::string held_;         // a possible prefix of a marker
  std::string raw_;          // text since the marker that opened the current construct
  size_t raw_marker_ = 0;    // bytes of raw_ that are that marker and the whitespace before it
  std::string gap_;          // read in kSection
  std::optional<CallReader> reader_;
  int calls_ = 0;
};

}  // namespace octavo
