// The arms of a study file.
#include "study/arms.h"

#include <algorithm>

#include "base/add_once.h"
#include "base/records/backend_traits.h"
#include "base/text/text.h"
#include "study/arm_options.h"
#include "study/command_arm.h"
#include "study/http_arm.h"

namespace assay {
namespace {

constexpr int64_t kMaxThreads = 4096;

using Words = std::vector<std::string>;

constexpr std::string_view kCheckout = "checkout";

Words backend_names() {
  Words names;
  for (const BackendTraits& backend : all_backends()) names.emplace_back(backend.name);
  return names;
}

// True if the backend has modes of its own; in arms of the others mode and cache may lack.
bool names_modes(std::string_view backend) {
  return !backend_traits(backend).modes.empty();
}

Status read_backend(const YamlValue& value, StudyArm& arm) {
  const Words names = backend_names();
  ASSAY_TRY(const size_t index, value.one_of(names));
  arm.backend = names[index];
  return {};
}

// Needs arm.backend.
Status read_mode(const YamlValue& value, StudyArm& arm) {
  const auto modes = backend_traits(arm.backend).modes;
  if (modes.empty()) {
    ASSAY_TRY(arm.mode, value.text());
    return {};
  }
  const Words words(modes.begin(), modes.end());
  ASSAY_TRY(const size_t index, value.one_of(words));
  arm.mode = words[index];
  return {};
}

Status read_cache(const YamlValue& value, StudyArm& arm) {
  static const Words kinds = {"dynamic", "static"};
  ASSAY_TRY(const size_t index, value.one_of(kinds));
  arm.cache = kinds[index];
  return {};
}

std::string no_such_key(const StudyArm& arm) {
  return fmt::format("no such key in an arm of mode {}", arm.mode);
}

// Needs arm.mode.
Status read_dynamic(const YamlValue& value, StudyArm& arm) {
  static const Words words = {"true", "false", "auto"};
  ASSAY_TRY(const size_t index, value.one_of(words));
  if (!mode_compiles(arm.mode)) return value.error(no_such_key(arm));
  arm.dynamic = words[index];
  return {};
}

Status read_threads(const YamlValue& value, StudyArm& arm) {
  ASSAY_TRY(arm.threads, value.integer(1, kMaxThreads));
  return {};
}

// The keys whose values make an arm, in the order in which they can be checked.
struct ArmKey {
  std::string name;
  bool required;  // unless the backend takes any word for a mode
  Status (*read)(const YamlValue& value, StudyArm& arm);
};

const std::vector<ArmKey>& arm_keys() {
  static const std::vector<ArmKey> keys = {{"backend", true, read_backend},
                                           {"mode", true, read_mode},
                                           {"cache", true, read_cache},
                                           {"dynamic", false, read_dynamic},
                                           {"threads", false, read_threads}};
  return keys;
}

// Names of all backends' options, each once.
Words option_names() {
  Words names;
  for (const ArmOption& option : arm_options()) {
    add_once(names, option.name);
  }
  return names;
}

// A key of the arm as written, and the values that it takes.
struct Axis {
  std::string key;
  std::vector<YamlValue> values;
  bool expands = false;
  std::optional<YamlValue> checkout = {};  // the map whose revisions these are; or none
};

// The key as it stands, or its list's values where those make arms.
Result<Axis> read_axis(const std::string& key, const YamlValue& value) {
  const auto option = std::ranges::find(arm_options(), key, &ArmOption::name);
  if (option != arm_options().end() && option->whole) return Axis{key, {value}};
  if (key != kCheckout) {
    ASSAY_TRY(std::vector<YamlValue> values, value.items());
    return Axis{key, std::move(values), value.is_list()};
  }
  ASSAY_TRY(const auto revisions, checkout_revisions(value));
  if (!revisions) return Axis{key, {value}};
  ASSAY_TRY(std::vector<YamlValue> values, revisions->items());
  return Axis{key, std::move(values), revisions->is_list(), value};
}

Result<std::vector<Axis>> read_axes(const YamlMap& map) {
  std::vector<Axis> axes;
  size_t combinations = 1;
  for (const std::string& key : map.keys()) {
    if (key == "name") continue;
    const YamlValue value = *map.find(key);
    ASSAY_TRY(Axis axis, read_axis(key, value));
    const size_t count = axis.values.size();
    if (count > kMaxArms || (combinations *= count) > kMaxArms) {
      return value.error(fmt::format("at most {} arms once lists are expanded", kMaxArms), "more");
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

// Needs arm.backend and arm.mode.
Status read_option(const std::string& name, const YamlValue& value, StudyArm& arm) {
  const auto option = std::ranges::find_if(arm_options(), [&](const ArmOption& each) {
    return each.name == name && each.backend == arm.backend;
  });
  if (option == arm_options().end()) {
    return value.error(fmt::format("no such key in an arm of backend {}", arm.backend));
  }
  if (!option->any_mode && !mode_compiles(arm.mode)) return value.error(no_such_key(arm));
  ASSAY_TRY(arm.options[name], option->read(value));
  return {};
}

// Needs arm.backend.
Status read_revision_of(const Axis& axis, const YamlValue& value, StudyArm& arm) {
  if (!is_command(arm)) {
    return value.error(fmt::format("no such key in an arm of backend {}", arm.backend));
  }
  const YamlValue& map = axis.checkout ? *axis.checkout : value;
  ASSAY_TRY(arm.options[kCheckout], read_checkout(map, axis.checkout ? &value : nullptr));
  return {};
}

// The arm for one choice of a value from each axis; `whole` is the file's map of it.
Result<StudyArm> read_arm(const std::string& name, const std::vector<Axis>& axes,
                          const std::vector<size_t>& choice, const YamlValue& whole) {
  StudyArm arm;
  arm.name = name;
  const auto axis_of = [&](std::string_view key) {
    return std::ranges::find(axes, key, &Axis::key);
  };
  const auto chosen = [&](std::string_view key) -> const YamlValue* {
    const auto axis = axis_of(key);
    if (axis == axes.end()) return nullptr;
    return &axis->values[choice[static_cast<size_t>(axis - axes.begin())]];
  };
  for (const ArmKey& key : arm_keys()) {
    if (const YamlValue* value = chosen(key.name)) ASSAY_CHECK(key.read(*value, arm));
  }
  if (mode_compiles(arm.mode) && arm.dynamic.empty() && names_modes(arm.backend))
    arm.dynamic = "auto";
  for (const std::string& option : option_names()) {
    if (const YamlValue* value = chosen(option)) ASSAY_CHECK(read_option(option, *value, arm));
  }
  // A GPU packs weights for kernels of its own.
  const bool on_gpu = device_option(arm).starts_with("cuda");
  if (const YamlValue* value = chosen("weight_cache");
      value != nullptr && on_gpu && arm.options["weight_cache"] == true) {
    return value->error("false in an arm on a GPU, whose packed weights aren't kept");
  }
  if (const YamlValue* value = chosen(kCheckout)) {
    ASSAY_CHECK(read_revision_of(*axis_of(kCheckout), *value, arm));
  }
  if (is_command(arm)) ASSAY_CHECK(check_command_arm(arm, whole));
  if (arm.backend == kHttpBackend) ASSAY_CHECK(check_http_arm(arm, whole));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].expands) continue;
    ASSAY_TRY(const std::string value, axes[i].values[choice[i]].text());
    arm.name += "-" + value;
  }
  return arm;
}

// Steps `choice` like an odometer, the last axis fastest; false after the last combination.
bool next_choice(const std::vector<Axis>& axes, std::vector<size_t>& choice) {
  for (size_t i = axes.size(); i-- > 0;) {
    if (++choice[i] < axes[i].values.size()) return true;
    choice[i] = 0;
  }
  return false;
}

Status expand_arm(const YamlValue& value, std::vector<StudyArm>& arms) {
  Words known = {"name", std::string(kCheckout)};
  for (const ArmKey& key : arm_keys()) known.push_back(key.name);
  for (const std::string& option : option_names()) known.push_back(option);
  ASSAY_TRY(const YamlMap map, value.map(known));
  ASSAY_TRY(const YamlValue name_value, map.require("name"));
  ASSAY_TRY(const std::string name, name_value.text());
  ASSAY_TRY(const YamlValue backend, map.require("backend"));
  const auto word = backend.text();
  for (const ArmKey& key : arm_keys()) {
    const bool may_lack = word && key.name != "backend" && !names_modes(*word);
    if (key.required && !may_lack) ASSAY_CHECK(map.require(key.name));
  }
  ASSAY_TRY(const std::vector<Axis> axes, read_axes(map));
  std::vector<size_t> choice(axes.size(), 0);
  do {
    ASSAY_TRY(StudyArm arm, read_arm(name, axes, choice, value));
    if (std::ranges::find(arms, arm.name, &StudyArm::name) != arms.end()) {
      return name_value.error("each arm's name once", quoted_excerpt(arm.name) + " again");
    }
    if (arms.size() == kMaxArms) {
      return value.error(fmt::format("at most {} arms once lists are expanded", kMaxArms), "more");
    }
    arms.push_back(std::move(arm));
  } while (next_choice(axes, choice));
  return {};
}

}  // namespace

Result<std::vector<StudyArm>> parse_arms(const YamlValue& arms) {
  ASSAY_TRY(const std::vector<YamlValue> items, arms.items());
  std::vector<StudyArm> expanded;
  for (const YamlValue& item : items) ASSAY_CHECK(expand_arm(item, expanded));
  return expanded;
}

}  // namespace assay
