/* llmperf for C, and for whatever calls C: requests as JSON in, documents as JSON or rows as columns out.
 *
 *   llmperf_session* session = llmperf_open();
 *   const char request[] = "{\"model\": \"llama-3.1-8b\", \"hw\": \"h100\", \"batch\": 16}";
 *   llmperf_result* result = llmperf_estimate(session, request, strlen(request));
 *   if (llmperf_status(result) == 0) puts(llmperf_json(result, NULL));
 *   llmperf_free(result);
 *   llmperf_close(session);
 *
 * A request is an object with the fields that the command line has flags for: "gpu_layers" for --gpu-layers; amounts
 * of memory are bytes, "reserve_bytes"; docs/api.md lists what there is. Values are numbers, true, or texts as a flag
 * takes them ("128k", "q4_k_m"). In place of the name of a model, a device or a runtime profile an object may stand:
 * the content of a config.json, or of a description of one's own.
 *
 * Any number of threads may share a session. A result is used by one thread at a time. No function throws; what cannot
 * be done is a result with a status and an error. Texts are UTF-8, live as long as their result, and end in a zero
 * that their size does not count; a size may be asked for with a null pointer where it is not wanted. Numbers are in
 * SI units, with the unit in the name: _s seconds, _bytes, _flops. */
#ifndef LLMPERF_H
#define LLMPERF_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LLMPERF_API __attribute__((visibility("default")))
#else
#define LLMPERF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llmperf_session llmperf_session; /* what was read: models, devices, profiles */
typedef struct llmperf_result llmperf_result;

/* Null where there is no memory. */
LLMPERF_API llmperf_session* llmperf_open(void);
/* After all calls on it have returned; its results stay. */
LLMPERF_API void llmperf_close(llmperf_session* session);
/* From any thread: a sweep, a simulation or a search that runs on the session ends soon, with status 130. */
LLMPERF_API void llmperf_interrupt(llmperf_session* session);

/* ---- Questions. Null only where there is no memory; whatever the request is, there is a result. */

/* What `llmperf estimate` answers. */
LLMPERF_API llmperf_result* llmperf_estimate(llmperf_session* session, const char* request, size_t size);
/* Where a number comes from: an estimate's request with "number": "ttft_s"; without it all paths. */
LLMPERF_API llmperf_result* llmperf_explain(llmperf_session* session, const char* request, size_t size);
/* Every combination of the values of fields that are arrays; a row for each. Beside the fields "where", "top", "by",
 * "pareto" and "columns", as the flags of those names, and "threads". */
LLMPERF_API llmperf_result* llmperf_sweep(llmperf_session* session, const char* request, size_t size);
/* What `llmperf serve` answers: traffic on an engine. */
LLMPERF_API llmperf_result* llmperf_serve(llmperf_session* session, const char* request, size_t size);
/* What `llmperf capacity` answers: "hw", "tp", "weights" and "engine" may be arrays; "pd", "minimise", "threads". */
LLMPERF_API llmperf_result* llmperf_capacity(llmperf_session* session, const char* request, size_t size);
/* Predictions beside measurements: {"measurements": [names or paths], "hw", "runtime"}. */
LLMPERF_API llmperf_result* llmperf_validate(llmperf_session* session, const char* request, size_t size);
/* A profile fitted to measurements: {"measurements": [names or paths], "hw", "runtime", "from"}. */
LLMPERF_API llmperf_result* llmperf_calibrate(llmperf_session* session, const char* request, size_t size);
/* What there is: {"kind": "models"}, or "hardware", "runtimes", "measurements", "scenarios"; one of them by its name:
 * {"kind": "model", "name": …}, "device", "runtime"; and {"kind": "fields"}, what a request may have. */
LLMPERF_API llmperf_result* llmperf_catalog(llmperf_session* session, const char* request, size_t size);

LLMPERF_API void llmperf_free(llmperf_result* result);

/* ---- Answers. */

/* As the program's exit status: 0 done, 1 failed, 2 bad input, 3 does not fit (and there is a document), 4 a bound of
 * "slo" is missed, 130 interrupted. */
LLMPERF_API int llmperf_status(const llmperf_result* result);
/* The document as --json prints it, without its key "command"; the error where there is none. It is made when it is
 * first asked for. */
LLMPERF_API const char* llmperf_json(llmperf_result* result, size_t* size);
/* Empty where there is none, else {"schema": "llmperf.error", "status": 2, "errors": [{"message", "hint", "file",
 * "line", "column"}]}, the last four where they are known. A message names fields between backquotes. */
LLMPERF_API const char* llmperf_error(llmperf_result* result, size_t* size);
/* Of a calibration the profile as YAML; else empty. */
LLMPERF_API const char* llmperf_text(llmperf_result* result, size_t* size);

/* ---- Rows: of a sweep one a point, of an estimate one, with the columns of --format csv. */

enum { LLMPERF_NUMBERS = 0, LLMPERF_TRUTHS = 1, LLMPERF_TEXTS = 2 };

typedef struct {
  const char* name;       /* "ttft_s" */
  int kind;               /* of the above */
  const double* numbers;  /* of numbers and truths (0 and 1): one a row, NaN where there is none */
  const int64_t* offsets; /* of texts: where each begins in `text`, and at last where they end */
  const char* text;       /* of texts: one behind the other; an empty one is none */
} llmperf_column_data;

LLMPERF_API size_t llmperf_rows(const llmperf_result* result);
LLMPERF_API size_t llmperf_columns(const llmperf_result* result);
/* All null beyond the last one. */
LLMPERF_API llmperf_column_data llmperf_column(const llmperf_result* result, size_t index);
/* Of the first row a number for each column, NaN for texts and where there is none: the quick way to an estimate's
 * numbers. Null where there is no row. */
LLMPERF_API const double* llmperf_numbers(const llmperf_result* result, size_t* count);

/* The columns as one struct array of the Arrow C data interface (arrow.apache.org/docs/format/CDataInterface.html),
 * which stays when the result is freed. 0 when done, else a number of errno.h. */
struct ArrowSchema;
struct ArrowArray;
LLMPERF_API int llmperf_arrow(const llmperf_result* result, struct ArrowSchema* schema, struct ArrowArray* array);

/* {"schema": "llmperf.version", "version", …}, as `llmperf --version --json` prints it. */
LLMPERF_API const char* llmperf_version(void);

#ifdef __cplusplus
}
#endif
#endif
