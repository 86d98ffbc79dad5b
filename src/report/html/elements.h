// Pieces of HTML that pages are made of. Text from a bundle goes through html_text()
// (base/text/shown_text.h) in these functions and in plot's Canvas, and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/tables/table.h"
#include "report/figures/figure.h"

namespace assay {

// <TAG ATTRIBUTES>text</TAG>; the text is escaped, the attributes are the caller's own.
std::string element(std::string_view tag, std::string_view text, std::string_view attributes = "");

// A table of numbers, in a box that scrolls where the page is too narrow for it. `name` is its name
// for those who can't see where it stands; its title, if it has one, comes first.
std::string table_html(const Table& table, std::string_view name);

// The table of choices or verdicts: on a narrow page each row is a card. `name` as table_html()'s.
std::string choice_html(const Table& table, std::string_view name = "which arm to take");

// Title, legend, panels, caption, and the numbers folded behind it.
std::string figure_html(const Figure& figure);

// A heading with a list below it; empty where there is nothing to list.
std::string list_html(std::string_view heading, const std::vector<std::string>& lines);

// A whole page around its content.
std::string page_html(std::string_view title, std::string_view content);

}  // namespace assay
