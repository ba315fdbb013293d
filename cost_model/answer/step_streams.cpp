// When does everything of a step happen? Front door: rank_streams.
#include "cost_model/answer/step_streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "cost_model/answer/chunk_parts.hpp"
#include "cost_model/answer/step_items.hpp"
#include "cost_model/kernel/operator_time.hpp"
#include "cost_model/pipeline/messages.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view compute_stream = "compute";

// Where what follows stands.
struct Where {
  std::int32_t pass = -1;
  std::int32_t block = -1;
};

// The slices of one rank, stream by stream.
class SliceWriter {
 public:
  explicit SliceWriter(RankStreams& out) : out_(out) {}

  // Passes begin where the one before ends, but for the rounding of its kernels' sum.
  void tensor(std::size_t event, double now) {
    last_tensor_ = std::max(last_tensor_, now);
    out_.order.push_back({Occurrence::Of::tensor, event, last_tensor_});
  }

  void kernel(const PlayedKernel& played, double start, double seconds, double busy) {
    if (seconds <= 0) return;
    out_.order.push_back({Occurrence::Of::kernel, out_.kernels.size(), start});
    out_.kernels.push_back({played, start, seconds, std::min(busy, seconds)});
  }

  void compute(const std::string& name, double start, double end, const Where& where) {
    if (end <= start) return;
    add({.name = name,
         .stream = compute_stream,
         .start = start,
         .seconds = end - start,
         .pass = where.pass,
         .block = where.block});
  }

  // A call that is waited for runs now; another one once its stream is free.
  void call(const StepItem& item, double now, const Where& where) {
    const TimedLoad& load = *item.load;
    double& free = free_from_[load.load.group.name];
    const double start = load.behind == Behind::nothing ? now : std::max(now, free);
    free = start + item.seconds();
    add_call(item, SliceKind::collective, std::string(name_of(load.load.collective)), start, where);
  }

  void message(const StepItem& item, SliceKind kind, double now, const Where& where) {
    const bool gathers = kind == SliceKind::collective;
    add_call(item, kind, gathers ? std::string(name_of(item.load->load.collective)) : "message",
             now, where);
  }

 private:
  void add_call(
      const StepItem& item, SliceKind kind, std::string name, double start, const Where& where) {
    TimedLoad call = *item.load;
    call.load.calls = item.times;
    call.seconds = item.seconds();
    call.exposed = item.exposed();
    add({.kind = kind,
         .name = std::move(name),
         .stream = call.load.group.name,
         .start = start,
         .seconds = call.seconds,
         .exposed = call.exposed,
         .pass = where.pass,
         .block = where.block,
         .call = call,
         .along_pass = item.along_pass});
  }

  void add(Slice slice) {
    out_.order.push_back({Occurrence::Of::slice, out_.slices.size(), slice.start});
    out_.slices.push_back(std::move(slice));
  }

  RankStreams& out_;
  std::map<std::string_view, double> free_from_;  // streams of calls
  double last_tensor_ = 0;
};

class StepWriter {
 public:
  StepWriter(const Problem& problem,
             const Evaluator& evaluator,
             const StepTime& time,
             std::int64_t rank,
             std::int64_t micro_batches)
      : p_(problem),
        pipeline_(pipeline_of(problem, micro_batches)),
        loads_(time.stages[static_cast<std::size_t>(rank)].loads),
        out_{.rank = rank,
             .micro_batches = micro_batches,
             .clock = rank_clock(problem, time, rank, micro_batches)},
        slices_(out_) {
    const Stage stage = stages(problem)[static_cast<std::size_t>(rank)];
    const StageProgram program = evaluator.stage_program(problem, stage);
    find_parts(evaluator, stage, program);
    items_ =
        step_items(problem, program, passes(problem, rank, micro_batches), micro_batches, loads_);
    out_.first_event = program.resident.size();
  }

  RankStreams write() {
    for (const StepItem& item : items_.before) slices_.tensor(item.event, 0);
    for (std::size_t i = 0; i < items_.passes.size(); ++i) write_pass(i);
    write_end();
    out_.events = std::move(items_.events);
    return std::move(out_);
  }

