// Which sizes do formulas name? Front door: doublings.
#include "cost_model/explain/symbols.hpp"

namespace zeroplan {
namespace {

// The problem, twice as wide in everything that tensor parallelism divides.
Problem wider(Problem p) {
  ModelSpec& m = p.model;
  m.hidden_size *= 2;
  m.mlp.intermediate_size *= 2;
  m.attention.heads *= 2;
  m.attention.kv_heads *= 2;
  m.vocab_size *= 2;
  if (m.moe) {
    m.moe->intermediate_size *= 2;
    m.moe->shared_intermediate_size *= 2;
  }
  return p;
}

// The problem, with a vocabulary that needs no padding.
Problem padded(Problem p) {
  const Weight table{.rows = p.model.vocab_size, .split = Split::vocabulary};
  p.model.vocab_size = local_weight(table, p).rows * p.layout.tp;
  return p;
}

class List {
 public:
  explicit List(const Problem& problem) : problem_(problem) {}

  template <class Change>
  void add(Symbol symbol, const Problem& before, Change&& change) {
    if (symbol.value == 0) return;
    Problem after = before;
    change(after);
    list_.push_back({symbol, before, std::move(after)});
  }
  template <class Change>
  void add(Symbol symbol, Change&& change) {
    add(symbol, problem_, change);
  }

  std::vector<Doubling> take() { return std::move(list_); }

 private:
  const Problem& problem_;
  std::vector<Doubling> list_;
};

}  // namespace

std::vector<Doubling> doublings(const Problem& problem) {
  const ModelSpec& m = problem.model;
  const Layout& l = problem.layout;
  List list(problem);
  list.add({"b", "samples of a micro-batch", l.micro_batch}, [](Problem& p) {
    p.layout.micro_batch *= 2;
    p.training.global_batch *= 2;
  });
  const auto longer = [](Problem& p) { p.training.sequence_length *= 2; };
  list.add({"s", "tokens of a sample", problem.training.sequence_length}, longer);
  list.add({"h", "hidden size", m.hidden_size}, [](Problem& p) { p.model.hidden_size *= 2; });
  list.add({"f", "intermediate size", m.mlp.intermediate_size},
           [](Problem& p) { p.model.mlp.intermediate_size *= 2; });
  if (m.moe) {
    list.add({"f_e", "intermediate size of an expert", m.moe->intermediate_size},
             [](Problem& p) { p.model.moe->intermediate_size *= 2; });
  }
  const bool all_heads_alike = m.attention.kv_heads == m.attention.heads;
  list.add({"a", "attention heads", m.attention.heads}, [&](Problem& p) {
    p.model.attention.heads *= 2;
    if (all_heads_alike) p.model.attention.kv_heads *= 2;
  });
  if (!all_heads_alike) {
    list.add({"k", "key-value heads", m.attention.kv_heads},
             [](Problem& p) { p.model.attention.kv_heads *= 2; });
  }
  if (!m.attention.mla) {
    list.add({"d", "size of a head", m.attention.head_dim},
             [](Problem& p) { p.model.attention.head_dim *= 2; });
  }
  const Problem whole = padded(problem);
  list.add({"V", "vocabulary, with the runtime's padding", whole.model.vocab_size}, whole,
           [](Problem& p) { p.model.vocab_size *= 2; });
  if (l.tp > 1) {
    list.add({"t", "tensor parallel", l.tp}, wider(whole), [](Problem& p) { p.layout.tp *= 2; });
  }
  if (l.dp > 1) {
    list.add({"N_d", "data parallel", l.dp}, wider(whole), [](Problem& p) {
      p.layout.dp *= 2;
      p.training.global_batch *= 2;
    });
  }
  if (l.cp > 1) {
    Problem twice = problem;
    longer(twice);
    list.add({"c", "context parallel", l.cp}, twice, [](Problem& p) { p.layout.cp *= 2; });
  }
  return list.take();
}

std::vector<Symbol> element_counts(const Problem& problem, const Stage& stage) {
  const WeightInventory inventory = weight_inventory(problem.model);
  const StageElements all =
      stage_elements(problem, inventory, stage, state_recipe(problem).padding);
  const std::int64_t ranks = shard_widths(problem).dense;
  std::vector<Symbol> counts{
      {"\u03a8", "parameters of this rank before ZeRO divides them, with padding", all.full()},
      {"\u03a8_N", "this rank's part of them", all.shard()}};
  const auto add = [&](LayerKind kind, std::string_view whole, std::string_view part,
                       std::string_view of_whole, std::string_view of_part) {
    const std::int64_t elements = local_elements(inventory.layer(kind), problem);
    counts.push_back({whole, of_whole, elements});
    counts.push_back({part, of_part, ceil_div(elements, ranks)});
  };
  add(LayerKind::dense, "\u03a8_L", "\u03a8_L/N", "parameters of a dense layer on this rank",
      "part of a dense layer");
  add(LayerKind::moe, "\u03a8_M", "\u03a8_M/N", "parameters of an MoE layer on this rank",
      "part of an MoE layer");
  for (const LayerKind kind : {LayerKind::linear_dense, LayerKind::linear_moe, LayerKind::linear}) {
    if (!inventory.has(kind)) continue;
    const bool scans = problem.model.state_space.has_value();
    add(kind, "\u03a8_D", "\u03a8_D/N",
        scans ? "parameters of a layer with a state space on this rank"
              : "parameters of a layer with linear attention on this rank",
        scans ? "part of a layer with a state space" : "part of a layer with linear attention");
    break;  // of the first sort, where there are both
  }
  counts.push_back({"\u03a8_E", "parameters of the embedding on this rank",
                    local_elements(inventory.embedding, problem)});
  counts.push_back({"\u03a8_H", "parameters of norm and head on this rank",
                    local_elements(inventory.head, problem)});
  return counts;
}

}  // namespace zeroplan
