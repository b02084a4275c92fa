#include "cli/chat/line_editor.h"

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>

#include <clocale>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "cli/chat/terminal_scope.h"

namespace octavo {
namespace {

// Encloses the zero-width parts of the prompt. libedit attaches them to the character that follows,
// so a prompt must not end with one.
constexpr char kInvisible = '\1';

constexpr const char* kPasteOn = "\x1b[?2004h";
constexpr const char* kPasteOff = "\x1b[?2004l";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";

// Line editing counts characters, so the C library needs a UTF-8 locale.
void use_utf8() {
  for (const char* name : {"", "C.UTF-8", "en_US.UTF-8", "UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr &&
        std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
      return;
  }
}

std::string prompt_text(Prompt prompt, bool colour) {
  const char* sign = prompt == Prompt::kMessage ? ">" : ".";
  if (!colour) return fmt::format("{} ", sign);
  const char* code = prompt == Prompt::kMessage ? "\x1b[1;32m" : "\x1b[2m";
  return fmt::format("{0}{1}{0}{2}{0}\x1b[0m{0} ", kInvisible, code, sign);
}

}  // namespace

struct LineEditor::Editor {
  Editor(HistoryFile file_in, bool colour_in);
  ~Editor();

  void bind_keys();
  void remember(const std::string& line);
  void give_up();

  static Editor& of(EditLine* line);
  static char* on_prompt(EditLine* line);
  static unsigned char on_interrupt(EditLine* line, int key);
  static unsigned char on_paste(EditLine* line, int key);

  HistoryFile file;
  bool colour;
  EditLine* line = nullptr;
  History* history = nullptr;
  std::string prompt;
  std::string last;  // the newest line in the history
  bool interrupted = false;
  std::string given_up;  // the line that Ctrl-C discarded
};

LineEditor::Editor::Editor(HistoryFile file_in, bool colour_in)
    : file(std::move(file_in)), colour(colour_in) {
  use_utf8();
  line = el_init("octavo", stdin, stdout, stderr);
  history = history_init();
  if (line == nullptr || history == nullptr)
    throw SetupError("cannot start the line editor; check that TERM is set");
  HistEvent event;
  ::history(history, &event, H_SETSIZE, static_cast<int>(HistoryFile::kLines));
  for (const std::string& entry : file.load()) {
    ::history(history, &event, H_ENTER, entry.c_str());
    last = entry;
  }
  el_set(line, EL_CLIENTDATA, this);
  el_set(line, EL_PROMPT_ESC, &on_prompt, kInvisible);
  el_set(line, EL_HIST, &::history, history);
  el_set(line, EL_SIGNAL, 1);
  bind_keys();
}

LineEditor::Editor::~Editor() {
  el_end(line);
  history_end(history);
}

void LineEditor::Editor::bind_keys() {
  el_set(line, EL_EDITOR, "emacs");
  static constexpr std::pair<const char*, const char*> kKeys[] = {
      {"^W", "ed-delete-prev-word"},     {"^R", "em-inc-search-prev"},
      {"\\e[3~", "ed-delete-next-char"}, {"\\e[H", "ed-move-to-beg"},
      {"\\e[F", "ed-move-to-end"},       {"\\e[1~", "ed-move-to-beg"},
      {"\\e[4~", "ed-move-to-end"},      {"\\e[1;5C", "em-next-word"},
      {"\\e[1;5D", "ed-prev-word"},
  };
  for (const auto& [key, command] : kKeys) el_set(line, EL_BIND, key, command, nullptr);
  el_source(line, nullptr);
  // Bound after ~/.editrc, which must not override these two.
  el_set(line, EL_ADDFN, "octavo-interrupt", "Discard the line", &on_interrupt);
  el_set(line, EL_BIND, "^C", "octavo-interrupt", nullptr);
  el_set(line, EL_ADDFN, "octavo-paste", "Insert pasted text", &on_paste);
  el_set(line, EL_BIND, "\\e[200~", "octavo-paste", nullptr);
}

void LineEditor::Editor::remember(const std::string& text) {
  if (text.empty() || text == last) return;
  HistEvent event;
  ::history(history, &event, H_ENTER, text.c_str());
  file.append(text);
  last = text;
}

void LineEditor::Editor::give_up() {
  const LineInfo* info = el_line(line);
  given_up.assign(info->buffer, info->lastchar);
  interrupted = true;
}

LineEditor::Editor& LineEditor::Editor::of(EditLine* line) {
  void* self = nullptr;
  el_get(line, EL_CLIENTDATA, &self);
  return *static_cast<Editor*>(self);
}

char* LineEditor::Editor::on_prompt(EditLine* line) { return of(line).prompt.data(); }

unsigned char LineEditor::Editor::on_interrupt(EditLine* line, int) {
  of(line).give_up();
  const LineInfo* info = el_line(line);
  // End the line with libedit's own Enter, which positions the cursor correctly.
  el_cursor(line, static_cast<int>(info->lastchar - info->cursor));
  el_insertstr(line, "^C");
  el_push(line, "\n");
  return CC_REFRESH;
}

unsigned char LineEditor::Editor::on_paste(EditLine* line, int) {
  std::wstring text;
  while (!text.ends_with(kPasteEnd)) {
    wchar_t c = 0;
    if (el_wgetc(line, &c) != 1) return CC_EOF;
    text += c == L'\r' ? L'\n' : c;
  }
  text.resize(text.size() - kPasteEnd.size());
  // A trailing newline in copied text is not an extra line.
  while (text.ends_with(L'\n')) text.pop_back();
  if (!text.empty()) el_winsertstr(line, text.c_str());
  return CC_REFRESH;
}

LineEditor::LineEditor(HistoryFile history, const InterruptScope& interrupt, bool colour)
    : interrupt_(interrupt), editor_(std::make_unique<Editor>(std::move(history), colour)) {}

LineEditor::~LineEditor() = default;

ReadLine LineEditor::read(Prompt prompt) {
  Editor& e = *editor_;
  e.prompt = prompt_text(prompt, e.colour);
  e.interrupted = false;
  fmt::print("{}", kPasteOn);
  std::fflush(stdout);
  // libedit adopts the terminal's special characters, so this applies while it reads.
  const TerminalScope interrupt_is_a_key(interrupt_key_off);
  int count = 0;
  const char* text = el_gets(e.line, &count);
  // After Ctrl-Z and fg, the shell has restored its own terminal modes, and Ctrl-C is a signal here
  // too.
  const bool signalled = text == nullptr && interrupt_.requested();
  if (signalled) e.give_up();
  fmt::print("{}{}", kPasteOff, signalled ? "^C\n" : text == nullptr ? "\n" : "");
  std::fflush(stdout);

  if (e.interrupted) return {ReadLine::Kind::kInterrupt, std::move(e.given_up)};
  if (text == nullptr || count <= 0) return {};
  std::string result(text, static_cast<size_t>(count));
  if (result.ends_with('\n')) result.pop_back();
  e.remember(result);
  return {ReadLine::Kind::kLine, std::move(result)};
}

}  // namespace octavo
