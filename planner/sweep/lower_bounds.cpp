// How many seconds can no layout below a node undercut? Front door: LowerBounds::node_time.
#include "planner/sweep/lower_bounds.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "cost_model/answer/stage_memory.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/pipeline/messages.hpp"
#include "cost_model/pipeline/rounds.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/states/overheads.hpp"

namespace zeroplan {
namespace {

// Sums in another order than step_time's may differ in their last digits.
constexpr double rounding = 1e-9;

PassBound block_floor(const TimedBlock& block) {
  const BlockTime& time = block.kernels;
  return {.forward = time.forward.total() + block.loads.waited.forward,
          .backward =
              (time.input_gradient + time.weight_gradient).total() + block.loads.waited.backward,
          .recompute = time.recompute.total() + block.repeated.waited.backward,
          .lesser = block.lesser
                        ? block.lesser->kernels.total() + block.lesser->loads.waited.backward
                        : 0,
          .host = time.host};
}

// What blocks of equal degrees read: of recompute what runs again, not in how many layers.
Numbers<5> blocks_key(const Problem& p) {
  const Layout& l = p.layout;
  return {repeats(p), repeated_layers(p).others, l.loss_chunks,
          static_cast<std::int64_t>(l.schedule), 2 * l.sequence_parallel + l.tp_overlap};
}

}  // namespace

void PassBound::add(const PassBound& o, std::int64_t times, std::int64_t recomputed) {
  const auto n = static_cast<double>(times);
  forward += n * o.forward;
  backward += n * o.backward + static_cast<double>(recomputed) * o.recompute +
              static_cast<double>(times - recomputed) * o.lesser;
  host.forward += n * o.host.forward;
  host.backward += n * o.host.backward;
}

const LowerBounds::Blocks& LowerBounds::blocks(const Problem& p) {
  const Layout& l = p.layout;
  // Blocks depend on no more of pp and vpp than whose layers run.
  auto& known =
      blocks_.at({p.cluster.gpus, l.micro_batch, l.tp, l.cp, l.ep, l.etp, runs_megatron_layers(p)});
  const auto [found, added] = known.try_emplace(blocks_key(p));
  if (!added) return found->second;
  // Problems of one space differ in their layouts alone.
  const BlockTimes times = asked_ ? evaluator_.block_times_of_layout(p) : evaluator_.block_times(p);
  asked_ = true;
  Blocks& floors = found->second;
  floors.embedding = block_floor(times.embedding);
  floors.head = block_floor(times.head);
  for (const LayerKind kind : all_layer_kinds) {
    if (evaluator_.weights().has(kind)) floors.layers[kind] = block_floor(times.layer(kind));
  }
  return floors;
}

LowerBounds::Chunk LowerBounds::chunk_of(const ModelSpec& model, const LayerRange& layers) {
  return {.layers = layers, .of_kind = layers_by_kind(model, layers.first, layers.last)};
}

double LowerBounds::chunk_seconds(const Problem& p,
                                  const Blocks& bounds,
                                  const Chunk& chunk,
                                  std::int64_t recomputed) {
  PassBound time;
  for (const LayerKind kind : all_layer_kinds) {
    const std::int64_t count = chunk.of_kind[kind];
    if (count == 0) continue;
    const PassBound& layer = bounds.layers[kind];
    const LayerRange& range = chunk.layers;
    const std::int64_t again =
        layer.recompute == 0 ? 0
        : recomputed == as_problem_says
            ? recomputed_layers(p, range, kind, count)
            : layers_of_kind(p.model, range.first, std::min(range.last, range.first + recomputed),
                             kind);
    time.add(layer, count, again);
  }
  if (chunk.embedding) time.add(bounds.embedding, 1, 0);
  if (chunk.head) time.add(bounds.head, 1, 0);
  return time.seconds();
}

double LowerBounds::message(const Problem& p) {
  if (p.layout.pp == 1) return 0;
  const Layout& l = p.layout;
  const auto [found, added] = messages_.try_emplace(
      {l.micro_batch, l.tp, l.cp, l.pp, l.sequence_parallel, p.training.sequence_length}, 0.0);
  if (added) found->second = message_seconds(p);
  return found->second;
}

double LowerBounds::time(const Problem& p, std::int64_t recomputed) {
  // A zero-bubble schedule puts off gradients of weights, and DualPipe fills from both ends.
  const bool fills = !splits_backward(p.layout.schedule);
  return (1 - rounding) * (1 + straggling_) *
         (fills ? filling_time(p, recomputed) : longest_time(p, recomputed));
}

const LowerBounds::Cut& LowerBounds::cut(const Problem& p) {
  const Layout& l = p.layout;
  const Numbers<4> key{l.pp, l.vpp, l.first_stage, l.last_stage};
  if (last_cut_ != nullptr && key == last_cut_key_) return *last_cut_;
  const auto [found, added] = cuts_.try_emplace(key);
  Cut& cut = found->second;
  last_cut_key_ = key;
  last_cut_ = &cut;
  if (!added) return cut;
  const std::vector<std::int64_t> sizes = chunk_sizes(p);
  const auto ranks = static_cast<std::size_t>(l.pp);
  std::vector<Ranks> all(ranks, {.count = 1});
  std::int64_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Chunk chunk = chunk_of(p.model, {first, first + sizes[i]});
    chunk.embedding = i == 0;
    chunk.head = i + 1 == sizes.size();
    first += sizes[i];
    const auto known = std::ranges::find_if(cut.kinds, [&](const Chunk& kind) {
      return kind.embedding == chunk.embedding && kind.head == chunk.head &&
             alike_layers(p.model, kind.layers, chunk.layers);
    });
    all[i % ranks].chunks.push_back(static_cast<std::size_t>(known - cut.kinds.begin()));
    if (known == cut.kinds.end()) cut.kinds.push_back(chunk);
  }
  for (Ranks& rank : all) {
    if (!cut.runs.empty() && cut.runs.back().chunks == rank.chunks) {
      ++cut.runs.back().count;
    } else {
      cut.runs.push_back(std::move(rank));
    }
  }
  return cut;
}

