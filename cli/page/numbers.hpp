#pragma once
// Private to the page: numbers of its document as people read them.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace zeroplan {

/// 71009566720 as "66.13".
std::string gib(const nlohmann::ordered_json& bytes);
double gib_value(const nlohmann::ordered_json& bytes);

/// To three digits or more, with unit: "70.9 s", "812 ms"; a dash for null.
std::string seconds(const nlohmann::ordered_json& value);

/// 0.638 as "63.8 %".
std::string percent(double part);

/// 1e12 as "1T", 300e9 as "300B".
std::string tokens_words(const nlohmann::ordered_json& tokens);

/// Rounded, with commas.
std::string rounded(double value);

/// 1 as "above 99 %".
std::string probability(double value);

/// "12.3 GB" in powers of 1000, as links are sold.
std::string decimal_bytes(double bytes);

/// "fits", "tight", "does not fit".
std::string verdict_words(const nlohmann::ordered_json& verdict);

/// "dp 8 x tp 4 x pp 4, vpp 2, ZeRO 1, micro-batch 1 x 124, recompute none".
std::string layout_words(const nlohmann::ordered_json& fit);

}  // namespace zeroplan
