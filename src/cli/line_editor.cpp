#include "cli/line_editor.h"

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <climits>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

// Brackets in the prompt what takes no columns. libedit ties such text to the character that
// follows it, so a prompt may not end with one.
constexpr char kInvisible = '\1';

constexpr const char* kPasteOn = "\x1b[?2004h";
constexpr const char* kPasteOff = "\x1b[?2004l";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";

// Editing counts characters, for which the C library must know that they are UTF-8.
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

  static Editor& of(EditLine* line);
  static char* on_prompt(EditLine* line);
  static unsigned char on_interrupt(EditLine* line, int key);
  static unsigned char on_paste(EditLine* line, int key);

  HistoryFile file;
  bool colour;
  EditLine* line = nullptr;
  History* history = nullptr;
  std::string prompt;
  std::string last;  // newest in the history
  bool interrupted = false;
  std::string given_up;  // the line that Ctrl-C ended
};

LineEditor::Editor::Editor(HistoryFile file_in, bool colour_in)
    : file(std::move(file_in)), colour(colour_in) {
  use_utf8();
  line = el_init("octavo", stdin, stdout, stderr);
  history = history_init();
  if (line == nullptr || history == nullptr)
    throw SetupError("the terminal's line editor does not start; is TERM set?");
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
  // Without an intr character Ctrl-C is a key. It and paste must work whatever ~/.editrc says.
  el_set(line, EL_SETTY, "-d", "intr=", nullptr);
  el_set(line, EL_ADDFN, "octavo-interrupt", "Give up the line", &on_interrupt);
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

LineEditor::Editor& LineEditor::Editor::of(EditLine* line) {
  void* self = nullptr;
  el_get(line, EL_CLIENTDATA, &self);
  return *static_cast<Editor*>(self);
}

char* LineEditor::Editor::on_prompt(EditLine* line) { return of(line).prompt.data(); }

unsigned char LineEditor::Editor::on_interrupt(EditLine* line, int) {
  Editor& self = of(line);
  const LineInfo* info = el_line(line);
  self.given_up.assign(info->buffer, info->lastchar);
  self.interrupted = true;
  // To the end of the line, so that what comes next does not write over it.
  el_cursor(line, INT_MAX / 2);
  el_set(line, EL_REFRESH);
  return CC_EOF;
}

unsigned char LineEditor::Editor::on_paste(EditLine* line, int) {
  std::wstring text;
  while (!text.ends_with(kPasteEnd)) {
    wchar_t c = 0;
    if (el_wgetc(line, &c) != 1) return CC_EOF;
    text += c == L'\r' ? L'\n' : c;
  }
  text.resize(text.size() - kPasteEnd.size());
  // The newline that ends a copied line is not meant as a line of its own.
  while (text.ends_with(L'\n')) text.pop_back();
  if (!text.empty()) el_winsertstr(line, text.c_str());
  return CC_REFRESH;
}

LineEditor::LineEditor(HistoryFile history, bool colour)
    : editor_(std::make_unique<Editor>(std::move(history), colour)) {}

LineEditor::~LineEditor() = default;

ReadLine LineEditor::read(Prompt prompt) {
  Editor& e = *editor_;
  e.prompt = prompt_text(prompt, e.colour);
  e.interrupted = false;
  fmt::print("{}", kPasteOn);
  std::fflush(stdout);
  int count = 0;
  const char* text = el_gets(e.line, &count);
  fmt::print("{}{}", kPasteOff, text == nullptr ? (e.interrupted ? "^C\n" : "\n") : "");
  std::fflush(stdout);

  if (e.interrupted) return {ReadLine::Kind::kInterrupt, std::move(e.given_up)};
  if (text == nullptr || count <= 0) return {};
  std::string result(text, static_cast<size_t>(count));
  if (result.ends_with('\n')) result.pop_back();
  e.remember(result);
  return {ReadLine::Kind::kLine, std::move(result)};
}

EchoOff::EchoOff() : previous_{} {
  if (tcgetattr(STDIN_FILENO, &previous_) != 0) return;
  termios quiet = previous_;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
  changed_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet) == 0;
}

EchoOff::~EchoOff() {
  if (changed_) tcsetattr(STDIN_FILENO, TCSADRAIN, &previous_);
}

}  // namespace octavo
