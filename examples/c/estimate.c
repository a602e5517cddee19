/* Numbers and the document of an estimate from C: what `llmperf estimate` prints.
 * Usage: estimate MODEL DEVICE; cc estimate.c -lllmperf */
#include <stdio.h>
#include <string.h>

#include <llmperf.h>

int main(int argc, char** argv) {
  if (argc != 3) {
    fputs("usage: estimate MODEL DEVICE\n", stderr);
    return 2;
  }
  char request[512];
  snprintf(request, sizeof request, "{\"model\": \"%s\", \"hw\": \"%s\", \"batch\": 4}", argv[1], argv[2]);

  llmperf_session* session = llmperf_open();
  llmperf_result* result = llmperf_estimate(session, request, strlen(request));
  const int status = llmperf_status(result);
  if (status == 0) {
    const double* numbers = llmperf_numbers(result, NULL);
    for (size_t i = 0; i < llmperf_columns(result); ++i) {
      const char* name = llmperf_column(result, i).name;
      if (strcmp(name, "ttft_s") == 0 || strcmp(name, "tpot_s") == 0) printf("%s %.6g\n", name, numbers[i]);
    }
  } else {
    fputs(llmperf_error(result, NULL), stderr); /* with a hint: an unknown name, too little memory */
  }
  llmperf_free(result);
  llmperf_close(session);
  return status;
}
