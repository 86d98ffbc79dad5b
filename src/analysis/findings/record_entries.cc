// Entries of findings.json that are more than a member.
#include "analysis/findings/record_entries.h"

#include <algorithm>

#include "analysis/findings/records.h"

namespace assay::findings_record {

Fit find_stratum(const Json& object, const StrataContext& context, size_t& found) {
  Stratum stratum;
  if (Fit fit = record::read_object(object, stratum, context)) return fit;
  const auto at = std::ranges::find(context.strata, stratum);
  if (at == context.strata.end()) {
    return misfit("a stratum that \"strata\" has", record::write_object(stratum, context));
  }
  found = static_cast<size_t>(at - context.strata.begin());
  return std::nullopt;
}

void put_stratum(const Stratum& stratum, Json& object) {
  record::write_entries(stratum, Record<Stratum>::kMembers, object, NoContext());
}

void append_stratum(const Stratum& stratum, JsonText& out) {
  record::append_entries(stratum, Record<Stratum>::kMembers, out, NoContext());
}

void FindingRows::write(const Finding& of, Json& object, const StrataContext&) const {
  Json& list = object["rows"] = Json::array();
  for (const auto& [cell, repetitions] : of.rows) {
    list.push_back({{"cell_id", cell}, {"repetitions", repetitions}});
  }
}

Fit FindingRows::read(const Json& object, Finding& of, const StrataContext& context) const {
  const Json& list = member(object, "rows");
  if (!list.is_array()) return within("rows", misfit("an array", list));
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& cell = member(list[i], "cell_id");
    if (!cell.is_string()) {
      return within("rows", within(i, within("cell_id", misfit("a text", cell))));
    }
    auto& repetitions = of.rows[cell.get<std::string>()];
    if (Fit fit = record::read_value(member(list[i], "repetitions"), repetitions, context)) {
      return within("rows", within(i, within("repetitions", std::move(fit))));
    }
  }
  return std::nullopt;
}

Fit PrefillStratum::read(const Json& object, PhaseSplit& of, const StrataContext& context) const {
  constexpr const char* kName = "prefill_stratum";
  if (Fit fit = field(kName, &PhaseSplit::prefill_stratum).read(object, of, context)) return fit;
  if (of.prefill_stratum < context.strata.size()) return std::nullopt;
  return within(kName, misfit(fmt::format("a place below {}", context.strata.size()),
                              Json(of.prefill_stratum)));
}

void StrataWithPrompts::write(const Findings& of, Json& object,
                              const StrataContext& context) const {
  Json& list = object["strata"] = Json::array();
  for (size_t i = 0; i < of.strata.size(); ++i) {
    Json stratum = record::write_object(of.strata[i], context);
    stratum["prompt_tokens"] = record::write_object(of.prompts[i], context);
    list.push_back(std::move(stratum));
  }
}

Fit StrataWithPrompts::read(const Json& object, Findings& of, const StrataContext& context) const {
  if (Fit fit = field("strata", &Findings::strata).read(object, of, context)) return fit;
  const Json& list = object["strata"];
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& tokens = member(list[i], "prompt_tokens");
    if (Fit fit = record::read_value(tokens, of.prompts.emplace_back(), context)) {
      return within("strata", within(i, within("prompt_tokens", std::move(fit))));
    }
  }
  return std::nullopt;
}

void IdentityMember::write(const Findings& of, Json& object, const StrataContext&) const {
  Json& identity = object["identity"] = Json::object();
  for (const auto& [key, value] : of.identity) identity[key] = value;
}

Fit IdentityMember::read(const Json& object, Findings& of, const StrataContext&) const {
  const Json& identity = member(object, "identity");
  if (!identity.is_object()) return within("identity", misfit("an object", identity));
  for (const auto& [key, value] : identity.items()) {
    if (!value.is_string()) return within("identity", within(key, misfit("a text", value)));
    of.identity.emplace_back(key, value.get<std::string>());
  }
  return std::nullopt;
}

}  // namespace assay::findings_record
