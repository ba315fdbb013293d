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

// The largest tensors by name, the rest as one.
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
  // Messages that others' passes hide have nothing of the rank's own beside them by rule.
  const bool alone = call.exposed >= (1 - 1e-9) * call.seconds;
  const std::string_view behind =
      call.behind == Behind::nothing ? "other passes" : name_of(call.behind);
  const std::string beside =
      alone ? "waited for"
            : fmt::format("beside {}, {} waited for", behind, seconds_text(call.exposed));
  return fmt::format("{}{} of {} in {}: sends {}, {}, {}\n", times, what, size(load.payload),
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
  for (const TimedLoad& call : scene.calls) out += "      " + call_line(call);
  if (!scene.kept.empty()) out += fmt::format("      keeps {}\n", tensors_text(scene.kept));
  if (!scene.freed.empty()) out += fmt::format("      drops {}\n", tensors_text(scene.freed));
  return out;
}

std::string_view kind_words(PassKind kind) {
  constexpr std::string_view kinds[] = {"forward", "backward", "input gradients",
                                        "weight gradients"};
  return kinds[static_cast<std::size_t>(kind)];
}

std::string phase_title(const StoryPhase& phase) {
  if (phase.ends_step) return "end of the step";
  return fmt::format("{}: {}", phase.name, kind_words(phase.kind));
}

// The chain of a phase's blocks, where it is another one than that of the phase it is told by.
std::string other_blocks(const StoryPhase& phase, const StoryPhase& told) {
  const std::string first = phase.scenes.front().first, last = phase.scenes.back().last;
  if (first == told.scenes.front().first && last == told.scenes.back().last) return "";
  return first == last ? ", " + first : fmt::format(", {} to {}", first, last);
}

// How many phases from here on go like one that was told, all like the same.
std::size_t alike_from(const Story& story, std::size_t first) {
  const auto& like = story.phases[first].like;
  if (!like || story.phases[first].scenes.empty()) return 0;
  std::size_t end = first + 1;
  while (end < story.phases.size() && story.phases[end].like == like) ++end;
  return end - first;
}

// A line for so many phases in a row that go like an earlier one.
std::string alike_lines(const Story& story, std::size_t first, std::size_t count) {
  const StoryPhase& phase = story.phases[first];
  const StoryPhase& told = story.phases[*phase.like];
  const StoryPhase& last = story.phases[first + count - 1];
  const std::string title = count == 1 ? phase_title(phase) + other_blocks(phase, told)
                                       : fmt::format("{} to {}: {} times {}", phase.name, last.name,
                                                     count, kind_words(phase.kind));
  return fmt::format("  {}, as {}; {:.2f} GiB then\n", title, told.name, gibibytes(last.after));
}

std::string phase_lines(const StoryPhase& phase) {
  std::string out =
      fmt::format("  {:<36}{:>10}{:>9}{:>9}\n", phase_title(phase), "time", "highest", "GiB then");
  for (const TimedLoad& call : phase.calls) out += "    all along: " + call_line(call);
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
  out += fmt::format("\n  {:<55}{:>9.2f} GiB\n",
                     "each of its ranks holds, before the step and after it", gibibytes(held));
  for (const NamedTensors& tensors : story.held) {
    out += fmt::format("    {:<53}{:>9.2f}\n", tensors.name, gibibytes(tensors.bytes));
  }
  bool in_lines = false;
  for (std::size_t i = 0; i < story.phases.size();) {
    const std::size_t alike = alike_from(story, i);
    if (alike == 0 || !in_lines) out += '\n';
    in_lines = alike > 0;
    out += alike > 0 ? alike_lines(story, i, alike) : phase_lines(story.phases[i]);
    i += std::max<std::size_t>(1, alike);
  }
  if (style.quiet || story.reasons.empty()) return out;
  out += "\n  why\n";
  for (const std::string& reason : story.reasons) out += paragraph(reason, style.width);
  for (const std::string& own : code_of(p).assumptions(p)) out += paragraph(own, style.width);
  return out;
}

}  // namespace zeroplan
