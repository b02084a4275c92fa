#include "text/dialects/output_parser.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

constexpr size_t kMaxHeader = 512;
// Text without a call's name after this many bytes is not a call.
constexpr size_t kMaxNameless = 16384;
// Closers up to this length count only directly after a call; elsewhere they are ordinary text.
constexpr size_t kShortCloser = 3;

}  // namespace

OutputParser::OutputParser(const OutputParserOptions& options) : options_(options) {
  const Dialect& dialect = options.dialect;
  const auto mark = [&](std::string_view text, MarkerKind kind) {
    if (!text.empty()) markers_.push_back({text, kind});
  };
  if (dialect.channels != nullptr) {
    for (const std::string_view open : dialect.channels->header_opens)
      mark(open, MarkerKind::kHeaderOpen);
    for (const std::string_view end : dialect.channels->ends) mark(end, MarkerKind::kMessageEnd);
    return;
  }
  if (dialect.reasoning != nullptr) {
    mark(dialect.reasoning->open, MarkerKind::kReasoningOpen);
    mark(dialect.reasoning->close, MarkerKind::kReasoningClose);
    reasoning_ = drop_space_ = options.starts_in_reasoning;
  }
  if (dialect.tools == nullptr || options.tools.empty()) return;
  mark(dialect.tools->section_open, MarkerKind::kSectionOpen);
  mark(dialect.tools->call_open, MarkerKind::kCallOpen);
  for (const std::string_view closer : dialect.tools->closers) mark(closer, MarkerKind::kCloser);
}

void OutputParser::add(PartKind kind, std::string_view text) {
  if (out_.empty() || out_.back().kind != kind) out_.push_back({.kind = kind});
  out_.back().text += text;
}

void OutputParser::begin_call(const std::string& name) {
  out_.push_back({.kind = PartKind::kToolCall, .call = calls_++, .name = name});
}

void OutputParser::add_arguments(std::string_view text) {
  add(PartKind::kToolArguments, text);
  out_.back().call = calls_ - 1;
}

bool OutputParser::is_active(const Marker& marker) const {
  switch (marker.kind) {
    case MarkerKind::kReasoningOpen:  // repeated by the model although the prompt has it: dropped
      return !said_something_ && (reasoning_ || !reasoned_);
    case MarkerKind::kReasoningClose:  // without an opening marker: dropped
      return reasoning_ || !reasoned_;
    case MarkerKind::kCloser:
      return !reasoning_ && calls_ > 0 && (after_call_ || marker.text.size() > kShortCloser);
    case MarkerKind::kSectionOpen:
    case MarkerKind::kCallOpen:
      return !reasoning_;
    default:
      return true;
  }
}

const OutputParser::Marker* OutputParser::complete() const {
  for (const Marker& marker : markers_) {
    if (marker.text == held_ && is_active(marker)) return &marker;
  }
  return nullptr;
}

bool OutputParser::may_become_marker() const {
  return std::ranges::any_of(markers_, [&](const Marker& marker) {
    return marker.text.starts_with(held_) && is_active(marker);
  });
}

void OutputParser::take_text(char c) {
  held_ += c;
  while (!held_.empty()) {
    if (const Marker* marker = complete()) return on_marker(*marker);
    if (may_become_marker()) return;
    const char plain = held_.front();
    const std::string rest = held_.substr(1);
    held_.clear();
    take_plain(plain);
    if (state_ != State::kText) {  // a call began
      input_ = rest + input_.substr(at_);
      at_ = 0;
      return;
    }
    held_ = rest;
  }
}

void OutputParser::take_plain(char c) {
  if (is_space(c)) {
    if (!drop_space_) space_ += c;
    return;
  }
  const ToolDialect* tools = options_.dialect.tools;
  const bool first = after_call_ || !said_something_;
  if (c == '{' && first && !reasoning_ && tools != nullptr && tools->bare &&
      !options_.tools.empty()) {
    held_.assign(1, c);
    open_call(State::kCall);
    reader_.emplace(*tools, options_.tools, true);
    reader_->take(c, *this);
    return;
  }
  said_something_ = true;
  after_call_ = drop_space_ = false;
  const PartKind kind = reasoning_ ? PartKind::kReasoning : PartKind::kContent;
  add(kind, std::exchange(space_, {}) + c);
}

// `held_` holds the marker.
void OutputParser::open_call(State state) {
  raw_ = std::exchange(space_, {}) + held_;
  raw_marker_ = raw_.size();
  held_.clear();
  gap_.clear();
  in_list_ = false;
  state_ = state;
}

void OutputParser::on_marker(const Marker& marker) {
  const auto turn_to = [&](bool reasoning) {
    reasoned_ |= reasoning_ || reasoning;
    reasoning_ = reasoning;
    said_something_ = false;
    drop_space_ = true;
    space_.clear();
    held_.clear();
  };
  switch (marker.kind) {
    case MarkerKind::kReasoningOpen:
      return turn_to(true);
    case MarkerKind::kReasoningClose:
      reasoned_ = true;
      return turn_to(false);
    case MarkerKind::kMessageEnd:
      return turn_to(false);
    case MarkerKind::kCloser:
      space_.clear();
      held_.clear();
      drop_space_ = true;
      return;
    case MarkerKind::kHeaderOpen:
      return open_call(State::kHeader);
    case MarkerKind::kSectionOpen:
      return open_call(State::kSection);
    case MarkerKind::kCallOpen:
      open_call(options_.dialect.tools->in_list ? State::kCallStart : State::kCall);
      if (state_ == State::kCall) reader_.emplace(*options_.dialect.tools, options_.tools, false);
  }
}

