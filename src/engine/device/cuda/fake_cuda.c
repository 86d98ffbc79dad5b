// For tests: a driver with one GPU whose memory is the host's, an NVRTC whose code is empty, and a
// cuBLASLt that multiplies nothing; with FAKE_CUDA_RUNS kernels and products are computed, by
// tests/simt.
// It counts what is alive, and one call, by its number, can be made to fail.
// If no test is in the process to say so, the environment does:
//   FAKE_CUDA_FAILS   NAME:N:STATUS: the N-th call of NAME fails with this status,
//   FAKE_CUDA_MARK    ... unless this file is there, which is made when it fails: once in a run
//   FAKE_CUDA_MEMORY  bytes of the GPU's memory; a million million without it
//   FAKE_NVRTC_FAILS  compiling a source with this text in it fails; empty: every source
//   FAKE_CUDA_RUNS    kernels run on the processor; else they do nothing
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "simt.h"

typedef unsigned long long address;

static int calls, fail_at, fail_status, poisoned, live, capturing;
static long launches, recorded, replays, products;
static void trace(int kind, const char* name);
static size_t used;  // bytes of the GPU's memory
static const char* names[4096];

void fake_cuda_reset(int at, int status) {
  calls = poisoned = capturing = 0;
  launches = recorded = replays = products = 0;
  fail_at = at;
  fail_status = status;
}
int fake_cuda_live(void) { return live; }
int fake_cuda_calls(void) { return calls; }
const char* fake_cuda_call(int number) { return names[number % 4096]; }
long fake_cuda_launches(void) { return launches; }
long fake_cuda_recorded(void) { return recorded; }
long fake_cuda_replays(void) { return replays; }
long fake_cuda_products(void) { return products; }

// The status that the environment has for this call.
static int asked_to_fail(const char* name) {
  static char which[64];
  static int number, status, seen;
  const char* asked = getenv("FAKE_CUDA_FAILS");
  if (asked == NULL) return 0;
  if (number == 0 && sscanf(asked, "%63[^:]:%d:%d", which, &number, &status) != 3) abort();
  if (strcmp(name, which) != 0 || ++seen != number) return 0;
  const char* mark = getenv("FAKE_CUDA_MARK");
  if (mark == NULL) return status;
  if (access(mark, F_OK) == 0) return 0;
  FILE* file = fopen(mark, "w");
  if (file == NULL || fclose(file) != 0) abort();
  return status;
}

// Each thread has to make the context its own before it asks the driver for work.
static _Thread_local void* context_of_thread;
static int is_without_context(const char* name) {
  static const char* without[] = {"cuInit", "cuDriver", "cuDevice", "cuCtxSet"};
  for (size_t i = 0; i < sizeof without / sizeof *without; ++i) {
    if (strncmp(name, without[i], strlen(without[i])) == 0) return 1;
  }
  return strncmp(name, "cu", 2) != 0 || strncmp(name, "cublas", 6) == 0;
}

// Errors from 700 to 799 stay: the context is lost, as after an illegal address.
static int enter(const char* name) {
  names[++calls % 4096] = name;
  if (poisoned) return poisoned;
  if (context_of_thread == NULL && !is_without_context(name)) return 201;
  int status = asked_to_fail(name);
  if (calls == fail_at) status = fail_status;
  if (status >= 700 && status < 800) poisoned = status;
  return status;
}

static int runs(void) { return getenv("FAKE_CUDA_RUNS") != NULL; }

static size_t memory_bytes(void) {
  const char* asked = getenv("FAKE_CUDA_MEMORY");
  return asked != NULL ? strtoull(asked, NULL, 10) : 1000000000000;
}
#define ENTER \
  do { int status = enter(__func__); if (status) return status; } while (0)
// A function that gives back works always, but for a lost context's answer.
#define LEAVE(name) (names[++calls % 4096] = name, poisoned)

int cuInit(unsigned flags) { (void)flags; ENTER; return 0; }
int cuDriverGetVersion(int* version) { ENTER; *version = 13000; return 0; }
int cuDeviceGetCount(int* count) { ENTER; *count = 1; return 0; }
int cuDeviceGet(int* device, int ordinal) { ENTER; *device = ordinal; return 0; }
int cuDeviceGetName(char* name, int size, int device) {
  (void)device;
  ENTER;
  strncpy(name, "Fake GPU", (size_t)size);
  return 0;
}
int cuDeviceGetUuid_v2(char* uuid, int device) {
  (void)device;
  ENTER;
  for (int i = 0; i < 16; ++i) uuid[i] = (char)(i * 17);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  ENTER;
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 38 ? 60000000 : 132;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  ENTER;
  *bytes = memory_bytes();
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  ENTER;
  *context = (void*)1;
  ++live;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; --live; return LEAVE(__func__); }
