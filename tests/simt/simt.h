// Runs printed CUDA kernels where there is no GPU: the system's C++ compiler compiles them, and the
// threads of a block take turns on one thread of the processor. Operations of whole warps and
// blocks (barriers, shuffles, products of matrices) work as on a GPU; the order of threads between
// two barriers doesn't, so races may go unseen, and so may a scope of memory's order that is too
// small. Shared memory holds NaN when a block begins. For tests of kernels' results, with the
// driver of the tests: it says nothing of their speed.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// 0, and the code, or another number and the compiler's words; both malloc'ed.
int simt_compile(const char* source, char** image, size_t* bytes, char** log);
// Loads an image from memory, in which simt_find() looks for entries; NULL: it can't be loaded.
void* simt_load(const void* image);
void simt_unload(void* module);
// NULL: the module has none of that name. Valid until the module is unloaded.
void* simt_find(void* module, const char* name);
size_t simt_argument_bytes(const void* entry);
// Shared memory that it may be launched with, kept here for the driver.
unsigned* simt_most_shared(void* entry);
// Blocks, or clusters of them, one after the other. Ends the process with a line where threads wait
// for one another in different places for ever.
void simt_run(const void* entry, const unsigned blocks[3], unsigned threads, const void* argument);

// out [rows, outputs] = x [rows, inputs] weight^T [inputs, outputs] + what is added: the one form
// of cuBLASLt's product that the engine asks for. Types are cudaDataType; pitches in elements.
// `scales`: of x and the weight in e4m3, one a row; else NULL.
struct simt_matrix {
  void* data;
  int type;
  long pitch;
  const float* scales;
};
void simt_multiply(long rows, long outputs, long inputs, struct simt_matrix weight,
                   struct simt_matrix x, struct simt_matrix out, const void* addend,
                   const void* bias);

#ifdef __cplusplus
}
#endif
