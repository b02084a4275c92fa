#include "bench/load/load_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "bench/load/load_figures.h"

namespace octavo::bench {
namespace {

constexpr double kWidth = 900;
constexpr double kHeight = 560;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kPanelHeight = 190;
constexpr double kTtftTop = 50;
constexpr double kOutputTop = 310;
constexpr int kTimeTicks = 12;  // at most
constexpr int kValueTicks = 5;

constexpr auto kHead =
    R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" font-family="system-ui, sans-serif" font-size="13">
<style>
.back {{ fill: #ffffff }} text {{ fill: #1f2937 }} .grid {{ stroke: #d1d5db }} .axis {{ stroke: #6b7280 }}
.ttft {{ fill: #2563eb; fill-opacity: 0.75 }} .failed {{ stroke: #dc2626; stroke-width: 1.6 }}
.output {{ stroke: #b45309; stroke-width: 2; fill: #b45309; fill-opacity: 0.15 }}
@media (prefers-color-scheme: dark) {{
.back {{ fill: #111827 }} text {{ fill: #e5e7eb }} .grid {{ stroke: #374151 }} .axis {{ stroke: #9ca3af }}
.ttft {{ fill: #60a5fa }} .failed {{ stroke: #f87171 }} .output {{ stroke: #fbbf24; fill: #fbbf24 }}
}}
</style>
<rect class="back" width="{0}" height="{1}"/>
)";

// 1, 2 or 5 times a power of ten, so that at most `ticks` steps cover the range.
double tick_step(double whole, int ticks) {
  const double rough = whole / ticks;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

// Values from 0 to at least `most`, ending on a tick.
struct Axis {
  Axis(double most, int most_ticks)
      : step(tick_step(std::max(most, 1e-3), most_ticks)),
        end(step * std::max(1.0, std::ceil(most / step - 1e-9))) {}
  int ticks() const { return static_cast<int>(std::lround(end / step)); }

  double step;
  double end;
};

class Panel {
 public:
  Panel(std::string& svg, double top, const Axis& x, const Axis& y)
      : svg_(svg), top_(top), x_(x), y_(y) {}

  double x(double value) const { return kLeft + value / x_.end * (kWidth - kLeft - kRight); }
  double y(double value) const { return top_ + kPanelHeight * (1 - value / y_.end); }

  void draw_axes(std::string_view title) {
    add(R"(<text x="{}" y="{}" font-weight="600">{}</text>)", kLeft, top_ - 14, title);
    for (int i = 0; i <= y_.ticks(); ++i) {
      const double at = y(i * y_.step);
      add(R"(<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)",
          i == 0 ? "axis" : "grid", kLeft, kWidth - kRight, at, at);
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{:.6g}</text>)", kLeft - 8, at + 4,
          i * y_.step);
    }
    for (int i = 0; i <= x_.ticks(); ++i) {
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{:.6g}</text>)", x(i * x_.step),
          top_ + kPanelHeight + 18, i * x_.step);
    }
  }

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
    svg_ += '\n';
  }

 private:
  std::string& svg_;
  double top_;
  Axis x_;
  Axis y_;
};

void draw_ttft(std::string& svg, const LoadResult& result, const Axis& time) {
  double most = 0;
  bool failures = false;
  for (const RequestRecord& record : result.records) {
    if (record.answered()) most = std::max(most, record.ttft());
    failures = failures || !record.answered();
  }
  const bool long_waits = most > 5;
  const double unit = long_waits ? 1 : 1e3;
  Panel panel(svg, kTtftTop, time, Axis(most * unit, kValueTicks));
  panel.draw_axes(fmt::format("Time to first token ({}), by send time{}", long_waits ? "s" : "ms",
                              failures ? "; crosses: failed requests" : ""));
  for (const RequestRecord& record : result.records) {
    const double x = panel.x(record.sent);
    if (record.answered()) {
      panel.add(R"(<circle class="ttft" cx="{:.1f}" cy="{:.1f}" r="3.2"/>)", x,
                panel.y(record.ttft() * unit));
    } else {
      panel.add(R"(<path class="failed" d="M{:.1f} {:.1f}l8 8m0 -8l-8 8"/>)", x - 4,
                panel.y(0) - 4);
    }
  }
}

void draw_output(std::string& svg, const LoadResult& result, const Axis& time) {
  const std::vector<double> counts = output_by_second(result);
  const double most = counts.empty() ? 0 : *std::ranges::max_element(counts);
  Panel panel(svg, kOutputTop, time, Axis(std::max(most, 1.0), kValueTicks));
  panel.draw_axes("Output tokens per second");
  std::string steps = fmt::format("M{:.1f} {:.1f}", panel.x(0), panel.y(0));
  for (size_t second = 0; second < counts.size(); ++second) {
    // The last second ends with the run.
    const double end = std::min(static_cast<double>(second) + 1, std::max(result.seconds, 1e-3));
    fmt::format_to(std::back_inserter(steps), "V{:.1f}H{:.1f}", panel.y(counts[second]),
                   panel.x(end));
  }
  panel.add(R"(<path class="output" d="{}V{:.1f}"/>)", steps, panel.y(0));
  panel.add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">seconds since start</text>)",
            (kLeft + kWidth - kRight) / 2, kOutputTop + kPanelHeight + 42);
}

}  // namespace

std::string load_plot(const LoadResult& result) {
  std::string svg = fmt::format(kHead, kWidth, kHeight);
  const Axis time(result.seconds, kTimeTicks);
  draw_ttft(svg, result, time);
  draw_output(svg, result, time);
  return svg + "</svg>\n";
}

void write_load_plot(const LoadResult& result, const std::filesystem::path& path) {
  std::ofstream file(path);
  file << load_plot(result);
  file.close();
  if (!file) throw SetupError(fmt::format("{}: cannot be written", path.string()));
}

}  // namespace octavo::bench