void OutputParser::take_in_section(char c) {
  raw_ += c;
  if (gap_.empty() && is_space(c)) return;
  gap_ += c;
  const std::string_view open = options_.dialect.tools->call_open;
  if (!open.starts_with(gap_)) return give_up();
  if (gap_ != open) return;
  state_ = State::kCall;
  reader_.emplace(*options_.dialect.tools, options_.tools, false);
}

void OutputParser::take_call_start(char c) {
  if (is_space(c)) {
    raw_ += c;
    return;
  }
  const ToolDialect& tools = *options_.dialect.tools;
  if (c == '[' && !in_list_) {
    raw_ += c;
    in_list_ = true;
    return;
  }
  state_ = State::kCall;
  if (in_list_ || c == '{') {
    reader_ = CallReader::object(tools, options_.tools);
  } else {
    reader_.emplace(tools, options_.tools, false);
  }
  take_in_call(c);
}

void OutputParser::take_in_call(char c) {
  if (!reader_->begun()) raw_ += c;
  const Verdict verdict = reader_->take(c, *this);
  if (verdict == Verdict::kEnd) return end_call();
  if (reader_->begun()) {
    if (verdict == Verdict::kMore) return;
    if (reader_->whole()) {
      end_call();
      return take(c);
    }
    state_ = State::kSpill;
    held_.clear();
    return take_spill(c);
  }
  if (verdict == Verdict::kBroken || raw_.size() > kMaxNameless) give_up();
}

void OutputParser::take_in_list_gap(char c) {
  if (is_space(c)) return;
  if (c == ',') {
    raw_.clear();
    raw_marker_ = 1;  // the next opening bracket
    state_ = State::kCallStart;
    return;
  }
  in_list_ = false;
  state_ = State::kText;
  if (c != ']') take_text(c);
}

void OutputParser::take_spill(char c) {
  held_ += c;
  const auto& closers = options_.dialect.tools->closers;
  while (!held_.empty()) {
    if (std::ranges::count(closers, held_) > 0) {
      held_.clear();
      return end_call();
    }
    if (std::ranges::any_of(closers, [&](auto closer) { return closer.starts_with(held_); }))
      return;
    add_arguments(held_.substr(0, 1));
    held_.erase(0, 1);
  }
}

void OutputParser::take_in_header(char c) {
  raw_ += c;
  if (raw_.ends_with(options_.dialect.channels->header_close)) return header_read();
  if (raw_.size() > kMaxHeader) give_up();
}

void OutputParser::header_read() {
  const ChannelDialect& channels = *options_.dialect.channels;
  const std::string_view header = raw_;
  reasoning_ = header.find(channels.reasoning_channel) != header.npos;
  said_something_ = false;
  drop_space_ = true;
  state_ = State::kText;
  const size_t recipient = header.find(channels.recipient);
  if (recipient == header.npos || options_.dialect.tools == nullptr || options_.tools.empty())
    return;
  std::string name;
  for (const char c : header.substr(recipient + channels.recipient.size())) {
    if (!is_name_character(c)) break;
    name += c;
  }
  if (name.empty()) return;
  reasoning_ = false;
  state_ = State::kCall;
  reader_ = CallReader::arguments_of(*options_.dialect.tools, options_.tools, std::move(name));
}

void OutputParser::end_call() {
  reader_.reset();
  held_.clear();
  raw_.clear();
  after_call_ = drop_space_ = true;
  said_something_ = false;
  state_ = in_list_ ? State::kListGap : State::kText;
  if (options_.max_calls > 0 && calls_ >= options_.max_calls) state_ = State::kEnded;
}

// Not a call or header after all: its marker becomes content and the text after it is read again.
void OutputParser::give_up() {
  raw_marker_ = std::min(raw_marker_, raw_.size());
  add(reasoning_ ? PartKind::kReasoning : PartKind::kContent, raw_.substr(0, raw_marker_));
  input_ = raw_.substr(raw_marker_) + input_.substr(at_);
  at_ = 0;
  raw_.clear();
  reader_.reset();
  in_list_ = after_call_ = drop_space_ = false;
  said_something_ = true;
  state_ = State::kText;
}

void OutputParser::take(char c) {
  switch (state_) {
    case State::kText:
      return take_text(c);
    case State::kSection:
      return take_in_section(c);
    case State::kCallStart:
      return take_call_start(c);
    case State::kCall:
      return take_in_call(c);
    case State::kListGap:
      return take_in_list_gap(c);
    case State::kSpill:
      return take_spill(c);
    case State::kHeader:
      return take_in_header(c);
    case State::kEnded:
      return;
  }
}

void OutputParser::run() {
  while (at_ < input_.size()) take(input_[at_++]);
  input_.clear();
  at_ = 0;
}

std::vector<OutputPart> OutputParser::push(std::string_view text) {
  input_ = text;
  at_ = 0;
  run();
  return std::exchange(out_, {});
}

std::vector<OutputPart> OutputParser::finish() {
  const auto unsaid = [&] {
    return state_ == State::kSection || state_ == State::kCallStart || state_ == State::kHeader ||
           (state_ == State::kCall && !reader_->begun());
  };
  while (unsaid() && !raw_.empty()) {
    give_up();
    run();
  }
  if (state_ == State::kText) {
    for (const char c : std::exchange(held_, {})) take_plain(c);
    if (!space_.empty())
      add(reasoning_ ? PartKind::kReasoning : PartKind::kContent, std::exchange(space_, {}));
  } else if (state_ == State::kCall) {
    reader_->finish(*this);
  } else if (state_ == State::kSpill) {
    add_arguments(held_);
  }
  state_ = State::kEnded;
  return std::exchange(out_, {});
}

}  // namespace octavo