double LowerBounds::filling_time(const Problem& p, std::int64_t recomputed) {
  const Cut& cut = this->cut(p);
  const Blocks& bounds = blocks(p);
  const double message = this->message(p);
  const bool blocking = sends_block(p);
  seconds_.clear();
  for (const Chunk& kind : cut.kinds) {
    // Messages: forward for the chunk after this one, backward for the one before.
    const int exchanges = !kind.head + !kind.embedding;
    seconds_.push_back(chunk_seconds(p, bounds, kind, recomputed) +
                       (blocking ? message * exchanges : 0));
  }
  const auto passes = static_cast<double>(forward_passes(p));
  double bound = 0;
  double before = 0;  // forward and backward of one chunk on each rank before
  for (const Ranks& run : cut.runs) {
    if (run.chunks.empty()) continue;
    double all = 0;  // chunks of a rank, one micro-batch
    for (const std::size_t kind : run.chunks) all += seconds_[kind];
    // The first chunk of a rank, with the messages to it and back.
    const double first = seconds_[run.chunks.front()] + (blocking ? 0 : 2 * message);
    const auto others = static_cast<double>(run.count - 1);
    bound = std::max(bound, before + others * first + passes * all);
    before += (others + 1) * first;
  }
  return bound;
}

double LowerBounds::longest_time(const Problem& p, std::int64_t recomputed) {
  const auto passes = static_cast<double>(forward_passes(p));
  const Blocks& bounds = blocks(p);
  double longest = 0;
  for (const Stage& stage : stages(p)) {
    double all = 0;
    for (const Stage& alone : chunks_of(stage)) {
      Chunk chunk = chunk_of(p.model, alone.chunks.front());
      chunk.embedding = alone.embedding;
      chunk.head = alone.head;
      all += chunk_seconds(p, bounds, chunk, recomputed);
    }
    longest = std::max(longest, passes * all);
  }
  return longest;
}

double LowerBounds::node_time(const Problem& node) {
  const bool open = choices(space_, Field::recompute_layers, node).size() > 1;
  return open ? time(node, 1) : time(node);
}

double LowerBounds::pass_time(const Problem& pass) {
  const std::int64_t least = choices(space_, Field::recompute, pass).front();
  if (static_cast<Recompute>(least) == Recompute::none) return node_time(pass);
  Problem& node = follow(node_, pass);
  set_value(node.layout, Field::recompute, least);
  double bound = std::numeric_limits<double>::infinity();
  for (const std::int64_t modules : choices(space_, Field::recompute_modules, node)) {
    set_value(node.layout, Field::recompute_modules, modules);
    derive_flags(space_.request, node);
    bound = std::min(bound, node_time(node));
  }
  return bound;
}

// Nodes that repeat parts need at least what those need that repeat nothing; others what those of
// their like do that repeat least.
double LowerBounds::repeating_time(const Problem& pass, Repeating what, RepeatedRange layers) {
  Problem& node = follow(node_, pass);
  if (what == Repeating::all) {
    set_value(node.layout, Field::recompute, static_cast<std::int64_t>(Recompute::full));
    derive_flags(space_.request, node);
    return time(node, layers.fewest);
  }
  if (what != Repeating::mlp) return pass_time(pass);
  set_value(node.layout, Field::recompute, static_cast<std::int64_t>(Recompute::selective));
  for (const std::int64_t modules : choices(space_, Field::recompute_modules, node)) {
    set_value(node.layout, Field::recompute_modules, modules);
    if (repeating_of(node.layout) != what) continue;
    derive_flags(space_.request, node);
    return time(node);
  }
  return pass_time(pass);
}

double passes_seconds(const LayoutPieces& group) {
  const std::vector<double>& finished = group.finished();
  const double off = std::max(rounding, continued_error(group.problem()));
  return (1 - off) * (1 + group.straggling()) * *std::max_element(finished.begin(), finished.end());
}

double point_time(const PlanPoint& point, double passes) {
  const LayoutPieces& group = point.layout();
  const Problem& p = group.problem();
  const auto times = static_cast<double>(forward_passes(p));
  double longest = 0;
  for (std::size_t run = 0; run < group.runs(); ++run) {
    const StagePasses& own = group.passes(run);
    const Directions part = added_part(point.loads(run), own, p.cluster);
    longest = std::max(longest, times * ((1 + part.forward) * own.once.forward +
                                         (1 + part.backward) * own.once.backward));
  }
  double update = 0;
  if (!splits_backward(p.layout.schedule)) {
    const UpdateLoads& first = point.loads(0);
    const AtEnd exposed = exposed_at_end(first, group.passes(0), p.cluster);
    update = exposed.reductions + exposed.gathers + first.optimizer;
  }
  const double slower = (1 - rounding) * (1 + group.straggling());
  return std::max(passes, slower * longest) + slower * update;
}

}  // namespace zeroplan
