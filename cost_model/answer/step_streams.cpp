// When does everything of a step happen? Front door: rank_streams.
#include "cost_model/answer/step_streams.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "cost_model/answer/chunk_parts.hpp"
#include "cost_model/network/load_list.hpp"
#include "cost_model/pipeline/messages.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view compute_stream = "compute";
constexpr std::string_view message_stream = "pp";

bool is_like(const CollectiveLoad& a, const CollectiveLoad& b) {
  return a.group == b.group && a.collective == b.collective && a.during == b.during &&
         a.payload == b.payload && a.beside == b.beside;
}

// A call in a pass, or a tensor event.
struct Item {
  std::int32_t block = -1;
  const TimedLoad* load = nullptr;  // null: a tensor event
  std::int64_t times = 1;
  std::size_t event = 0;
};

class StreamWriter {
 public:
  StreamWriter(const Problem& problem,
               const Evaluator& evaluator,
               const StepTime& time,
               std::int64_t rank,
               std::int64_t micro_batches)
      : p_(problem),
        stage_(stages(problem)[static_cast<std::size_t>(rank)]),
        program_(evaluator.stage_program(problem, stage_)),
        order_(passes(problem, rank, micro_batches)),
        pipeline_(pipeline_of(problem, micro_batches)),
        loads_(time.stages[static_cast<std::size_t>(rank)].loads),
        placed_(loads_.size()),
        shown_(static_cast<double>(micro_batches) /
               static_cast<double>(zeroplan::micro_batches(problem))),
        blocks_(problem) {
    out_.rank = rank;
    out_.clock = rank_clock(problem, time, rank, micro_batches);
    const BlockTimes times = evaluator.block_times(problem);
    for (std::size_t i = 0; i < program_.chunks.size(); ++i) {
      parts_.push_back(chunk_parts(problem, times, stage_, i, program_.chunks[i].runs_of(1)));
    }
  }

  RankStreams write() {
    play();
    add_what_the_program_lacks();
    for (std::size_t i = 0; i < order_.size(); ++i) write_pass(i);
    write_end();
    return std::move(out_);
  }

 private:
  // Its load among those of the answer; none where nothing is sent.
  const TimedLoad* load_of(const Call& call) {
    const CollectiveLoad load = blocks_.load_of(call);
    const auto found = std::ranges::find_if(
        loads_, [&](const TimedLoad& known) { return is_like(known.load, load); });
    if (!load.is_sent() || found == loads_.end()) return nullptr;
    placed_[static_cast<std::size_t>(found - loads_.begin())] += call.times;
    return &*found;
  }

  void play() {
    items_.resize(order_.size());
    const auto list_of = [&](std::int32_t pass, bool at_end) -> std::vector<Item>* {
      if (at_end) return &at_end_;
      return pass < 0 ? nullptr : &items_[static_cast<std::size_t>(pass)];
    };
    const auto add_event = [&](const Played& event) {
      std::vector<Item>* list = list_of(event.pass, event.phase >= Phase::optimizer_step);
      if (list != nullptr) list->push_back({.block = event.block, .event = out_.events.size()});
      out_.events.push_back(event);
    };
    const auto add_call = [&](const PlayedCall& played) {
      const bool at_end = played.phase >= Phase::optimizer_step;
      if (played.phase > Phase::optimizer_step) return;  // a checkpoint is not of the step
      const TimedLoad* load = load_of(at_end ? of_step(played.call) : played.call);
      if (load == nullptr) return;
      const bool waits = at_end || load->load.during == During::step;
      list_of(played.pass, waits)
          ->push_back({.block = played.block, .load = load, .times = played.call.times});
    };
    play_step(program_, order_, add_event, add_call);
  }

