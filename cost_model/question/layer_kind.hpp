#pragma once
// What kinds of layers does a model have, and one value for each of them.

#include <array>
#include <cstddef>
#include <string_view>

namespace zeroplan {

/// What a layer's two halves are: attention, and what stands where the MLP stands. Some models'
/// layers are one half each (Nemotron-H).
enum class LayerKind {
  dense,         // attention and MLP
  moe,           // attention and experts
  linear_dense,  // linear attention or a state space, and MLP
  linear_moe,    // the same, and experts
  linear,        // one half alone, as all from here: linear attention or a state space
  attention,
  mlp,
  experts
};

/// All of them, in that order.
inline constexpr std::array all_layer_kinds{
    LayerKind::dense,  LayerKind::moe,       LayerKind::linear_dense, LayerKind::linear_moe,
    LayerKind::linear, LayerKind::attention, LayerKind::mlp,          LayerKind::experts};

/// Whether it has attention, of any sort.
constexpr bool has_mixer(LayerKind kind) {
  return kind != LayerKind::mlp && kind != LayerKind::experts;
}

/// Whether it has an MLP or experts.
constexpr bool has_feed_forward(LayerKind kind) {
  return kind != LayerKind::linear && kind != LayerKind::attention;
}

constexpr bool has_both_halves(LayerKind kind) {
  return has_mixer(kind) && has_feed_forward(kind);
}

/// Whether experts stand where the MLP stands.
constexpr bool has_experts(LayerKind kind) {
  return kind == LayerKind::moe || kind == LayerKind::linear_moe || kind == LayerKind::experts;
}

/// The kind that differs in its attention alone.
constexpr LayerKind with_linear_attention(LayerKind kind) {
  return has_experts(kind) ? LayerKind::linear_moe : LayerKind::linear_dense;
}

/// Whether its attention keeps a state instead of comparing all keys.
constexpr bool is_linear(LayerKind kind) {
  return kind == LayerKind::linear_dense || kind == LayerKind::linear_moe ||
         kind == LayerKind::linear;
}

/// As users read it: "MoE layer".
constexpr std::string_view name_of(LayerKind kind) {
  constexpr std::array<std::string_view, all_layer_kinds.size()> names{"dense layer",
                                                                       "MoE layer",
                                                                       "linear-attention layer",
                                                                       "linear-attention MoE layer",
                                                                       "linear-attention layer",
                                                                       "attention layer",
                                                                       "MLP layer",
                                                                       "experts layer"};
  return names[static_cast<std::size_t>(kind)];
}

/// One value for each kind of layer.
template <class T>
class ByKind {
 public:
  constexpr ByKind() = default;
  constexpr explicit ByKind(const std::array<T, all_layer_kinds.size()>& values)
      : values_(values) {}
  constexpr T& operator[](LayerKind kind) { return values_[static_cast<std::size_t>(kind)]; }
  constexpr const T& operator[](LayerKind kind) const {
    return values_[static_cast<std::size_t>(kind)];
  }
  constexpr auto begin() const { return values_.begin(); }
  constexpr auto end() const { return values_.end(); }
  friend bool operator==(const ByKind&, const ByKind&) = default;

 private:
  std::array<T, all_layer_kinds.size()> values_{};
};

}  // namespace zeroplan
