// Several results, one paragraph each, with links to the files that are kept of them.
#include <algorithm>
#include <cctype>

#include "base/text/shown_text.h"
#include "report/headline.h"
#include "report/html/elements.h"
#include "report/html/page.h"
#include "report/screen/parts.h"

namespace assay {
namespace {

// A relative path as a URL. The first two characters keep a name such as "javascript:" from being a
// scheme.
std::string relative_url(std::string_view path) {
  std::string url = "./";
  for (const char c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    url += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url;
}

std::string anchor(const ResultLink& link) {
  return fmt::format("<a href=\"{}\">{}</a>", relative_url(link.path), html_text(link.text));
}

std::string entry_html(const IndexedResult& result) {
  std::string out =
      "<section>\n<h2>" +
      (result.page.empty() ? html_text(result.name) : anchor({result.name, result.page})) +
      "</h2>\n";
  constexpr size_t kNoLimit = 4000;  // columns: names are whole
  out += element("p", headline(result.findings));
  out += element("p", measured_line(result.findings, kNoLimit), "class=mute");
  if (result.page.empty()) out += element("p", "No page was made of this result.");
  if (result.links.empty()) return out + "</section>\n";
  out += "<nav aria-label=\"Files of this result\"><ul>";
  for (const ResultLink& link : result.links) out += "<li>" + anchor(link) + "</li>";
  return out + "</ul></nav>\n</section>\n";
}

}  // namespace

std::string render_index(const std::vector<IndexedResult>& results) {
  std::string content = "<header>" + element("h1", "Results") + "</header>\n<main>\n";
  content +=
      element("p",
              "Each result in one sentence, then what was measured where and when, then what "
              "is kept of it; the newest is first. A ratio is an arm's mean time over the "
              "baseline's; of several "
              "strata it is the range of their ratios, and in brackets that of their "
              "intervals. A stratum is one phase, model and prompt length.",
              "class=mute");
  std::vector<const IndexedResult*> newest_first;
  for (const IndexedResult& result : results) newest_first.push_back(&result);
  std::ranges::stable_sort(newest_first, [](const IndexedResult* a, const IndexedResult* b) {
    const std::string& of_a = a->findings.study.started_at;
    const std::string& of_b = b->findings.study.started_at;
    return of_a != of_b ? of_a > of_b : a->name < b->name;
  });
  for (const IndexedResult* result : newest_first) content += entry_html(*result);
  return page_html("Results", content + "</main>\n");
}

}  // namespace assay
