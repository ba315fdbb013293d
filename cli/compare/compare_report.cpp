// How are two answers written side by side? Front door: compare_text.
#include "cli/compare/compare_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/compare/compare_rows.hpp"
#include "cli/compare/compare_words.hpp"
#include "cli/out/report.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

struct Documents {
  Json a, b;
};

Documents documents(const Comparison& sides) {
  return {Json::parse(fit_json(sides.a)), Json::parse(fit_json(sides.b))};
}

std::string verdict(std::string_view side, const Estimate& e) {
  const double free = gibibytes(e.headroom());
  return fmt::format("{} {}: {:.2f} of {:.2f} GiB ({:.2f} GiB {})", side,
                     spaced(name_of(e.verdict)), gibibytes(e.device()), gibibytes(e.capacity),
                     std::abs(free), free < 0 ? "short" : "free");
}

// GiB of a running sum: each row shows by how much it moves the rounded sum, so that what is shown
// adds up.
class Gibibytes {
 public:
  double next(std::int64_t bytes) {
    const double before = rounded();
    sum_ += bytes;
    return rounded() - before;
  }

 private:
  double rounded() const { return std::round(gibibytes(Bytes{sum_}) * 100) / 100; }
  std::int64_t sum_ = 0;
};

// The rows of the table; those of memory up to `needed` as a running sum.
class Table {
 public:
  void add(const CompareRow& row) {
    RowWords words = row_words(row);
    if (row.unit == "bytes") {
      const bool adds = row.section == "memory" && row.name != "needed" && row.name != "free" &&
                        row.name != "capacity";
      const double a = gib(row.a, adds ? &sum_a_ : nullptr);
      const double b = gib(row.b, adds ? &sum_b_ : nullptr);
      const bool total = row.name == "needed" || row.name == "capacity";
      words = {(total ? "= " : "") + words.name, fmt::format("{:.2f}", a), fmt::format("{:.2f}", b),
               fmt::format("{:+.2f}", b - a)};
    }
    rows_.emplace_back(row.section, std::move(words));
  }

  // Each column as wide as its widest cell.
  std::string text() const {
    std::size_t name = 0, side = 8, difference = 8;
    for (const auto& [section, words] : rows_) {
      name = std::max(name, words.name.size());
      side = std::max({side, words.a.size(), words.b.size()});
      difference = std::max(difference, words.difference.size());
    }
    const auto line = [&](const RowWords& words) {
      const std::string text =
          fmt::format("    {:<{}}  {:>{}}  {:>{}}  {:>{}}", words.name, name, words.a, side,
                      words.b, side, words.difference, difference);
      return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
    };
    std::string out = line({"", "a", "b", "b - a"});
    std::string before;
    for (const auto& [section, words] : rows_) {
      if (section != before) out += "\n  " + section_words(section) + "\n";
      before = section;
      out += line(words);
    }
    return out;
  }

 private:
  static double gib(const Json& bytes, Gibibytes* sum) {
    const std::int64_t count = bytes.is_null() ? 0 : bytes.get<std::int64_t>();
    return sum != nullptr ? sum->next(count) : Gibibytes().next(count);
  }

  std::vector<std::pair<std::string, RowWords>> rows_;
  Gibibytes sum_a_, sum_b_;
};

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Which side the other follows, and in what.
std::string chosen_line(const Comparison& sides) {
  if (sides.chosen_for == ChosenFor::each) return "";
  std::string options;
  for (const auto& [flag, value] : sides.shared) options += fmt::format(" {} {}", flag, value);
  return fmt::format("chosen for {}, and taken for {}:{}\n", name_of(sides.chosen_for),
                     sides.chosen_for == ChosenFor::a ? "b" : "a", options);
}

}  // namespace

std::string compare_text(const Comparison& sides, bool quiet) {
  const Documents d = documents(sides);
  const FitAnswer& a = sides.a;
  const FitAnswer& b = sides.b;
  std::string out = verdict("a", a.estimate) + "\n" + verdict("b", b.estimate) + "\n";
  if (quiet) return out;
  Table table;
  for (const CompareRow& row : compare_rows(d.a, d.b)) table.add(row);
  out += chosen_line(sides) + "\n" + table.text() + "\n  assumed\n";
  const auto has = [](const FitAnswer& side, const std::string& text) {
    return std::find(side.assumptions.begin(), side.assumptions.end(), text) !=
           side.assumptions.end();
  };
  for (const std::string& text : a.assumptions) {
    out += fmt::format("    {}{}\n", has(b, text) ? "" : "a: ", text);
  }
  for (const std::string& text : b.assumptions) {
    if (!has(a, text)) out += fmt::format("    b: {}\n", text);
  }
  return out;
}

std::string compare_json(const Comparison& sides) {
  Documents d = documents(sides);
  Json rows = Json::array();
  for (const CompareRow& row : compare_rows(d.a, d.b)) {
    rows.push_back({{"section", row.section},
                    {"name", row.name},
                    {"unit", row.unit},
                    {"a", row.a},
                    {"b", row.b},
                    {"difference", row.difference()}});
  }
  d.a.erase("schema");
  d.b.erase("schema");
  Json out;
  out["schema"] = "zeroplan.compare/1";
  out["a"] = std::move(d.a);
  out["b"] = std::move(d.b);
  out["chosen_for"] = name_of(sides.chosen_for);
  out["shared"] = Json::array();
  for (const auto& [flag, value] : sides.shared) {
    out["shared"].push_back({{"flag", flag}, {"value", value}});
  }
  out["rows"] = std::move(rows);
  return out.dump(2) + "\n";
}

std::string compare_csv(const Comparison& sides) {
  const Documents d = documents(sides);
  std::string out = "section,name,unit,a,b,difference\n";
  for (const CompareRow& row : compare_rows(d.a, d.b)) {
    out += fmt::format("{},{},{},{},{},{}\n", row.section, row.name, row.unit, csv_cell(row.a),
                       csv_cell(row.b), csv_cell(row.difference()));
  }
  return out;
}

}  // namespace zeroplan