int cuCtxSetCurrent(void* context) { ENTER; context_of_thread = context; return 0; }
int cuMemGetInfo_v2(size_t* available, size_t* total) {
  ENTER;
  *total = memory_bytes();
  *available = *total - used;
  return 0;
}
// A page with the block's size, its bytes, and behind their end a page that nobody may touch: a kernel
// that reads or writes too far ends the program.
enum { kAligned = 256 };
static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
int cuMemAlloc_v2(address* to, size_t bytes) {
  ENTER;
  if (bytes > memory_bytes() - used) return 2;
  const size_t own = round_up(bytes, kAligned), end = page() + round_up(bytes, page());
  char* block = mmap(NULL, end + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED || mprotect(block + end, page(), PROT_NONE) != 0) return 2;
  *(size_t*)block = bytes;
  *to = (address)(size_t)(block + end - own);
  used += bytes;
  ++live;
  return 0;
}
int cuMemFree_v2(address from) {
  char* block = (char*)((size_t)from / page() * page() - page());
  const size_t bytes = *(size_t*)block;
  used -= bytes;
  munmap(block, round_up(bytes, page()) + 2 * page());
  --live;
  return LEAVE(__func__);
}
int cuMemHostAlloc(void** to, size_t bytes, unsigned flags) {
  (void)flags;
  ENTER;
  *to = calloc(1, bytes);
  ++live;
  return 0;
}
int cuMemFreeHost(void* from) { free(from); --live; return LEAVE(__func__); }
int cuMemcpyHtoDAsync_v2(address to, const void* from, size_t bytes, void* stream) {
  (void)stream;
  ENTER;
  memcpy((void*)(size_t)to, from, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, address from, size_t bytes, void* stream) {
  (void)stream;
  ENTER;
  memcpy(to, (const void*)(size_t)from, bytes);
  return 0;
}
// Those that wait, of the device tests.
int cuMemcpyHtoD_v2(address to, const void* from, size_t bytes) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, NULL);
}
int cuMemcpyDtoH_v2(void* to, address from, size_t bytes) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, NULL);
}
int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void* stream) {
  return cuMemcpyDtoHAsync_v2((void*)(size_t)to, from, bytes, stream);
}
struct rows {
  size_t from_x, from_y;
  int from_type;
  const void* from_host;
  address from;
  void* from_array;
  size_t from_pitch, to_x, to_y;
  int to_type;
  void* to_host;
  address to;
  void* to_array;
  size_t to_pitch, width, height;
};
int cuMemcpy2DAsync_v2(const struct rows* r, void* stream) {
  (void)stream;
  ENTER;
  for (size_t i = 0; i < r->height; ++i) {
    memcpy((char*)(size_t)r->to + i * r->to_pitch, (const char*)(size_t)r->from + i * r->from_pitch,
           r->width);
  }
  return 0;
}
int cuMemsetD8Async(address to, unsigned char value, size_t bytes, void* stream) {
  (void)stream;
  ENTER;
  memset((void*)(size_t)to, value, bytes);
  return 0;
}
// A recorded sequence's operations when it is replayed: launches of kernels, and products.
struct operation {
  const void* kernel;  // NULL: a product
  unsigned blocks[3], threads;
  void* argument;
  long rows, outputs, inputs;
  struct simt_matrix weight, x, out;
  const void *addend, *bias;
};
struct tape {
  int users;
  size_t count;
  struct operation* operations;
};
static struct tape* recording;
static void run(const struct operation* o) {
  if (o->kernel != NULL) {
    simt_run(o->kernel, o->blocks, o->threads, o->argument);
  } else {
    simt_multiply(o->rows, o->outputs, o->inputs, o->weight, o->x, o->out, o->addend, o->bias);
  }
}
// Now, or when what is being recorded is replayed; takes the argument's memory over.
static void run_or_record(const struct operation* o) {
  if (capturing) {
    size_t bytes = (recording->count + 1) * sizeof *o;
    recording->operations = realloc(recording->operations, bytes);
    recording->operations[recording->count++] = *o;
    return;
  }
  run(o);
  free(o->argument);
}
static void let_go(struct tape* tape) {
  if (tape == NULL || --tape->users > 0) return;
  for (size_t i = 0; i < tape->count; ++i) free(tape->operations[i].argument);
  free(tape->operations);
  free(tape);
}

