// How is a page written for a ticket? Front door: page_markdown.
#include <fmt/format.h>

#include "cli/page/html.hpp"
#include "cli/page/page.hpp"

namespace zeroplan {
namespace {

std::string table_text(const PageTable& table) {
  std::string out;
  if (!table.caption.empty()) out += markdown_text(table.caption) + "\n\n";
  std::string rule = "|";
  out += "|";
  for (const Column& column : table.columns) {
    out += " " + markdown_text(column.name) + " |";
    rule += column.number ? "--:|" : ":--|";
  }
  out += "\n" + rule + "\n";
  for (const std::vector<std::string>& row : table.rows) {
    out += "|";
    for (const std::string& cell : row) out += " " + markdown_text(cell) + " |";
    out += "\n";
  }
  return out + "\n";
}

}  // namespace

std::string page_markdown(const Page& page) {
  std::string out =
      fmt::format("# {}\n\n{}\n\n", markdown_text(page.title), markdown_text(page.sentence));
  for (const Section& section : page.sections) {
    out += fmt::format("## {}\n\n", markdown_text(section.title));
    for (const std::string& text : section.paragraphs) out += markdown_text(text) + "\n\n";
    for (const PageTable& table : section.tables) out += table_text(table);
    for (const CodeBlock& code : section.codes) {
      out += markdown_text(code.caption) + ":\n\n" + markdown_code(code.text) + "\n";
    }
    for (const std::string& item : section.items) out += "- " + markdown_text(item) + "\n";
    if (!section.items.empty()) out += "\n";
  }
  return out + markdown_text(page.footer) + "\n";
}

}  // namespace zeroplan
