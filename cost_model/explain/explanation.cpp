// What is each row the sum of? Front door: explain.
#include "cost_model/explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/explain/sources.hpp"
#include "cost_model/states/buffers.hpp"
#include "cost_model/states/overheads.hpp"

namespace zeroplan {
namespace {

Bytes rounded(Bytes bytes) {
  return Bytes{round_up(bytes.count(), allocation_unit)};
}

// Every tensor that a stage's program may make, always in the same order.
std::vector<TensorSpec> all_specs(const StageProgram& program) {
  std::vector<TensorSpec> specs = program.resident;
  const auto append = [&](const std::vector<TensorSpec>& more) {
    specs.insert(specs.end(), more.begin(), more.end());
  };
  append(program.step.tensors);
  for (const ChunkProgram& chunk : program.chunks) {
    for (const Run& run : chunk.runs) append(run.block->block().tensors);
    for (const Run& run : chunk.first_runs) append(run.block->block().tensors);
    for (const Run& run : chunk.last_runs) append(run.block->block().tensors);
    for (const Runs& runs : chunk.each) {
      for (const Run& run : runs) append(run.block->block().tensors);
    }
  }
  // What crosses between stages; the names are the schedule's.
  if (program.boundary > Bytes{}) specs.push_back({"", program.boundary, Category::activations});
  return specs;
}

// All tensors that the program of a problem may make.
std::vector<TensorSpec> tensors_of(const Problem& p, const Stage& stage) {
  return all_specs(Evaluator(p).stage_program(p, stage));
}

// Formulas of tensors, found by name and size.
class TensorFormulas {
 public:
  TensorFormulas(const Problem& problem, const Stage& stage)
      : specs_(tensors_of(problem, stage)),
        formulas_(formulas(
            problem,
            stage,
            [&](const Problem& p) { return sizes(tensors_of(p, stage)); },
            allocation_unit)) {}

  const Formula* find(const LiveTensors& tensors) const {
    const Formula* of_boundary = nullptr;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].bytes != tensors.each || !formulas_[i]) continue;
      if (specs_[i].name == tensors.name && specs_[i].category == tensors.category) {
        return &*formulas_[i];
      }
      if (specs_[i].name.empty()) of_boundary = &*formulas_[i];
    }
    return of_boundary;
  }

 private:
  static std::vector<std::int64_t> sizes(const std::vector<TensorSpec>& specs) {
    std::vector<std::int64_t> list;
    for (const TensorSpec& spec : specs) list.push_back(spec.bytes.count());
    return list;
  }

  std::vector<TensorSpec> specs_;
  std::vector<std::optional<Formula>> formulas_;
};

// Which count a term is of, by name; the number itself where it is of none.
std::string named(std::int64_t elements, const std::vector<Symbol>& counts) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (counts[i].value == elements) return std::string(counts[i].name);
  }
  return fmt::format("{}", elements);
}

class Explainer {
 public:
  Explainer(const Problem& problem,
            const Evaluator& evaluator,
            const Stage& stage,
            const StageMemory& memory)
      : p_(problem),
        evaluator_(evaluator),
        stage_(stage),
        memory_(memory),
        counts_(element_counts(problem, stage)),
        states_(state_terms(problem, evaluator.weights(), stage)),
        formulas_(problem, stage) {}

  std::vector<ExplainedRow> rows() {
    const std::vector<LiveTensors> live = live_tensors(p_, evaluator_, stage_, memory_.stage);
    std::vector<ExplainedRow> rows;
    for (std::size_t i = 0; i < names<Category>().size(); ++i) {
      const auto category = static_cast<Category>(i);
      ExplainedRow row{category, memory_.memory[category], {}, source_of(p_, category)};
      for (const LiveTensors& tensors : live) {
        if (tensors.category == category) row.parts.push_back(part(tensors));
      }
      std::stable_sort(
          row.parts.begin(), row.parts.end(),
          [](const ExplainedPart& a, const ExplainedPart& b) { return a.total() > b.total(); });
      rows.push_back(std::move(row));
    }
    add_waste(rows[static_cast<std::size_t>(Category::fragmentation)]);
    add_communicators(rows[static_cast<std::size_t>(Category::communicators)]);
    add(rows[static_cast<std::size_t>(Category::context)], "CUDA context with loaded kernels",
        context_bytes(p_));
    return rows;
  }

