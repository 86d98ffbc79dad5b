// The identity of the measured program and the way of measuring.
#include "base/text/text.h"
#include "report/sections/sections.h"

namespace assay {

ReportSection identity_section(const Findings& findings) {
  const StudySummary& study = findings.study;
  ReportSection section{"Identity", {}, {}};
  Table table{.columns = columns_of("<what|<value")};
  const auto add = [&](const std::string& what, const std::string& value) {
    if (!value.empty()) table.rows.push_back({what, value});
  };
  add("study", study.name);
  add("arms", join(study.arms, ", "));
  add("baseline", study.baseline);
  add("order", study.order);
  const auto number = [](const std::optional<int64_t>& value) {
    return value ? std::to_string(*value) : std::string();
  };
  add("seed", number(study.seed));
  add("repetitions", number(study.repetitions));
  add("warm-ups", number(study.warmup));
  add("rows", std::to_string(study.rows));
  add("started", study.started_at);
  for (size_t i = 0; findings.sittings.size() > 1 && i < findings.sittings.size(); ++i) {
    const SittingSummary& sitting = findings.sittings[i];
    const std::string differs = difference_text(sitting.differs, 3, false);
    add(fmt::format("sitting {}", i + 1),
        fmt::format("{}: {}{}", sitting.started_at, sitting_rows(sitting),
                    differs.empty() ? "" : "; differs from the first in " + differs));
  }
  for (const auto& [key, value] : findings.identity) add(key, value);
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace assay
