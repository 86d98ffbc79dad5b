// One reader for each format: the files of one import, all of that format, to their statements.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "import/csv_mapping.h"
#include "import/imported.h"
#include "import/source_text.h"

namespace assay {

// llama.cpp's llama-bench, -o json, jsonl, csv or sql. csv and sql have no samples: each of their
// tests is one mean.
Result<Imported> read_llama_bench(std::span<const SourceText> sources);
// llama-bench's sql as one object of texts a row.
Result<std::vector<Json>> llama_bench_sql_rows(const SourceText& source);

// `vllm bench serve --save-result`: requests with --save-detailed, else the mean of all.
Result<Imported> read_vllm_serve(std::span<const SourceText> sources);

// AIPerf: profile_export.jsonl (a request a line), and profile_export_aiperf.json (the mean of all,
// and with the former only its configuration).
Result<Imported> read_aiperf(std::span<const SourceText> sources);

// optimum-benchmark: benchmark.json, or benchmark_report.json with or without the
// benchmark_config.json of its folder.
Result<Imported> read_optimum(std::span<const SourceText> sources);

// nvbench --json (each state's mean) or --jsonbin (its samples, from the files beside it).
Result<Imported> read_nvbench(std::span<const SourceText> sources);

// pytest-benchmark: each round where the file has them, else the mean.
Result<Imported> read_pytest_benchmark(std::span<const SourceText> sources);

// hyperfine --export-json.
Result<Imported> read_hyperfine(std::span<const SourceText> sources);

// Any CSV with a header.
Result<Imported> read_mapped_csv(std::span<const SourceText> sources, const CsvMapping& mapping);

}  // namespace assay
