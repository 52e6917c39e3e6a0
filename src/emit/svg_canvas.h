#pragma once

#include <string>
#include <string_view>

namespace topotune::emit {

struct Rect {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double middle() const { return x + width / 2; }
};

// How a text is set. `anchor` is "start", "middle" or "end"; `halo` puts a light rim behind letters that
// cross lines.
struct TextStyle {
  double size = 12;
  std::string_view fill = "#1f2933";
  std::string_view anchor = "start";
  bool bold = false;
  bool halo = false;
};

struct BoxStyle {
  std::string_view fill = "#ffffff";
  std::string_view stroke = "#7b8794";
  double width = 1.2;
  double radius = 6;
  std::string_view dash = "";  // "4 3"
};

struct LineStyle {
  std::string_view stroke = "#7b8794";
  double width = 1.6;
  std::string_view dash = "";
};

// SVG elements in painting order. Texts are escaped here and nowhere else. Pixels, y downwards.
class SvgCanvas {
 public:
  void box(const Rect& rect, const BoxStyle& style);
  void line(double x1, double y1, double x2, double y2, const LineStyle& style);
  // From (x1, y) to (x2, y), hanging down by `depth`.
  void arc(double x1, double x2, double y, double depth, const LineStyle& style);
  // `y` is the base line.
  void text(double x, double y, std::string_view text, const TextStyle& style);
  // Everything until `end_group` shows `title` when the pointer rests on it.
  void begin_group(std::string_view title);
  void end_group();

  // The whole document.
  std::string document(double width, double height, std::string_view title) const;

  // An estimate for sans-serif letters, and `text` shortened with an ellipsis to fit into `width`.
  static double text_width(std::string_view text, double size);
  static std::string fit(std::string_view text, double width, double size);

 private:
  std::string body_;
};

}  // namespace topotune::emit
