// output_parser.h - what a model writes, told apart as it comes: content, reasoning, tool calls.
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
  std::vector<Tool> tools = {};      // none: calls are content
  bool starts_in_reasoning = false;  // the prompt ends with the opening marker
  int max_calls = 0;                 // the answer ends with so many; 0: any number
};

// Reads byte by byte, so how the text was cut into pushes changes nothing but when parts come.
// - Space next to a marker belongs to the marker; other text is passed on byte for byte.
// - A beginning of a marker is held back until it is one or is none.
// - What looked like a call and is none comes out as content, markers included, as soon as that is
//   known. Once a call's name has gone out, all the text up to the call's end is its arguments,
//   also when that is no JSON, and also when the answer breaks off.
class OutputParser : private CallSink {
 public:
  // `options` outlive it.
  explicit OutputParser(const OutputParserOptions& options);

  std::vector<OutputPart> push(std::string_view text);
  // The answer ended: what was held back.
  std::vector<OutputPart> finish();
  // All calls that may be made were made.
  bool ended() const { return state_ == State::kEnded; }
  int calls() const { return calls_; }
  // What comes next is reasoning, unless a marker says otherwise.
  bool reasoning() const { return reasoning_; }

 private:
  enum class State : uint8_t {
    kText,
    kSection,    // behind the marker that opens all calls
    kCallStart,  // behind one that opens a call, where it may be a list
    kCall,
    kListGap,  // behind a call in a list
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
  // A marker that is `held_`; whether one begins with it.
  const Marker* complete() const;
  bool may_become_marker() const;

  const OutputParserOptions& options_;
  std::vector<Marker> markers_;
  std::vector<OutputPart> out_;
  std::string input_;  // not read yet, from at_ on
  size_t at_ = 0;

  State state_ = State::kText;
  bool reasoning_ = false;       // text is reasoning
  bool reasoned_ = false;        // there was reasoning
  bool said_something_ = false;  // in this stretch of text
  bool behind_call_ = false;     // nothing but space since a call
  bool in_list_ = false;
  bool drop_space_ = false;  // behind a marker
  std::string space_;        // held back: the next byte may begin a marker
  std::string held_;         // a marker's beginning
  std::string raw_;          // since the marker that opened what is being read
  size_t raw_marker_ = 0;    // bytes of raw_ that are that marker and the space before it
  std::string gap_;          // read in kSection
  std::optional<CallReader> reader_;
  int calls_ = 0;
};

}  // namespace octavo
