// Arms of backend `http`: a server that speaks an API of others, running already or started for the
// arm.
#pragma once

#include "base/records/json.h"
#include "base/result.h"
#include "study/study.h"
#include "study/yaml_reader.h"

namespace assay {

// Readers of the keys. `start`: a list of arguments, in which {port} stands for a free port. `env`:
// variables of the server that is started. `api_key_env`: the variable that holds the key, which
// stands nowhere itself. `cached_prefix`: the most tokens of a prompt that may come from the
// server's cache, because every prompt begins with them.
Result<Json> read_api(const YamlValue& value);
Result<Json> read_start(const YamlValue& value);
Result<Json> read_server_environment(const YamlValue& value);
Result<Json> read_variable_name(const YamlValue& value);
Result<Json> read_cached_prefix(const YamlValue& value);

// Checks that the arm says where its server is: `url`, `start`, or both.
Status check_http_arm(const StudyArm& arm, const YamlValue& value);

inline constexpr const char* kHttpBackend = "http";

}  // namespace assay