// Whatever the driver and the libraries make, as far as it matters here.
struct object {
  double time_ms;                   // of an event
  struct tape* tape;                // of a graph, and of one that is ready to be replayed
  void* loaded;                     // of a module
  struct object* functions;         // of a module, each by its name
  char name[32];                    // of a function, with the module's next one
  struct object* next;
  unsigned most_shared;             // of a function
  unsigned long rows, columns;      // of a matrix, in the library's order
  struct simt_matrix matrix;
  const void* bias;                 // of a product
  const float* scales[2];           // likewise: of the weight and of x, in e4m3
  int scale_modes[2];
};
int cuMemsetD8_v2(address to, unsigned char value, size_t bytes) {
  return cuMemsetD8Async(to, value, bytes, NULL);
}
int cuCtxSynchronize(void) { ENTER; return 0; }
static int make(void** object) {
  *object = calloc(1, sizeof(struct object));
  ++live;
  return 0;
}
static int drop(void* object, const char* name) {
  free(object);
  --live;
  return LEAVE(name);
}
int cuStreamCreate(void** stream, unsigned flags) { (void)flags; ENTER; return make(stream); }
int cuStreamDestroy_v2(void* stream) { return drop(stream, __func__); }
int cuStreamSynchronize(void* stream) { (void)stream; ENTER; trace(4, __func__); return 0; }
int cuStreamQuery(void* stream) { (void)stream; ENTER; return 0; }
int cuStreamBeginCapture_v2(void* stream, int mode) {
  (void)stream, (void)mode;
  ENTER;
  capturing = 1;
  recording = calloc(1, sizeof *recording);
  recording->users = 1;
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  (void)stream;
  capturing = 0;
  struct tape* tape = recording;
  recording = NULL;
  int status = enter(__func__);
  if (status) {
    let_go(tape);
    return status;
  }
  make(graph);
  ((struct object*)*graph)->tape = tape;
  return 0;
}
int cuGraphDestroy(void* graph) {
  let_go(((struct object*)graph)->tape);
  return drop(graph, __func__);
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  (void)flags;
  ENTER;
  make(exec);
  struct tape* tape = ((struct object*)*exec)->tape = ((struct object*)graph)->tape;
  if (tape != NULL) ++tape->users;
  return 0;
}
int cuGraphLaunch(void* exec, void* stream) {
  (void)stream;
  ENTER;
  ++replays;
  const struct tape* tape = ((struct object*)exec)->tape;
  for (size_t i = 0; i < tape->count; ++i) run(&tape->operations[i]);
  trace(4, __func__);
  trace(10, "assay_run");
  trace(10, "assay_prologue");
  return 0;
}
int cuGraphExecDestroy(void* exec) {
  let_go(((struct object*)exec)->tape);
  return drop(exec, __func__);
}
int cuEventCreate(void** event, unsigned flags) { (void)flags; ENTER; return make(event); }
int cuEventDestroy_v2(void* event) { return drop(event, __func__); }
int cuEventRecord(void* event, void* stream) {
  (void)stream;
  ENTER;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  ((struct object*)event)->time_ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
  return 0;
}
int cuEventSynchronize(void* event) { (void)event; ENTER; return 0; }
int cuEventElapsedTime_v2(float* ms, void* start, void* end) {
  ENTER;
  *ms = (float)(((struct object*)end)->time_ms - ((struct object*)start)->time_ms);
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  ENTER;
  void* loaded = runs() ? simt_load(image) : NULL;
  if (runs() && loaded == NULL) return 200;
  make(module);
  ((struct object*)*module)->loaded = loaded;
  return 0;
}
int cuModuleUnload(void* module) {
  simt_unload(((struct object*)module)->loaded);
  struct object* next = ((struct object*)module)->functions;
  while (next != NULL) {
    struct object* function = next;
    next = function->next;
    free(function);
  }
  return drop(module, __func__);
}
static struct object* function_of(struct object* module, const char* name) {
  struct object* function = module->functions;
  while (function != NULL && strcmp(function->name, name) != 0) function = function->next;
  if (function != NULL) return function;
  function = calloc(1, sizeof *function);
  strncpy(function->name, name, sizeof function->name - 1);
  function->most_shared = 48 * 1024;
  function->next = module->functions;
  return module->functions = function;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER;
  *function = runs() ? simt_find(((struct object*)module)->loaded, name) : function_of(module, name);
  return *function == NULL ? 500 : 0;
}
// Bytes of shared memory that a function may be launched with.
static unsigned* most_shared(void* function) {
  return runs() ? simt_most_shared(function) : &((struct object*)function)->most_shared;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  ENTER;
  if (attribute == 8) *most_shared(function) = (unsigned)value;
  return 0;
}
// As SimtTensorMap in tests/simt has it.
int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address, const unsigned long long* sizes,
                           const unsigned long long* pitches, const unsigned* box, const unsigned* steps,
                           int interleave, int swizzle, int promotion, int fill) {
  (void)interleave, (void)promotion, (void)fill;
  ENTER;
  const int known = type == 1 && rank == 2 && swizzle == 3 && steps[0] == 1 && steps[1] == 1;
  const int fits = (unsigned long)address % 16 == 0 && pitches[0] % 16 == 0 && box[0] <= 64 && box[1] - 1 < 256;
  if (!known || !fits || sizes[0] == 0 || sizes[1] == 0) return 1;
  const struct {
    void* begin;
    unsigned long long elements, lines, pitch;
    unsigned box_elements, box_lines;
  } filled = {address, sizes[0], sizes[1], pitches[0], box[0], box[1]};
  memcpy(map, &filled, sizeof filled);
  return 0;
}
int cuLaunchKernelEx(const unsigned* config, void* function, void** arguments, void** extra) {
  (void)extra;
  ENTER;
  for (int i = 0; i < 4; ++i) {
    if (config[i] == 0) return 1;  // no blocks, or no threads
  }
  if (config[6] > *most_shared(function)) return 1;
  if (runs()) {
    struct operation o = {.kernel = function,
                          .blocks = {config[0], config[1], config[2]},
                          .threads = config[3],
                          .argument = malloc(simt_argument_bytes(function))};
    memcpy(o.argument, arguments[0], simt_argument_bytes(function));
    run_or_record(&o);
  }
  if (capturing) {
    ++recorded;
  } else {
    ++launches;
    trace(4, __func__);
    trace(10, "assay_run");
  }
  return 0;
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned y_threads,
                   unsigned z_threads, unsigned shared, void* stream, void** arguments, void** extra) {
  (void)y_threads, (void)z_threads, (void)stream;
  const unsigned config[] = {x, y, z, threads, 1, 1, shared};
  return cuLaunchKernelEx(config, function, arguments, extra);
}
int cuGetErrorName(int status, const char** name) {
  *name = status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY"
          : status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : status == 900 ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == 2 ? "out of memory" : "something else";
  return 0;
}

