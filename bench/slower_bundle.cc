// A copy of a bundle whose latencies are all so many times as long, sealed anew: a slowdown of
// known size on top of what two real runs differ by. slower_bundle BUNDLE COPY FACTOR, for
// aa_pairs.
//
// It scales what was measured, so that it shows whether `compare` finds a slowdown of that size,
// not how a slower program would have been measured.
#include <charconv>
#include <cstdio>
#include <cstring>

#include "artifact/bundle.h"
#include "base/files/files.h"

namespace assay {
namespace {

Result<BundleHeader> header_of(const Bundle& bundle) {
  const std::string name = bundle.folder.string();
  BundleHeader header;
  header.study_yaml = bundle.study_yaml;
  header.environment = bundle.environment;
  header.identity = bundle.manifest["identity"];
  header.study = bundle.manifest["study"];
  ASSAY_TRY(header.plan_hash, json_string(bundle.manifest, "plan_sha256", name));
  ASSAY_TRY(header.started_at_ns, json_int(bundle.manifest, "started_at_ns", name));
  ASSAY_TRY(header.assay_version, json_string(bundle.manifest, "assay_version", name));
  return header;
}

Row slower(Row row, double factor) {
  for (auto* ms : {&row.latency_ms, &row.device_ms, &row.ttft_ms}) {
    if (*ms) **ms *= factor;
  }
  if (row.tokens_per_s) *row.tokens_per_s /= factor;
  return row;
}

Status copy_slower(const std::string& from, const std::string& to, double factor) {
  ASSAY_TRY(const Bundle bundle, read_bundle(from));
  if (!bundle.complete || bundle.sittings.size() != 1) {
    return bad_input("{}: expected a sealed bundle of one sitting", from);
  }
  ASSAY_TRY(const BundleHeader header, header_of(bundle));
  ASSAY_TRY(BundleWriter writer, BundleWriter::create(disk(), to, header));
  for (const Row& row : bundle.rows) ASSAY_CHECK(writer.append(slower(row, factor)));
  for (const auto& [cell, evidence] : bundle.evidence) {
    ASSAY_CHECK(writer.write_cell_json(cell, "evidence.json", evidence_to_json(evidence)));
  }
  for (const auto& [cell, json] : bundle.parity) {
    ASSAY_CHECK(writer.write_cell_json(cell, "parity.json", json));
  }
  // One commit for all rows, with what the first unit's said: its notes tell of load and steal.
  ASSAY_CHECK(writer.commit_unit(0, bundle.unit_notes.empty() ? Json() : bundle.unit_notes[0]));
  return writer.seal(bundle.manifest["completion"]);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  double factor = 0;
  if (argc == 4) std::from_chars(argv[3], argv[3] + std::strlen(argv[3]), factor);
  if (!(factor > 0)) {
    fmt::print(stderr, "slower_bundle: expected BUNDLE COPY FACTOR\n");
    return 2;
  }
  if (const auto done = assay::copy_slower(argv[1], argv[2], factor); !done) {
    fmt::print(stderr, "slower_bundle: {}\n", done.error().message);
    return 2;
  }
  return 0;
}
