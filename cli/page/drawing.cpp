// How is an SVG written? Front door: figure.
#include "cli/page/drawing.hpp"

#include <fmt/format.h>

#include "cli/page/html.hpp"

namespace zeroplan {
namespace {

constexpr double desk = 1040;
constexpr double phone = 350;

std::string closed(std::string_view name, std::string_view tip) {
  return tip.empty() ? "/>" : fmt::format("><title>{}</title></{}>", html_text(tip), name);
}

}  // namespace

std::string pixels(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double text_width(std::string_view text, double size) {
  std::size_t letters = 0;
  for (const char c : text) letters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return 0.58 * size * static_cast<double>(letters);
}

void Drawing::rect(
    double x, double y, double w, double h, std::string_view style, std::string_view tip) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"{}\n",
                       pixels(x), pixels(y), pixels(w), pixels(h), style, closed("rect", tip));
}

void Drawing::line(double x1, double y1, double x2, double y2, std::string_view style) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", pixels(x1),
                       pixels(y1), pixels(x2), pixels(y2), style);
}

void Drawing::circle(double x, double y, double r, std::string_view style, std::string_view tip) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"{}\n", pixels(x),
                       pixels(y), pixels(r), style, closed("circle", tip));
}

void Drawing::path(std::string_view d, std::string_view style, std::string_view tip) {
  body_ += fmt::format("<path d=\"{}\" class=\"{}\"{}\n", d, style, closed("path", tip));
}

void Drawing::text(
    double x, double y, std::string_view text, std::string_view style, Anchor anchor) {
  const std::string_view place = anchor == Anchor::middle ? " text-anchor=\"middle\""
                                 : anchor == Anchor::end  ? " text-anchor=\"end\""
                                                          : "";
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\"{}>{}</text>\n", pixels(x), pixels(y),
                       style, place, html_text(text));
}

std::string Drawing::svg(std::string_view id,
                         std::string_view title,
                         std::string_view description) const {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{}-t {}-d\">\n"
      "<title id=\"{}-t\">{}</title><desc id=\"{}-d\">{}</desc>\n{}</svg>\n",
      pixels(width_), pixels(height_), id, id, id, html_text(title), id, html_text(description),
      body_);
}

Figure figure(std::string_view id,
              std::string_view title,
              std::string_view description,
              const std::function<void(Drawing&)>& draw) {
  Drawing wide(desk);
  Drawing narrow(phone);
  draw(wide);
  draw(narrow);
  return {wide.svg(fmt::format("{}-wide", id), title, description),
          narrow.svg(fmt::format("{}-narrow", id), title, description),
          {}};
}

}  // namespace zeroplan