struct program {
  char *source, *image, *log;
  size_t bytes;
};
// Another version, so that a real GPU's kernel cache doesn't find kernels that run here.
int nvrtcVersion(int* major, int* minor) { *major = runs() ? 0 : 13; *minor = 0; return 0; }
int nvrtcGetNumSupportedArchs(int* count) { *count = 1; return 0; }
int nvrtcGetSupportedArchs(int* targets) { *targets = 90; return 0; }
const char* nvrtcGetErrorString(int status) { return status == 6 ? "compilation" : "other"; }
int nvrtcCreateProgram(void** program, const char* source, const char* name, int headers,
                       const char* const* texts, const char* const* names_of) {
  (void)name, (void)headers, (void)texts, (void)names_of;
  struct program* made = *program = calloc(1, sizeof *made);
  made->source = strdup(source);
  ++live;
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  struct program* made = *program;
  free(made->source);
  free(made->image);
  free(made->log);
  return drop(made, __func__), 0;
}
int nvrtcCompileProgram(struct program* program, int count, const char* const* options) {
  (void)count, (void)options;
  const char* text = getenv("FAKE_NVRTC_FAILS");
  if (text != NULL && strstr(program->source, text) != NULL) {
    program->log = strdup("fake log");
    return 6;
  }
  if (runs()) {
    return simt_compile(program->source, &program->image, &program->bytes, &program->log) ? 6 : 0;
  }
  program->image = strdup("empty");
  program->bytes = 5;
  program->log = strdup("");
  return 0;
}
int nvrtcGetCUBINSize(struct program* program, size_t* size) { *size = program->bytes; return 0; }
int nvrtcGetCUBIN(struct program* program, char* bytes) {
  memcpy(bytes, program->image, program->bytes);
  return 0;
}
int nvrtcGetProgramLogSize(struct program* program, size_t* size) {
  *size = strlen(program->log) + 1;
  return 0;
}
int nvrtcGetProgramLog(struct program* program, char* log) {
  strcpy(log, program->log);
  return 0;
}