 private:
  static void add(ExplainedRow& row, std::string name, Bytes bytes) {
    if (bytes != Bytes{}) row.parts.push_back({.name = std::move(name), .each = bytes});
  }

  ExplainedPart part(const LiveTensors& tensors) const {
    ExplainedPart part{
        .name = std::string(tensors.name), .count = tensors.count, .each = tensors.each};
    part.terms = terms_of(tensors);
    if (!part.terms.empty()) return part;
    if (const Formula* formula = formulas_.find(tensors)) {
      part.symbols = formula->in_symbols();
      part.numbers = formula->in_numbers();
    }
    return part;
  }

  // What a model state or the workspaces are the sum of, if that sum is this tensor.
  std::vector<ExplainedTerm> terms_of(const LiveTensors& tensors) const {
    std::vector<ExplainedTerm> terms;
    Bytes sum;
    for (const StateTerm& term : states_) {
      if (term.category != tensors.category || term.total() == Bytes{}) continue;
      terms.push_back({std::string(term.what),
                       fmt::format("{} {}", term.bytes, named(term.elements, counts_)),
                       fmt::format("{} x {}", term.bytes, term.elements), term.total()});
      sum += term.total();
    }
    if (tensors.category == Category::workspace) {
      for (const Workspace& w : workspaces(p_, evaluator_.weights(), stage_)) {
        terms.push_back({std::string(w.name), "", "", w.bytes});
        sum += w.bytes;
      }
    }
    if (sum == Bytes{} || rounded(sum) != rounded(tensors.each)) return {};
    const Bytes padding = tensors.each - sum;
    if (padding != Bytes{}) terms.push_back({"rounded up to 512 bytes", "", "", padding});
    return terms;
  }

  void add_waste(ExplainedRow& row) const {
    if (!memory_.phases.empty()) {
      add(row, "blocks larger than what was asked for", memory_.unsplit_blocks);
      add(row, "cached blocks that nothing fitted", row.bytes - memory_.unsplit_blocks);
      return;
    }
    const Bytes allocated = memory_.memory.allocated();
    add(row, "not replayed on this stage: the median waste of published runs", row.bytes);
    if (row.parts.empty()) return;
    const std::int64_t thousandths = row.bytes.count() / (allocated.count() / 1000);
    row.parts.back().symbols = fmt::format("{} allocated / 1000", thousandths);
    row.parts.back().numbers = fmt::format("{} x ({} / 1000)", thousandths, allocated.count());
  }

  void add_communicators(ExplainedRow& row) const {
    if (row.bytes == Bytes{}) return;
    for (const ProcessGroup& group : process_groups(p_)) {
      add(row,
          fmt::format("{}: {} ranks, {}{}", group.name, group.ranks,
                      group.spans_nodes ? "over the network" : "inside a node",
                      is_measured(p_, group) ? ", measured" : ""),
          communicator_bytes(p_, group));
    }
    if (const Bytes buffers = user_buffer_bytes(p_); buffers > Bytes{}) {
      add(row, "user buffers of 12 products", buffers);
    }
    if (const Bytes buffers = symmetric_memory_bytes(p_); buffers > Bytes{}) {
      add(row, "symmetric memory, two parts of a hidden state", buffers);
    }
    if (const Bytes buffers = dispatch_buffer_bytes(p_); buffers > Bytes{}) {
      add(row, "the dispatcher's own buffer", buffers);
    }
  }

  const Problem& p_;
  const Evaluator& evaluator_;
  const Stage& stage_;
  const StageMemory& memory_;
  std::vector<Symbol> counts_;
  StateTerms states_;
  TensorFormulas formulas_;
};

}  // namespace

Explanation explain(const Problem& problem,
                    const Evaluator& evaluator,
                    const Stage& stage,
                    const StageMemory& memory) {
  Explanation result{.rows = Explainer(problem, evaluator, stage, memory).rows()};
  if (!problem.runtime.recorded) {  // whose shape nobody knows
    for (const Doubling& d : doublings(problem)) result.symbols.push_back(d.symbol);
    for (const Symbol& count : element_counts(problem, stage)) {
      if (count.value > 0) result.symbols.push_back(count);
    }
    add_weights(result, problem, evaluator.weights(), stage);
  }
  result.loads = explained_loads(problem, evaluator.weights(), stage);
  result.flops = flop_terms(problem, problem.training.scores);
  return result;
}

}  // namespace zeroplan
