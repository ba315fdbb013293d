#pragma once
// Private to the page: its sections, each made from a part of the document. A section without a
// paragraph, figure, table or list is left out.

#include <nlohmann/json.hpp>
#include <string>

#include "cli/page/page.hpp"

namespace zeroplan {

// Sections of one of the `plans`; where there are two, their labels tell them apart.
Section memory_section(const nlohmann::ordered_json& plan);
Section step_section(const nlohmann::ordered_json& plan);
Section moves_section(const nlohmann::ordered_json& plan);
Section schedule_section(const nlohmann::ordered_json& plan);
Section communication_section(const nlohmann::ordered_json& plan);
Section launch_section(const nlohmann::ordered_json& plan);

// Sections of the whole page.
Section differences_section(const nlohmann::ordered_json& page);
Section remedies_section(const nlohmann::ordered_json& page);
Section search_section(const nlohmann::ordered_json& page);
Section map_section(const nlohmann::ordered_json& page);
Section sensitivity_section(const nlohmann::ordered_json& page);
Section zero_section(const nlohmann::ordered_json& page);
Section certainty_section(const nlohmann::ordered_json& page);
Section commands_section(const nlohmann::ordered_json& page);
Section assumptions_section(const nlohmann::ordered_json& page);

/// The id of a section: `memory`, or `memory-a` where the plan has a label.
std::string section_id(const std::string& name, const nlohmann::ordered_json& plan);

/// The title of a section: "Memory", or "Memory of a" where the plan has a label.
std::string section_title(const std::string& title, const nlohmann::ordered_json& plan);

}  // namespace zeroplan
