// How is a step told in a terminal? Front door: story_text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/out/report.hpp"
#include "cli/story/story_report.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t named_tensors = 3;  // the others of a list are summed up

std::string size(Bytes bytes) {
  const auto count = static_cast<double>(bytes.count());
  if (count >= static_cast<double>(gibi)) return fmt::format("{:.2f} GiB", count / gibi);
  if (count >= static_cast<double>(mebi)) return fmt::format("{:.2f} MiB", count / mebi);
  return fmt::format("{:.2f} KiB", count / 1024);
}

std::string members(const StoryGroup& of) {
  const std::vector<std::int64_t>& ranks = of.members;
  if (of.group.stride == 1) return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  constexpr std::size_t shown = 4;
  std::string list = fmt::format(
      "ranks {}",
      fmt::join(ranks.begin(),
                ranks.begin() + static_cast<std::ptrdiff_t>(std::min(shown, ranks.size())), ", "));
  return ranks.size() > shown ? fmt::format("{} ... {}", list, ranks.back()) : list;
}

std::string group_lines(const Story& story) {
  std::string out;
  for (const StoryGroup& of : story.groups) {
    out +=
        fmt::format("  {:<18}{}, over {}\n", fmt::format("{} of {}", of.group.name, of.group.ranks),
                    members(of), of.link);
  }
  return out;
}

// The largest by name, the rest as one.
std::string tensors_text(std::vector<NamedTensors> list) {
  std::ranges::stable_sort(list, std::greater{}, &NamedTensors::bytes);
  std::vector<std::string> words;
  Bytes rest;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const NamedTensors& tensors = list[i];
    if (i >= named_tensors && list.size() > named_tensors + 1) {
      rest += tensors.bytes;
      continue;
    }
    const std::string times = tensors.count > 1 ? fmt::format("{} x ", tensors.count) : "";
    words.push_back(fmt::format("{}{} {}", times, tensors.name, size(tensors.bytes)));
  }
  if (rest > Bytes{}) words.push_back(fmt::format("others {}", size(rest)));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string seconds_text(double seconds) {
  return seconds >= 1      ? fmt::format("{:.3f} s", seconds)
         : seconds >= 1e-3 ? fmt::format("{:.2f} ms", 1e3 * seconds)
                           : fmt::format("{:.1f} us", 1e6 * seconds);
}

std::string call_line(const TimedLoad& call) {
  const CollectiveLoad& load = call.load;
  const std::string times = load.calls > 1 ? fmt::format("{} x ", load.calls) : "";
  const std::string what =
      load.collective == Collective::send_recv ? "message" : std::string(name_of(load.collective));
  const bool alone = call.behind == Behind::nothing || call.exposed >= call.seconds;
  const std::string beside = alone ? "waited for"
                                   : fmt::format("beside {}, {} waited for", name_of(call.behind),
                                                 seconds_text(call.exposed));
  return fmt::format("      {}{} of {} in {}: sends {}, {}, {}\n", times, what, size(load.payload),
                     load.group.name, size(sent_bytes_per_step(load)), seconds_text(call.seconds),
                     beside);
}

std::string scene_name(const StoryScene& scene) {
  return scene.blocks == 1 ? scene.first : fmt::format("{} to {}, each:", scene.first, scene.last);
}

std::string scene_lines(const StoryScene& scene) {
  std::string out = fmt::format("    {:<34}{:>10}{:>9.2f}{:>9.2f}\n", scene_name(scene),
                                seconds_text(scene.seconds / static_cast<double>(scene.blocks)),
                                gibibytes(scene.highest), gibibytes(scene.after));
  for (const TimedLoad& call : scene.calls) out += call_line(call);
  if (!scene.kept.empty()) out += fmt::format("      keeps {}\n", tensors_text(scene.kept));
  if (!scene.freed.empty()) out += fmt::format("      drops {}\n", tensors_text(scene.freed));
  return out;
}

std::string phase_title(const StoryPhase& phase) {
  if (phase.ends_step) return "end of the step";
  constexpr std::string_view kinds[] = {"forward", "backward", "input gradients",
                                        "weight gradients"};
  return fmt::format("{}: {}", phase.name, kinds[static_cast<std::size_t>(phase.kind)]);
}

std::string phase_lines(const Story& story, const StoryPhase& phase) {
  if (phase.alike) {
    return fmt::format("\n  {}, as {}; {:.2f} GiB then\n", phase_title(phase),
                       story.phases[*phase.alike].name, gibibytes(phase.after));
  }
  std::string out = fmt::format("\n  {:<36}{:>10}{:>9}{:>9}\n", phase_title(phase), "time",
                                "highest", "GiB then");
  for (const StoryScene& scene : phase.scenes) out += scene_lines(scene);
  return out;
}

// A text over several lines.
std::string paragraph(std::string_view text, std::size_t terminal) {
  constexpr std::size_t indent = 4, widest = 92;
  const std::size_t width = terminal == 0 ? widest : std::min(widest, terminal - indent);
  std::string out, line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += fmt::format("    {}\n", line);
      line.clear();
    }
    line += line.empty() ? "" : " ";
    line += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + fmt::format("    {}\n", line);
}

}  // namespace

std::string story_text(const FitAnswer& answer, const Story& story, TextStyle style) {
  const Problem& p = answer.problem;
  const std::int64_t all = micro_batches(p);
  std::string out =
      fmt::format("one step of {} on {} x {}, {}\n  {}\n", p.model.name, p.cluster.gpus,
                  p.cluster.gpu.name, *code_of(p).name, layout_text(p));
  if (p.layout.pp > 1) out += fmt::format("  of stage {} of {}\n", story.stage, p.layout.pp);
  out += group_lines(story);
  if (story.micro_batches < all) {
    out += fmt::format("  {} of {} micro-batches are told, the others go like the last\n",
                       story.micro_batches, all);
  }
  Bytes held;
  for (const NamedTensors& tensors : story.held) held += tensors.bytes;
  out += fmt::format("\n  {:<55}{:>9.2f}\n",
                     "each of its ranks holds, before the step and after it", gibibytes(held));
  for (const NamedTensors& tensors : story.held) {
    out += fmt::format("    {:<53}{:>9.2f}\n", tensors.name, gibibytes(tensors.bytes));
  }
  for (const StoryPhase& phase : story.phases) out += phase_lines(story, phase);
  if (style.quiet || story.reasons.empty()) return out;
  out += "\n  why\n";
  for (const std::string& reason : story.reasons) out += paragraph(reason, style.width);
  for (const std::string& own : code_of(p).assumptions(p)) out += paragraph(own, style.width);
  return out;
}

}  // namespace zeroplan