// And a CUPTI: calls and kernels of 1 us each, in its own order of events; a replayed graph is two
// kernels.
static int tracing[64];
static unsigned long long clock_ns = 1000;
static struct { int kind; const char* name; unsigned long long start; } events[65536];
static int event_count;
static void (*buffer_asked)(unsigned char**, size_t*, size_t*);
static void (*buffer_done)(void*, unsigned, unsigned char*, size_t, size_t);
static const char* call_names[] = {"?", "cuLaunchKernelEx", "cuGraphLaunch", "cuStreamSynchronize"};

static void trace(int kind, const char* name) {
  if (!tracing[kind] || event_count == 65536) return;
  events[event_count].kind = kind;
  events[event_count].name = name;
  events[event_count++].start = clock_ns += 2000;
}
int cuptiGetVersion(unsigned* version) { *version = 130001; return 0; }
int cuptiActivityRegisterCallbacks(void (*asked)(unsigned char**, size_t*, size_t*),
                                   void (*done)(void*, unsigned, unsigned char*, size_t, size_t)) {
  buffer_asked = asked;
  buffer_done = done;
  return 0;
}
int cuptiActivityEnable(int kind) { tracing[kind] = 1; return 0; }
int cuptiActivityDisable(int kind) { tracing[kind] = 0; return 0; }
int cuptiGetTimestamp(unsigned long long* now) { *now = clock_ns += 2000; return 0; }
int cuptiGetResultString(int status, const char** text) { (void)status; *text = "failed"; return 0; }
int cuptiGetCallbackName(int domain, unsigned id, const char** name) {
  *name = call_names[id < 4 ? id : 0];
  return domain == 1 ? 0 : 1;
}
enum { kRecordBytes = 112 };
int cuptiActivityGetNextRecord(unsigned char* buffer, size_t valid, int** record) {
  unsigned char* next = *record == NULL ? buffer : (unsigned char*)*record + kRecordBytes;
  if (next + kRecordBytes > buffer + valid) return 12;
  *record = (int*)next;
  return 0;
}
int cuptiActivityFlushAll(unsigned flags) {
  (void)flags;
  int at = 0;
  while (at < event_count) {
    unsigned char* buffer;
    size_t size, most, used_bytes = 0;
    buffer_asked(&buffer, &size, &most);
    for (; at < event_count && used_bytes + kRecordBytes <= size; ++at, used_bytes += kRecordBytes) {
      unsigned char* record = buffer + used_bytes;
      memset(record, 0, kRecordBytes);
      unsigned long long end = events[at].start + 1000;
      int kernel = events[at].kind == 10;
      memcpy(record, &events[at].kind, 4);
      memcpy(record + (kernel ? 16 : 8), &events[at].start, 8);
      memcpy(record + (kernel ? 24 : 16), &end, 8);
      if (kernel) {
        record[6] = 40;  // registers
        memcpy(record + 104, &events[at].name, 8);
        continue;
      }
      for (unsigned id = 1; id < 4; ++id) {
        if (strcmp(call_names[id], events[at].name) == 0) memcpy(record + 4, &id, 4);
      }
    }
    buffer_done(NULL, 0, buffer, size, used_bytes);
  }
  event_count = 0;
  return 0;
}

// cuBLASLt has words of its own for what fails; the driver's is heard in its own next call.
#define LT_ENTER \
  do { int status = enter(__func__); if (status) return status == 2 ? 3 : 13; } while (0)
