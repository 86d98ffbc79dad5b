// Declares the subcommands' options, and prints what they answer.
#include "cli/stats/stats_table.h"

#include <charconv>

namespace assay::cli {
namespace {

using Kind = Parameter::Kind;

std::string check_level(const std::string& text) {
  const auto value = parse_number("", text);
  const bool good = value && *value > 0 && *value < 1;
  return good ? "" : fmt::format("expected a number between 0 and 1, found \"{}\"", text);
}

std::string check_number(const std::string& text) {
  return parse_number("", text) ? "" : fmt::format("expected a number, found \"{}\"", text);
}

std::string check_positive(const std::string& text) {
  const auto value = parse_number("", text);
  return value && *value > 0 ? "" : fmt::format("expected a number above 0, found \"{}\"", text);
}

std::string check_share(const std::string& text) {
  const auto value = parse_number("", text);
  const bool good = value && *value >= 0 && *value <= 1;
  return good ? "" : fmt::format("expected a number from 0 to 1, found \"{}\"", text);
}

std::optional<uint64_t> parse_whole(const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

// CLI11's own conversions don't look at nan, infinity, or a sign before an unsigned number.
void add_check(const Parameter& of, CLI::Option& option) {
  switch (of.kind) {
    case Kind::kLevel:
      option.check(check_level);
      break;
    case Kind::kNumber:
      option.check(check_number);
      break;
    case Kind::kPositive:
      option.check(check_positive);
      break;
    case Kind::kShare:
      option.check(check_share);
      break;
    case Kind::kWhole:
      option.check([least = of.least, most = of.most](const std::string& text) -> std::string {
        const auto value = parse_whole(text);
        if (value && *value >= least && *value <= most) return "";
        return fmt::format("expected a whole number from {} to {}, found \"{}\"", least, most,
                           text);
      });
      break;
    default:
      if (!of.words.empty()) option.check(CLI::IsMember(of.words));
  }
}

}  // namespace

// Binds the options of a subcommand to what the call gives.
class StatsOptions {
 public:
  StatsOptions(const StatsSubcommand& subcommand, CLI::App& command) {
    for (const Parameter& one : subcommand.parameters) add(one, command);
  }
  Result<StatsAnswer> answer(const StatsSubcommand& subcommand) {
    return subcommand.answer(given_);
  }

 private:
  void add(const Parameter& of, CLI::App& command) {
    const std::string option = "--" + of.name;
    switch (of.kind) {
      case Kind::kGroup:
      case Kind::kEither: {
        CLI::App* group = &command;
        if (of.kind == Kind::kGroup) {
          CLI::Option_group* needed = command.add_option_group("group " + of.name);
          needed->require_option(1);
          group = needed;
        }
        group->add_option(option, given_.texts_[of.name], "mean, sd and n of the group")
            ->type_name("MEAN,SD,N");
        group
            ->add_option(option + "-values", given_.texts_[of.name + "-values"],
                         "values of the group, a list or a file")
            ->type_name("X,Y,...|FILE");
        return;
      }
      case Kind::kGroups: {
        const std::string again = "; repeat the option for each group";
        command.add_option(option, given_.lists_[of.name], "mean, sd and n of a group" + again)
            ->type_name("MEAN,SD,N");
        command
            .add_option(option + "-values", given_.lists_[of.name + "-values"],
                        "values of a group" + again)
            ->type_name("X,Y,...|FILE");
        return;
      }
      case Kind::kSample:
        command.add_option(option + "," + option + "-values", given_.texts_[of.name], of.meaning)
            ->type_name("X,Y,...|FILE")
            ->required(of.needed);
        return;
      case Kind::kFlag:
        given_.texts_[of.name];
        command.add_flag_callback(
            option, [this, name = of.name] { given_.texts_[name] = "yes"; }, of.meaning);
        return;
      default:
        break;
    }
    std::string& text = given_.texts_[of.name] = of.fallback;
    const std::string fallback =
        of.fallback.empty() ? "" : fmt::format(" (default {})", of.fallback);
    const bool is_place = of.name == "table";  // the one argument that isn't an option
    CLI::Option* added =
        command.add_option(is_place ? of.name : option, text, of.meaning + fallback);
    added->required(of.needed);
    added->type_name(!of.type.empty()          ? of.type
                     : of.kind == Kind::kText  ? "TEXT"
                     : of.kind == Kind::kWhole ? "UINT"
                                               : "FLOAT");
    add_check(of, *added);
  }

