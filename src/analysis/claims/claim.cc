// A claim's words.
#include "analysis/claims/claim.h"

#include <algorithm>
#include <charconv>

#include "base/text/listed.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 4> kRelations = {"faster", "slower", "equivalent",
                                                        "fastest"};
constexpr size_t kLongestClaim = 2000;
constexpr const char* kForm =
    "ARM faster than ARM in PHASE (or slower than, equivalent to, fastest)";

const std::vector<std::string>& relation_words() {
  static const std::vector<std::string> words(kRelations.begin(), kRelations.end());
  return words;
}

// Words that may follow the arms, each with its value behind it.
const std::vector<std::string>& scope_words() {
  static const std::vector<std::string> words = {"in", "of", "at", "batch", "new_tokens"};
  return words;
}

bool is_scope_word(const std::string& word) {
  return std::ranges::find(scope_words(), word) != scope_words().end();
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!space) word += c;
    if (space && !word.empty()) words.push_back(std::exchange(word, ""));
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

Result<Phase> claimed_phase(const std::string& word) {
  if (const auto phase = parse_phase(word)) return *phase;
  return bad_input("--claim: expected one of {} behind \"in\", found {}{}",
                   join(phase_names(), ", "), quoted_excerpt(word),
                   nearest_hint(word, phase_names()));
}

Result<int64_t> claimed_count(const std::string& key, const std::string& word) {
  int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error == std::errc() && stop == end && value >= 0) return value;
  return bad_input("--claim: expected a count behind \"{}\", found {}", key, quoted_excerpt(word));
}

class ClaimReader {
 public:
  explicit ClaimReader(std::string_view text) : text_(text), words_(words_of(text)) {}

  Result<SpeedClaim> read() {
    const auto relation = std::ranges::find_if(words_, [](const std::string& word) {
      return std::ranges::find(kRelations, word) != kRelations.end();
    });
    if (relation == words_.end()) return no_relation();
    claim_.relation =
        static_cast<ClaimRelation>(std::ranges::find(kRelations, *relation) - kRelations.begin());
    next_ = relation + 1;
    auto arm_end = relation;
    if (arm_end != words_.begin() && *(arm_end - 1) == "is") --arm_end;
    claim_.arm = join(std::vector<std::string>(words_.begin(), arm_end), " ");
    if (claim_.arm.empty()) {
      return bad_input("--claim: expected an arm before {}, found nothing",
                       quoted_excerpt(*relation));
    }
    if (claim_.relation != ClaimRelation::kFastest) ASSAY_CHECK(read_other(*relation));
    while (next_ != words_.end()) ASSAY_CHECK(read_scope());
    return std::move(claim_);
  }

 private:
  std::unexpected<Error> no_relation() const {
    std::string hint;
    for (const std::string& word : words_) {
      if (hint.empty()) hint = nearest_hint(word, relation_words());
    }
    return bad_input("--claim: expected {}, found {}{}", kForm, quoted_excerpt(text_), hint);
  }

  Status read_other(const std::string& relation) {
    const std::string link = claim_.relation == ClaimRelation::kEquivalent ? "to" : "than";
    if (next_ == words_.end() || *next_ != link) {
      return bad_input("--claim: expected \"{}\" behind \"{}\", found {}", link, relation,
                       next_ == words_.end() ? "nothing" : quoted_excerpt(*next_));
    }
    ++next_;
    std::vector<std::string> name;
    while (next_ != words_.end() && (name.empty() || !is_scope_word(*next_))) {
      name.push_back(*next_++);
    }
    claim_.other = join(name, " ");
    if (claim_.other.empty()) {
      return bad_input("--claim: expected an arm behind \"{}\", found nothing", link);
    }
    return {};
  }

  // "in PHASE", and the other words that narrow the claim.
  Status read_scope() {
    const std::string key = *next_++;
    if (!is_scope_word(key)) {
      return bad_input("--claim: expected one of {}, found {}{}", join(scope_words(), ", "),
                       quoted_excerpt(key), nearest_hint(key, scope_words()));
    }
    if (std::ranges::find(seen_, key) != seen_.end()) {
      return bad_input("--claim: expected \"{}\" once, found it twice", key);
    }
    seen_.push_back(key);
    if (next_ == words_.end()) {
      return bad_input("--claim: expected a value behind \"{}\", found nothing", key);
    }
    const std::string value = *next_++;
    if (key == "in") {
      ASSAY_TRY(claim_.phase, claimed_phase(value));
    } else if (key == "of") {
      claim_.model = value;
    } else if (key == "at") {
      claim_.scenario = value;
    } else {
      ASSAY_TRY((key == "batch" ? claim_.batch : claim_.new_tokens), claimed_count(key, value));
    }
    return {};
  }

  std::string_view text_;
  std::vector<std::string> words_;
  std::vector<std::string>::const_iterator next_;
  std::vector<std::string> seen_;
  SpeedClaim claim_;
};

Status known(const char* what, const std::string& name, const std::vector<std::string>& names) {
  if (name.empty() || std::ranges::find(names, name) != names.end()) return {};
  constexpr size_t kMostNamed = 12;
  return bad_input("--claim: expected {} that was measured ({}), found {}{}", what,
                   names.empty() ? "there is none" : first_listed(names, kMostNamed),
                   quoted_excerpt(name), nearest_hint(name, names));
}

}  // namespace

std::string_view claim_relation_name(ClaimRelation relation) {
  return kRelations[static_cast<size_t>(relation)];
}

Result<SpeedClaim> parse_claim(std::string_view text) {
  if (text.size() > kLongestClaim) {
    return bad_input("--claim: expected at most {} bytes, found {}", kLongestClaim, text.size());
  }
  return ClaimReader(text).read();
}

std::string claim_text(const SpeedClaim& claim) {
  std::string text = fmt::format("{} {}", claim.arm, claim_relation_name(claim.relation));
  if (claim.relation != ClaimRelation::kFastest) {
    const bool equivalent = claim.relation == ClaimRelation::kEquivalent;
    text += fmt::format(" {} {}", equivalent ? "to" : "than", claim.other);
  }
  if (claim.phase) text += fmt::format(" in {}", phase_name(*claim.phase));
  if (!claim.model.empty()) text += " of " + claim.model;
  if (!claim.scenario.empty()) text += " at " + claim.scenario;
  if (claim.batch) text += fmt::format(" batch {}", *claim.batch);
  if (claim.new_tokens) text += fmt::format(" new_tokens {}", *claim.new_tokens);
  return text;
}

bool claim_covers(const SpeedClaim& claim, const Stratum& stratum) {
  return (!claim.phase || *claim.phase == stratum.phase) &&
         (claim.model.empty() || claim.model == stratum.model) &&
         (claim.scenario.empty() || claim.scenario == stratum.scenario) &&
         (!claim.batch || *claim.batch == stratum.batch) &&
         (!claim.new_tokens || *claim.new_tokens == stratum.new_tokens);
}

Status check_claim_names(const SpeedClaim& claim, const ClaimNames& names) {
  ASSAY_CHECK(known("an arm", claim.arm, names.arms));
  ASSAY_CHECK(known("an arm", claim.other, names.arms));
  ASSAY_CHECK(known("a model", claim.model, names.models));
  ASSAY_CHECK(known("a scenario", claim.scenario, names.scenarios));
  if (claim.arm == claim.other) {
    return bad_input("--claim: expected two arms, found {} twice", quoted_excerpt(claim.arm));
  }
  return {};
}

}  // namespace assay
