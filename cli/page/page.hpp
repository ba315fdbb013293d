#pragma once
// A page to send: what an answer says, as parts that HTML and Markdown are written from.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan {

struct Column {
  std::string name;
  bool number = true;  // stands at the right
};

struct PageTable {
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  bool folded = false;   // shown on demand: the numbers of a figure
  bool stacked = false;  // on a phone the words of a row stand below its numbers
  std::vector<std::vector<std::string>> styles = {};  // class of each cell; none where empty
};

struct LegendEntry {
  std::string style;  // class of the stylesheet
  std::string name;
};

/// A drawing for two widths, of which the stylesheet shows one.
struct Figure {
  std::string wide;
  std::string narrow;
  std::vector<LegendEntry> legend;
};

struct CodeBlock {
  std::string caption;
  std::string text;
  bool command = false;  // one line, broken between its options
};

struct Section {
  std::string id;
  std::string title;
  std::vector<std::string> paragraphs;
  std::vector<Figure> figures;
  std::vector<PageTable> tables;
  std::vector<CodeBlock> codes;
  std::vector<std::string> items;
};

/// One number under the sentence of a page.
struct Tile {
  std::string name;
  std::string value;
  std::string beside;  // smaller: what it is of, or its band
};

struct Page {
  std::string title;
  std::string verdict;  // fits, tight or does_not_fit
  std::string sentence;
  std::vector<Tile> tiles;
  std::vector<Section> sections;
  std::string footer;
  nlohmann::ordered_json answer;  // what --json prints, carried along
};

/// The page of a document zeroplan.page/1 (page_document.hpp). Every number on it is of the
/// document.
Page page_of(const nlohmann::ordered_json& document);

/// What stands above a page that is served, with its own style and script; as HTML.
struct PageControls {
  std::string above;
  std::string_view style;
  std::string_view script;
};

/// A page as one file that needs no other and asks no network; readable without its script. A page
/// without a verdict has nothing to answer yet.
std::string page_html(const Page& page, const PageControls& controls = {});

/// A page without its drawings, as GitHub reads Markdown.
std::string page_markdown(const Page& page);

}  // namespace zeroplan