 private:
  void find_parts(const Evaluator& evaluator, const Stage& stage, const StageProgram& program) {
    if (p_.runtime.recorded) {
      parts_.push_back({{"recorded", {.forward = 1, .input_gradient = 1}}});
    } else {
      const BlockTimes times = evaluator.block_times(p_);
      modules_.emplace(p_);
      for (std::size_t i = 0; i < program.chunks.size(); ++i) {
        parts_.push_back(chunk_parts(p_, times, *modules_, stage, i, program.chunks[i].runs));
      }
    }
    for (const std::vector<ChunkPart>& parts : parts_) {
      std::vector<std::string>& names = out_.blocks.emplace_back();
      for (const ChunkPart& part : parts) names.push_back(part.name);
    }
  }

  // Blocks run in the order of their events; one without any computes all the same.
  void write_pass(std::size_t index) {
    const TimedPass& timed = out_.clock.passes[index];
    const std::vector<StepItem>& items = items_.passes[index];
    const std::vector<ChunkPart>& parts = parts_[static_cast<std::size_t>(timed.pass.chunk)];
    const PassKind kind = timed.pass.kind;
    double waited = blocked_by_messages(timed);
    for (const StepItem& item : items) waited += item.load != nullptr ? item.exposed() : 0;
    const double computing = std::max(0.0, timed.end - timed.start - waited);
    double all = 0;
    for (const ChunkPart& part : parts) all += part.seconds.at(kind);

    Where where{static_cast<std::int32_t>(index), -1};
    double now = timed.start;
    auto next = items.begin();
    const auto write_border = [&] {
      where.block = -1;
      for (; next != items.end() && next->block < 0; ++next) now = write_item(*next, now, where);
    };
    const auto count = static_cast<std::int32_t>(parts.size());
    for (std::int32_t i = 0; i < count; ++i) {
      write_border();
      where.block = kind == PassKind::forward ? i : count - 1 - i;
      const ChunkPart& part = parts[static_cast<std::size_t>(where.block)];
      const auto last = std::find_if(next, items.end(),
                                     [&](const StepItem& x) { return x.block != where.block; });
      const double share = all > 0 ? part.seconds.at(kind) / all : 1.0 / count;
      now = write_block({next, last}, part, computing * share, now, where);
      next = last;
    }
    for (; next != items.end(); ++next) now = write_item(*next, now, where);
    write_messages(timed, {where.pass, -1});
  }

  double kernel_seconds(const StepItem& item, const ChunkPart& part) const {
    if (item.kernel && item.kernel->recorded != nullptr) {
      return operator_time(*item.kernel->recorded, p_.cluster.gpu).total();
    }
    const bool known = item.kernel && part.modules != nullptr;
    return known ? kernel_time(item.kernel->kernel, *part.modules).total() : 0;
  }

  // Gives when it is done.
  double write_block(std::span<const StepItem> items,
                     const ChunkPart& part,
                     double computing,
                     double now,
                     const Where& where) {
    double all = 0;
    for (const StepItem& item : items) all += kernel_seconds(item, part);
    const double even = all > 0 ? 0 : computing / static_cast<double>(items.size() + 1);
    double began = now;
    for (const StepItem& item : items) {
      if (all > 0 && item.kernel) {
        const double busy = kernel_seconds(item, part);
        const double seconds = computing * busy / all;
        slices_.kernel(*item.kernel, now, seconds, busy);
        now += seconds;
        continue;
      }
      now += even;
      const double after = write_item(item, now, where);
      if (after == now) continue;
      slices_.compute(part.name, began, now, where);
      began = now = after;
    }
    now += even;
    slices_.compute(part.name, began, now, where);
    return now;
  }

  double write_item(const StepItem& item, double now, const Where& where) {
    if (item.kernel) return now;  // that takes no time
    if (item.load == nullptr) {
      slices_.tensor(item.event, now);
      return now;
    }
    slices_.call(item, now, where);
    return now + item.exposed();
  }