  Given given_;
};

Parameter group(const std::string& name) {
  return {Kind::kGroup, name};
}
Parameter sample(const std::string& name) {
  return {
      .kind = Kind::kSample, .name = name, .meaning = "values, a list or a file", .needed = true};
}
Parameter counted_share(const std::string& name) {
  return {.kind = Kind::kText,
          .name = name,
          .meaning = "count out of a total",
          .type = "X/N",
          .needed = true};
}
Parameter level(const std::string& name, const std::string& meaning, double fallback) {
  return {.kind = Kind::kLevel,
          .name = name,
          .meaning = meaning,
          .fallback = fmt::format("{}", fallback)};
}
Parameter confidence(const std::string& meaning) {
  return level("confidence", meaning, 0.95);
}

Parameter resamples(uint64_t most) {
  return {.kind = Kind::kWhole,
          .name = "resamples",
          .meaning = "bootstrap resamples",
          .fallback = "10000",
          .least = 100,
          .most = most};
}
Parameter seed() {
  return {.kind = Kind::kWhole,
          .name = "seed",
          .meaning = "seed of the bootstrap",
          .fallback = "42",
          .most = UINT64_MAX};
}

double Given::number(const std::string& name) const {
  return *parse_number(name, text(name));  // checked when it was given
}

std::optional<double> Given::number_if_given(const std::string& name) const {
  return has(name) ? std::optional(number(name)) : std::nullopt;
}

uint64_t Given::whole(const std::string& name) const {
  return *parse_whole(text(name));
}

Result<stats::Moments> Given::group(const std::string& name) {
  const std::string option = "--" + name;
  const std::string& values = text(name + "-values");
  ASSAY_TRY(const stats::Moments found,
            values.empty() ? parse_moments(option, text(name)) : moments_of_values(option, values));
  inputs_[name] = group_json(found, values);
  return found;
}

Result<std::vector<double>> Given::sample(const std::string& name) {
  ASSAY_TRY(std::vector<double> values, parse_values("--" + name, text(name)));
  inputs_[name] = sample_json(values, text(name));
  return values;
}

Result<stats::Proportion> Given::count(const std::string& name) {
  ASSAY_TRY(const stats::Proportion share, parse_proportion("--" + name, text(name)));
  inputs_[name] = count_json(share);
  return share;
}

Result<stats::Moments> moments_of_values(const std::string& option, const std::string& values) {
  ASSAY_TRY(const std::vector<double> sample, parse_values(option + "-values", values));
  if (sample.size() == 1) return stats::Moments{1, sample[0], 0};
  const auto found = stats::moments(sample);
  if (!found) return bad_input("{}-values: expected values whose variance is a number", option);
  return *found;
}

Facts Given::facts(const std::string& method) const {
  Facts facts(method);
  for (const auto& [name, value] : inputs_.items()) facts.input(name, value);
  if (texts_.contains("confidence")) facts.set("confidence", number("confidence"));
  return facts;
}

void add_stats_subcommand(CLI::App& stats, const StatsSubcommand& subcommand, Selected& selected) {
  CLI::App* command = stats.add_subcommand(subcommand.name, subcommand.summary);
  const auto options = std::make_shared<StatsOptions>(subcommand, *command);
  const auto format = add_output_format(*command);
  command->callback([=, &selected] {
    selected.body = [=]() -> Result<int> {
      ASSAY_TRY(const StatsAnswer answer, options->answer(subcommand));
      print_rows(answer.table, answer.facts, *format);
      return 0;
    };
  });
}

}  // namespace assay::cli
