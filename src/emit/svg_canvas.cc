#include "emit/svg_canvas.h"

#include <fmt/format.h>

#include "base/text.h"
#include "emit/xml_text.h"

namespace topotune::emit {

namespace {

// One decimal is a tenth of a pixel; "12.0" is written "12".
std::string number(double value) {
  std::string out = fmt::format("{:.1f}", value);
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out == "-0" ? "0" : out;
}

std::string dash_of(std::string_view dash) {
  return dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash);
}

std::string stroke_of(const LineStyle& style) {
  return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\"{}",
                     style.stroke, number(style.width), dash_of(style.dash));
}

}  // namespace

void SvgCanvas::box(const Rect& rect, const BoxStyle& style) {
  body_ += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{}\" "
      "stroke-width=\"{}\"{}/>\n",
      number(rect.x), number(rect.y), number(rect.width), number(rect.height), number(style.radius),
      style.fill, style.stroke, number(style.width), dash_of(style.dash));
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, const LineStyle& style) {
  body_ += fmt::format("<path d=\"M{} {}L{} {}\" {}/>\n", number(x1), number(y1), number(x2), number(y2),
                       stroke_of(style));
}

void SvgCanvas::arc(double x1, double x2, double y, double depth, const LineStyle& style) {
  // A cubic curve reaches three quarters of the way to its control points.
  const double low = y + depth * 4 / 3;
  const double lean = (x2 - x1) * 0.08;
  body_ +=
      fmt::format("<path d=\"M{} {}C{} {} {} {} {} {}\" {}/>\n", number(x1), number(y), number(x1 + lean),
                  number(low), number(x2 - lean), number(low), number(x2), number(y), stroke_of(style));
}

void SvgCanvas::text(double x, double y, std::string_view text, const TextStyle& style) {
  if (text.empty()) return;
  const std::string attributes =
      fmt::format("x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\"{}", number(x), number(y),
                  number(style.size), style.anchor, style.bold ? " font-weight=\"600\"" : "");
  const std::string escaped = xml_text(text);
  if (style.halo)
    body_ += fmt::format(
        "<text {} fill=\"#ffffff\" stroke=\"#ffffff\" stroke-width=\"4\" "
        "stroke-linejoin=\"round\">{}</text>\n",
        attributes, escaped);
  body_ += fmt::format("<text {} fill=\"{}\">{}</text>\n", attributes, style.fill, escaped);
}

void SvgCanvas::begin_group(std::string_view title) {
  body_ += fmt::format("<g><title>{}</title>\n", xml_text(title));
}

void SvgCanvas::end_group() { body_ += "</g>\n"; }

std::string SvgCanvas::document(double width, double height, std::string_view title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "role=\"img\" "
      "font-family=\"'DejaVu Sans', Verdana, 'Liberation Sans', Arial, sans-serif\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fbfcfd\"/>\n{3}</svg>\n",
      number(width), number(height), xml_text(title), body_);
}

double SvgCanvas::text_width(std::string_view text, double size) {
  double letters = 0;
  for (const char c : text) letters += (static_cast<unsigned char>(c) & 0xc0) == 0x80 ? 0 : 0.61;
  return letters * size;
}

std::string SvgCanvas::fit(std::string_view text, double width, double size) {
  std::string out = printable(text);
  if (text_width(out, size) <= width) return out;
  while (!out.empty() && text_width(out, size) + size * 0.8 > width) {
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
    if (!out.empty()) out.pop_back();
  }
  return out + "\xe2\x80\xa6";
}

}  // namespace topotune::emit
