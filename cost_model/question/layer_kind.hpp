#pragma once
// What kinds of layers does a model have, and one value for each of them.

#include <array>
#include <cstddef>
#include <string_view>

namespace zeroplan {

/// What a layer's two halves are: attention, and what stands where the MLP stands.
enum class LayerKind {
  dense,         // attention and MLP
  moe,           // attention and experts
  linear_dense,  // linear attention or a state space, and MLP
  linear_moe     // the same, and experts
};

/// All of them, in that order.
inline constexpr std::array all_layer_kinds{LayerKind::dense, LayerKind::moe,
                                            LayerKind::linear_dense, LayerKind::linear_moe};

/// Whether experts stand where the MLP stands.
constexpr bool has_experts(LayerKind kind) {
  return kind == LayerKind::moe || kind == LayerKind::linear_moe;
}

/// The kind that differs in its attention alone.
constexpr LayerKind with_linear_attention(LayerKind kind) {
  return has_experts(kind) ? LayerKind::linear_moe : LayerKind::linear_dense;
}

/// Whether its attention keeps a state instead of comparing all keys.
constexpr bool is_linear(LayerKind kind) {
  return kind == LayerKind::linear_dense || kind == LayerKind::linear_moe;
}

/// As users read it: "MoE layer".
constexpr std::string_view name_of(LayerKind kind) {
  constexpr std::array<std::string_view, all_layer_kinds.size()> names{
      "dense layer", "MoE layer", "linear-attention layer", "linear-attention MoE layer"};
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