size_t cublasLtGetVersion(void) { return 130100; }
const char* cublasLtGetStatusName(int status) {
  return status == 3 ? "CUBLAS_STATUS_ALLOC_FAILED" : "CUBLAS_STATUS_EXECUTION_FAILED";
}
int cublasLtCreate(void** handle) { LT_ENTER; return make(handle); }
int cublasLtDestroy(void* handle) { return drop(handle, __func__); }
int cublasLtMatmulDescCreate(void** product, int compute, int scale) {
  LT_ENTER;
  return compute == 68 && scale == 0 ? make(product) : 7;
}
int cublasLtMatmulDescDestroy(void* product) { return drop(product, __func__); }
int cublasLtMatmulDescSetAttribute(void* product, int which, const void* value, size_t bytes) {
  LT_ENTER;
  enum { kBiasPointer = 8, kScalesPointer = 17, kScalesMode = 31 };
  struct object* of = product;
  if (which == kBiasPointer) memcpy(&of->bias, value, bytes);
  if (which == kScalesPointer || which == kScalesPointer + 1) memcpy(&of->scales[which - kScalesPointer], value, bytes);
  if (which == kScalesMode || which == kScalesMode + 1) memcpy(&of->scale_modes[which - kScalesMode], value, bytes);
  return 0;
}
// The library takes e4m3 on Hopper as both operands alone, sizes in multiples of 16, with a scale
// for each of their rows, and without a bias of fp32.
static int takes(const struct object* product, const struct object* a, const struct object* b,
                 const struct object* d) {
  enum { kE4M3 = 28, kOfEachRow = 3, kFp32 = 0 };
  if (a->matrix.type != kE4M3 && b->matrix.type != kE4M3) return 1;
  return a->matrix.type == b->matrix.type && a->rows % 16 == 0 && a->columns % 16 == 0 &&
         a->matrix.pitch % 16 == 0 && b->matrix.pitch % 16 == 0 && product->scales[0] != NULL &&
         product->scales[1] != NULL && product->scale_modes[0] == kOfEachRow &&
         product->scale_modes[1] == kOfEachRow && (d->matrix.type != kFp32 || product->bias == NULL);
}
int cublasLtMatrixLayoutCreate(void** matrix, int type, unsigned long rows, unsigned long columns,
                               long pitch) {
  LT_ENTER;
  if ((unsigned long)pitch < rows) return 7;
  make(matrix);
  struct object* made = *matrix;
  made->rows = rows;
  made->columns = columns;
  made->matrix = (struct simt_matrix){NULL, type, pitch, NULL};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void* matrix) { return drop(matrix, __func__); }
int cublasLtMatmulPreferenceCreate(void** wishes) { LT_ENTER; return make(wishes); }
int cublasLtMatmulPreferenceDestroy(void* wishes) { return drop(wishes, __func__); }
int cublasLtMatmulPreferenceSetAttribute(void* wishes, int which, const void* value, size_t bytes) {
  (void)wishes, (void)which, (void)value, (void)bytes;
  LT_ENTER;
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void* handle, void* product, void* a, void* b, void* c, void* d,
                                   void* wishes, int wanted, void* choices, int* found) {
  (void)handle, (void)c, (void)wishes;
  LT_ENTER;
  if (!takes(product, a, b, d)) {
    *found = 0;
    return 0;
  }
  const char* finds = getenv("FAKE_CUBLASLT_FINDS");
  *found = finds == NULL ? 1 : atoi(finds);
  if (*found > wanted) *found = wanted;
  memset(choices, 0, (size_t)*found * 96);
  for (int i = 0; i < *found; ++i) ((char*)choices)[i * 96] = (char)i;  // its algorithm
  return 0;
}
static struct simt_matrix at(const void* data, const struct object* matrix, const float* scales) {
  return (struct simt_matrix){(void*)data, matrix->matrix.type, matrix->matrix.pitch, scales};
}
static int last_algorithm = -1;
int fake_cuda_last_algorithm(void) { return last_algorithm; }
int cublasLtMatmul(void* handle, const struct object* product, const void* alpha, const void* a,
                   const struct object* a_matrix, const void* b, const struct object* b_matrix,
                   const float* beta, const void* c, void* c_matrix, void* d,
                   const struct object* d_matrix, const void* algorithm, void* workspace,
                   size_t bytes, void* stream) {
  (void)handle, (void)alpha, (void)c_matrix, (void)workspace, (void)bytes, (void)stream;
  LT_ENTER;
  if (a == NULL || b == NULL || d == NULL) return 7;
  ++products;
  const char* fast = getenv("FAKE_CUBLASLT_FAST");  // the algorithm that takes no time
  if (fast != NULL && *(const char*)algorithm != atoi(fast)) usleep(200);
  const char* slow = getenv("FAKE_CUBLASLT_SLOW");  // the type whose products take some
  if (slow != NULL && b_matrix->matrix.type == atoi(slow)) usleep(200);
  last_algorithm = *(const char*)algorithm;
  if (!runs()) return 0;
  struct operation o = {.rows = (long)d_matrix->columns,
                        .outputs = (long)d_matrix->rows,
                        .inputs = (long)a_matrix->rows,
                        .weight = at(a, a_matrix, product->scales[0]),
                        .x = at(b, b_matrix, product->scales[1]),
                        .out = at(d, d_matrix, NULL),
                        .addend = *beta != 0 ? c : NULL,
                        .bias = product->bias};
  run_or_record(&o);
  return 0;
}