  // Calls of the step that were not played: evenly in the passes of their direction, or at the end.
  void add_what_the_program_lacks() {
    std::vector<std::size_t> in[2];
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i].kind == PassKind::weight_gradient) continue;
      in[order_[i].kind == PassKind::forward ? 0 : 1].push_back(i);
    }
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      const CollectiveLoad& load = loads_[i].load;
      if (load.group.name == message_stream || is_of_messages(load)) continue;
      const bool at_end = load.during == During::step;
      const std::int64_t missing =
          (at_end ? load.calls
                  : static_cast<std::int64_t>(static_cast<double>(load.calls) * shown_ + 0.5)) -
          placed_[i];
      if (missing <= 0) continue;
      if (at_end) {
        at_end_.push_back({.load = &loads_[i], .times = missing});
      } else {
        spread(loads_[i], missing, in[load.during == During::forward ? 0 : 1]);
      }
    }
  }

  void spread(const TimedLoad& load, std::int64_t calls, const std::vector<std::size_t>& among) {
    const auto passes = static_cast<std::int64_t>(among.size());
    for (std::int64_t i = 0; i < passes; ++i) {
      const std::int64_t count = (i + 1) * calls / passes - i * calls / passes;
      std::vector<Item>& items = items_[among[static_cast<std::size_t>(i)]];
      const std::size_t before = items.size();
      for (std::int64_t j = 0; j < count; ++j) {
        const std::size_t at =
            before * static_cast<std::size_t>(j) / static_cast<std::size_t>(count);
        const std::size_t place = at + static_cast<std::size_t>(j);
        const std::int32_t block = place < items.size() ? items[place].block : -1;
        items.insert(items.begin() + static_cast<std::ptrdiff_t>(place),
                     Item{.block = block, .load = &load});
      }
    }
  }

  // The gathers that put a message together again: they are part of its way.
  bool is_of_messages(const CollectiveLoad& load) const {
    return scatters_messages(p_) && load.group.name == "tp" &&
           load.collective == Collective::all_gather && load.during != During::step &&
           load.payload == load.group.ranks * pipeline_message(p_);
  }

  double each(const TimedLoad& load, double TimedLoad::*of) const {
    return load.*of / static_cast<double>(load.load.calls);
  }

  // Puts a call on its stream, not before `now`; gives what computing loses by it.
  double write_call(const Item& item, double now, std::int32_t pass) {
    const TimedLoad& load = *item.load;
    const auto times = static_cast<double>(item.times);
    const double seconds = times * each(load, &TimedLoad::seconds);
    const double exposed = times * each(load, &TimedLoad::exposed);
    double& free = free_from_[load.load.group.name];
    const double start = load.behind == Behind::nothing ? now : std::max(now, free);
    free = start + seconds;
    TimedLoad call = load;
    call.load.calls = item.times;
    call.seconds = seconds;
    call.exposed = exposed;
    out_.order.push_back({true, out_.slices.size(), start});
    out_.slices.push_back({.kind = SliceKind::collective,
                           .name = std::string(name_of(load.load.collective)),
                           .stream = load.load.group.name,
                           .start = start,
                           .seconds = seconds,
                           .exposed = exposed,
                           .pass = pass,
                           .call = call});
    return exposed;
  }

  void write_compute(const std::string& name, double start, double end, std::int32_t pass) {
    if (end <= start) return;
    out_.slices.push_back({.name = name,
                           .stream = compute_stream,
                           .start = start,
                           .seconds = end - start,
                           .pass = pass});
  }

  void write_pass(std::size_t index) {
    const TimedPass& timed = out_.clock.passes[index];
    const Pass& pass = timed.pass;
    const std::vector<Item>& items = items_[index];
    const auto number = static_cast<std::int32_t>(index);
    const double sent = write_messages(timed, number);
    double waited = sent;
    for (const Item& item : items) {
      if (item.load != nullptr) {
        waited += static_cast<double>(item.times) * each(*item.load, &TimedLoad::exposed);
      }
    }
    const double computing = std::max(0.0, timed.end - timed.start - waited);
    const std::vector<ChunkPart>& parts = parts_[static_cast<std::size_t>(pass.chunk)];
    double all = 0;
    for (const ChunkPart& part : parts) all += part.seconds.at(pass.kind);
    const double even = 1.0 / static_cast<double>(parts.size());
    double now = timed.start;
    // Blocks run in the order of their events; one without any computes all the same.
    const auto count = static_cast<std::ptrdiff_t>(parts.size());
    const bool forward = pass.kind == PassKind::forward;
    std::size_t next = 0;
    now = write_border(items, next, now, number);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const auto block = static_cast<std::int32_t>(forward ? i : count - 1 - i);
      const ChunkPart& part = parts[static_cast<std::size_t>(block)];
      const double share = all > 0 ? part.seconds.at(pass.kind) / all : even;
      const std::size_t first = next;
      while (next < items.size() && items[next].block == block) ++next;
      now = write_block(items, first, next, part.name, computing * share, now, number);
      now = write_border(items, next, now, number);
    }
    // What stands out of order has no computing of its own.
    for (; next < items.size(); ++next) now = write_item(items[next], now, number);
  }

  double write_border(const std::vector<Item>& items,
                      std::size_t& next,
                      double now,
                      std::int32_t pass) {
    while (next < items.size() && items[next].block < 0) now = write_item(items[next++], now, pass);
    return now;
  }

  double write_item(const Item& item, double now, std::int32_t pass) {
    if (item.load != nullptr) return now + write_call(item, now, pass);
    out_.order.push_back({false, item.event, now});
    return now;
  }

  double write_block(const std::vector<Item>& items,
                     std::size_t first,
                     std::size_t last,
                     const std::string& name,
                     double computing,
                     double now,
                     std::int32_t pass) {
    const double step = computing / static_cast<double>(last - first + 1);
    double began = now;
    for (std::size_t i = first; i < last; ++i) {
      now += step;
      const double after = write_item(items[i], now, pass);
      if (after > now) {
        write_compute(name, began, now, pass);
        began = now = after;
      }
    }
    now += step;
    write_compute(name, began, now, pass);
    return now;
  }

  // What crosses to the neighbours; gives the seconds that it keeps this rank from its next pass.
  double write_messages(const TimedPass& timed, std::int32_t pass) {
    const bool forward = timed.pass.kind == PassKind::forward;
    if (!forward && !makes_input_gradient(timed.pass)) return 0;
    const Place own{out_.rank, timed.pass.chunk};
    const auto to = forward ? next_place(pipeline_, own) : previous_place(pipeline_, own);
    const auto from = forward ? previous_place(pipeline_, own) : next_place(pipeline_, own);
    const double seconds = message_seconds(p_);
    const bool blocks = to && sends_block(p_);
    const double end = blocks ? timed.end - seconds : timed.end;
    const During during = forward ? During::forward : During::backward;
    for (TimedLoad& load : loads_) {
      if (load.load.during != during) continue;
      const bool message = load.load.group.name == message_stream;
      if (message && to && to->rank != out_.rank) {
        write_message(load, end, pass, SliceKind::message);
      } else if (is_of_messages(load.load) && from && from->rank != out_.rank) {
        write_message(load, std::max(0.0, timed.start - each(load, &TimedLoad::seconds)), pass,
                      SliceKind::collective);
      }
    }
    return blocks ? seconds : 0;
  }

  void write_message(const TimedLoad& load, double start, std::int32_t pass, SliceKind kind) {
    const double before = free_from_[load.load.group.name];
    TimedLoad waited = load;
    waited.behind = Behind::nothing;
    write_call({.load = &waited}, start, pass);
    free_from_[load.load.group.name] = std::max(before, start);
    Slice& slice = out_.slices.back();
    slice.kind = kind;
    slice.call.behind = load.behind;
    if (kind == SliceKind::message) slice.name = "message";
  }

  // Reductions end when the optimizer can begin, as far as they are hidden beside the last backward
  // pass; gathers follow it.
  void write_end() {
    const RankClock& clock = out_.clock;
    double hidden = 0;
    for (const Item& item : at_end_) {
      if (item.load == nullptr || gathers(item)) continue;
      const auto times = static_cast<double>(item.times);
      hidden +=
          times * (each(*item.load, &TimedLoad::seconds) - each(*item.load, &TimedLoad::exposed));
    }
    double reduced = std::max(0.0, clock.passed() - hidden);
    double gathered = clock.updated;
    bool updated = false;
    for (const Item& item : at_end_) {
      if (item.load == nullptr) {
        const Played& event = out_.events[item.event];
        out_.order.push_back(
            {false, item.event, event.phase == Phase::checkpoint ? clock.gathered : clock.reduced});
        continue;
      }
      double& now = gathers(item) ? gathered : reduced;
      if (gathers(item) && !updated) {
        write_compute("optimizer", clock.reduced, clock.updated, -1);
        updated = true;
      }
      write_call(item, now, -1);
      now = out_.slices.back().start + out_.slices.back().seconds;
    }
    if (!updated) write_compute("optimizer", clock.reduced, clock.updated, -1);
  }

  static bool gathers(const Item& item) {
    return item.load->load.collective == Collective::all_gather;
  }

  const Problem& p_;
  Stage stage_;
  StageProgram program_;
  std::vector<Pass> order_;
  Pipeline pipeline_;
  std::vector<TimedLoad> loads_;
  std::vector<std::int64_t> placed_;  // calls of each load
  double shown_;                      // part of the step's micro-batches
  LoadList blocks_;
  std::vector<std::vector<ChunkPart>> parts_;  // of each chunk
  std::vector<std::vector<Item>> items_;       // of each pass
  std::vector<Item> at_end_;
  std::map<std::string_view, double> free_from_;  // streams
  RankStreams out_;
};

}  // namespace

RankStreams rank_streams(const Problem& problem,
                         const Evaluator& evaluator,
                         const StepTime& time,
                         std::int64_t rank,
                         std::int64_t micro_batches) {
  return StreamWriter(problem, evaluator, time, rank, micro_batches).write();
}

}  // namespace zeroplan
