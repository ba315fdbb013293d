#pragma once
// Private to presets: how the value of a setting is typed, and said again. `take_` writes what a
// text means and says whether it means anything; `say_` gives the text.

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "cost_model/question/names.hpp"
#include "cost_model/question/runtime_settings.hpp"

namespace zeroplan {

/// "2.11" as 211.
bool take_version(std::int64_t& version, std::string_view text);
/// "2.11" as 211, or "local" as 0.
bool take_engine_version(RuntimeSpec& r, std::string_view text);
bool take_core_version(RuntimeSpec& r, std::string_view text);
bool take_deepspeed_version(RuntimeSpec& r, std::string_view text);
/// "26.06" as 2606; a third number, of a container that was mended, changes nothing.
bool take_container(RuntimeSpec& r, std::string_view text);
std::string say_container(const RuntimeSpec& r);
std::string version_text(std::int64_t version);
std::string say_engine_version(const RuntimeSpec& r);
std::string say_core_version(const RuntimeSpec& r);
std::string say_deepspeed_version(const RuntimeSpec& r);
/// Bytes of optimizer state a parameter: the master copy is among them, of 4 bytes; 0: not said.
bool take_optimizer_bytes(RuntimeSpec& r, std::string_view text);
std::string say_optimizer_bytes(const RuntimeSpec& r);
/// "2025-02-06" as 20250206; a month is its last day.
bool take_date(RuntimeSpec& r, std::string_view text);
std::string say_date(const RuntimeSpec& r);
bool take_selective_option(RuntimeSpec& r, std::string_view text);
std::string say_selective_option(const RuntimeSpec& r);
bool take_modules(RuntimeSpec& r, std::string_view text);
bool take_offloaded(RuntimeSpec& r, std::string_view text);
bool take_graph_scope(RuntimeSpec& r, std::string_view text);
std::string say_graph_scope(const RuntimeSpec& r);
std::string say_modules(const RuntimeSpec& r);
std::string say_offloaded(const RuntimeSpec& r);
bool take_pipeline_layout(RuntimeSpec& r, std::string_view text);
std::string say_pipeline_layout(const RuntimeSpec& r);

bool take_torch_version(RuntimeSpec& r, std::string_view text);
std::string say_torch_version(const RuntimeSpec& r);

template <auto field>
bool take_fsdp2_version(RuntimeSpec& r, std::string_view text) {
  return take_version(r.fsdp2.*field, text);
}

template <auto field>
std::string say_fsdp2_version(const RuntimeSpec& r) {
  return version_text(r.fsdp2.*field);
}

/// A choice by its name, in a field of one runtime's settings or of all.
template <auto... field>
bool take_name(RuntimeSpec& r, std::string_view text) {
  auto& choice = (r.*....*field);
  const auto value = parse_name<std::remove_reference_t<decltype(choice)>>(text);
  if (value) choice = *value;
  return value.has_value();
}

template <auto... field>
std::string say_name(const RuntimeSpec& r) {
  return std::string(name_of((r.*....*field)));
}

}  // namespace zeroplan
