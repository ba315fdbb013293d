// How is a page written for a browser? Front door: page_html.
#include <fmt/format.h>

#include "cli/page/html.hpp"
#include "cli/page/page.hpp"
#include "cli/page/page_assets.hpp"

namespace zeroplan {
namespace {

std::string legend_html(const std::vector<LegendEntry>& legend) {
  if (legend.empty()) return "";
  std::string out = "<ul class=\"legend\">\n";
  for (const auto& [style, name] : legend) {
    out += fmt::format(
        "<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><rect x=\"1\" y=\"1\" width=\"12\" "
        "height=\"12\" class=\"key {}\"/></svg>{}</li>\n",
        style, html_text(name));
  }
  return out + "</ul>\n";
}

std::string figure_html(const Figure& figure) {
  return fmt::format(
      "<figure>\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n{}</figure>\n",
      figure.wide, figure.narrow, legend_html(figure.legend));
}

constexpr std::size_t many_columns = 11;

// Numbers to the right; words that are short stay on a line.
std::string class_of(const PageTable& table, std::size_t row, std::size_t i) {
  const bool number = i < table.columns.size() && table.columns[i].number;
  constexpr std::size_t short_words = 14;
  std::string name = number ? "number" : table.rows[row][i].size() <= short_words ? "short" : "";
  if (row < table.styles.size() && !table.styles[row][i].empty()) {
    name += (name.empty() ? "" : " ") + table.styles[row][i];
  }
  return name.empty() ? "" : fmt::format(" class=\"{}\"", name);
}

std::string table_html(const PageTable& table) {
  const char* const kind = table.stacked                          ? " class=\"stacked\""
                           : table.columns.size() >= many_columns ? " class=\"many\""
                                                                  : "";
  std::string rows = fmt::format("<div class=\"scroll\"><table{}>\n", kind);
  if (!table.caption.empty() && !table.folded)
    rows += fmt::format("<caption>{}</caption>\n", html_text(table.caption));
  rows += "<thead><tr>";
  for (const Column& column : table.columns) {
    rows += fmt::format("<th scope=\"col\"{}>{}</th>", column.number ? " class=\"number\"" : "",
                        html_text(column.name));
  }
  rows += "</tr></thead>\n<tbody>\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    rows += "<tr>";
    for (std::size_t i = 0; i < table.rows[row].size(); ++i) {
      rows += fmt::format("<td{}>{}</td>", class_of(table, row, i), html_prose(table.rows[row][i]));
    }
    rows += "</tr>\n";
  }
  rows += "</tbody></table></div>\n";
  if (!table.folded) return rows;
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_text(table.caption),
                     rows);
}

std::string section_html(const Section& section) {
  std::string out =
      fmt::format("<section id=\"{}\" aria-labelledby=\"{}-h\">\n<h2 id=\"{}-h\">{}</h2>\n",
                  section.id, section.id, section.id, html_text(section.title));
  for (const std::string& text : section.paragraphs)
    out += fmt::format("<p>{}</p>\n", html_prose(text));
  for (const Figure& figure : section.figures) out += figure_html(figure);
  for (const PageTable& table : section.tables) out += table_html(table);
  for (const CodeBlock& code : section.codes) {
    out += fmt::format(
        "<div class=\"code\"><p>{}</p><pre tabindex=\"0\"><code>{}</code></pre></div>\n",
        html_text(code.caption), code.command ? html_command(code.text) : html_text(code.text));
  }
  if (!section.items.empty()) {
    out += "<ul>\n";
    for (const std::string& item : section.items)
      out += fmt::format("<li>{}</li>\n", html_prose(item));
    out += "</ul>\n";
  }
  return out + "</section>\n";
}

std::string tiles_html(const std::vector<Tile>& tiles) {
  if (tiles.empty()) return "";
  std::string out = "<dl class=\"tiles\">\n";
  for (const Tile& tile : tiles) {
    out += fmt::format("<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", html_text(tile.name),
                       html_text(tile.value), html_text(tile.beside));
  }
  return out + "</dl>\n";
}

std::string verdict_html(const std::string& verdict) {
  if (verdict.empty()) return "";
  const char* words = verdict == "fits"    ? "\u2713 fits"
                      : verdict == "tight" ? "~ tight"
                                           : "\u2717 does not fit";
  return fmt::format("<p class=\"verdict v-{}\">{}</p>\n", verdict, words);
}

}  // namespace

std::string page_html(const Page& page, const PageControls& controls) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += "<meta name=\"color-scheme\" content=\"light dark\">\n";
  out += fmt::format("<title>{} \u2013 zeroplan</title>\n<style>\n", html_text(page.title));
  out += page_style();
  out += controls.style;
  out += "</style>\n</head>\n<body>\n" + controls.above + "<header>\n";
  out += fmt::format("<h1>{}</h1>\n{}<p class=\"sentence\">{}</p>\n{}", html_text(page.title),
                     verdict_html(page.verdict), html_prose(page.sentence), tiles_html(page.tiles));
  out += "</header>\n<main>\n";
  for (const Section& section : page.sections) out += section_html(section);
  out += fmt::format("</main>\n<footer><p>{}</p></footer>\n", html_text(page.footer));
  out += "<script type=\"application/json\" id=\"answer\">";
  out += json_in_html(
      page.answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  out += "</script>\n<script>\n";
  out += page_script();
  out += controls.script;
  return out + "</script>\n</body>\n</html>\n";
}

}  // namespace zeroplan
