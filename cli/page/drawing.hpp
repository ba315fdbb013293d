#pragma once
// Private to the page: an SVG in the making.

#include <functional>
#include <string>
#include <string_view>

#include "cli/page/page.hpp"

namespace zeroplan {

enum class Anchor { start, middle, end };

/// Elements in their order; lengths in CSS pixels of the width that the drawing is made for.
class Drawing {
 public:
  explicit Drawing(double width) : width_(width) {}

  double width() const { return width_; }
  bool narrow() const { return width_ < 500; }
  void set_height(double height) { height_ = height; }

  /// `style` is a class, `tip` what is said when it is pointed at.
  void rect(
      double x, double y, double w, double h, std::string_view style, std::string_view tip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void circle(double x, double y, double r, std::string_view style, std::string_view tip = {});
  void path(std::string_view d, std::string_view style, std::string_view tip = {});
  void text(double x,
            double y,
            std::string_view text,
            std::string_view style,
            Anchor anchor = Anchor::start);

  /// The element, named for those who do not see it. `id` must be one of its own on the page.
  std::string svg(std::string_view id, std::string_view title, std::string_view description) const;

 private:
  double width_;
  double height_ = 0;
  std::string body_;
};

/// About as wide as text of this size is drawn.
double text_width(std::string_view text, double size = 12);

/// 12.30 as "12.3": two places at most.
std::string pixels(double value);

/// Draws for a desk and for a phone.
Figure figure(std::string_view id,
              std::string_view title,
              std::string_view description,
              const std::function<void(Drawing&)>& draw);

}  // namespace zeroplan