  // The neighbours that a pass hands its result to, and has its input from.
  struct Neighbours {
    std::optional<Place> to, from;
  };
  Neighbours neighbours_of(const Pass& pass) const {
    const Place own{out_.rank, pass.chunk};
    if (pass.kind == PassKind::forward) {
      return {next_place(pipeline_, own), previous_place(pipeline_, own)};
    }
    if (!makes_input_gradient(pass)) return {};
    return {previous_place(pipeline_, own), next_place(pipeline_, own)};
  }

  // Seconds that what it sends keeps the rank from its next pass.
  double blocked_by_messages(const TimedPass& timed) const {
    return neighbours_of(timed.pass).to && sends_block(p_) ? message_seconds(p_) : 0;
  }

  void write_messages(const TimedPass& timed, const Where& where) {
    const auto [to, from] = neighbours_of(timed.pass);
    const bool forward = timed.pass.kind == PassKind::forward;
    for (const TimedLoad& load : loads_) {
      if (load.load.during != (forward ? During::forward : During::backward)) continue;
      const StepItem item{.load = &load};
      if (is_message(load.load) && to && to->rank != out_.rank) {
        slices_.message(item, SliceKind::message, timed.end - blocked_by_messages(timed), where);
      } else if (gathers_messages(p_, load.load) && from && from->rank != out_.rank) {
        const double start = std::max(0.0, timed.start - item.seconds());
        slices_.message(item, SliceKind::collective, start, where);
      }
    }
  }

  static bool gathers(const StepItem& item) {
    return item.load->load.collective == Collective::all_gather;
  }

  // Reductions began beside the last backward pass, as far as they are hidden; gathers follow the
  // optimizer, into the next step where they are hidden there.
  void write_end() {
    const RankClock& clock = out_.clock;
    double hidden = 0;
    for (const StepItem& item : items_.at_end) {
      if (item.load != nullptr && !gathers(item)) hidden += item.seconds() - item.exposed();
    }
    const auto write = [&](const StepItem& item, double& now) {
      slices_.call(item, now, {});
      now = out_.slices.back().start + item.seconds();
    };
    double reduced = std::max(0.0, clock.passed() - hidden);
    for (const StepItem& item : items_.at_end) {
      if (item.load != nullptr && !gathers(item)) write(item, reduced);
    }
    slices_.compute("optimizer", clock.reduced, clock.updated, {});
    double gathered = clock.updated;
    for (const StepItem& item : items_.at_end) {
      if (item.load == nullptr) {
        const bool saved = items_.events[item.event].phase == Phase::checkpoint;
        slices_.tensor(item.event, saved ? clock.gathered : clock.reduced);
      } else if (gathers(item)) {
        write(item, gathered);
      }
    }
  }

  const Problem& p_;
  Pipeline pipeline_;
  std::vector<TimedLoad> loads_;
  std::optional<StepModules> modules_;         // none of a recorded step
  std::vector<std::vector<ChunkPart>> parts_;  // of each chunk
  StepItems items_;
  RankStreams out_;
  SliceWriter slices_;
};

}  // namespace

std::string KernelSlice::name() const {
  if (const Operator* op = played.recorded) {
    return op->scope.empty() ? std::string(op->name) : fmt::format("{} of {}", op->name, op->scope);
  }
  const auto& [module, product, times] = played.kernel;
  const std::string_view what = played.repeats                ? " again"
                                : product == Product::forward ? ""
                                                              : name_of(product);
  std::string name(name_of(module));
  if (product != Product::forward) name += ' ';
  return name += what;
}

MemoryBreakdown RankStreams::resident() const {
  MemoryBreakdown sum;
  for (std::size_t i = 0; i < first_event; ++i) {
    sum[events[i].tensor.category] += events[i].tensor.bytes;
  }
  return sum;
}

RankStreams rank_streams(const Problem& problem,
                         const Evaluator& evaluator,
                         const StepTime& time,
                         std::int64_t rank,
                         std::int64_t micro_batches) {
  return StepWriter(problem, evaluator, time, rank, micro_batches).write();
}

}  // namespace zeroplan
