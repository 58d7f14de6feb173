/** The causes of failed calls in words, for those that operators see often. */
export const CAUSES: Readonly<Record<string, string>> = {
  provider_unavailable: 'No provider answered',
  provider_error: 'The provider answered with an error',
  provider_timeout: 'The provider took too long',
  timeout: 'It took too long',
  client_gone: 'The client left before the answer',
  tool_error: 'The tool reported an error',
  task_failed: 'The agent reported that its task failed',
  task_rejected: 'The agent rejected the task',
  empty_answer: 'Nothing arrived',
  expired: 'The lock timed out: its gateway was lost, or the task never ended',
  rate_limited: 'Too many requests at the provider',
  invalid_request: 'The provider refused the request',
  too_large: 'The answer was too large',
  unknown: 'No error was recorded',
};

/** Why a call failed, in words: its error, or what its provider reported. null for a call that has not failed. */
export function whyFailed(call: {
  readonly failed: boolean;
  readonly error?: string | null;
  readonly error_code: string | null;
}): string | null {
  if (!call.failed) return null;
  const { error = null, error_code: code } = call;
  return error ?? (code === null ? null : (CAUSES[code] ?? code));
}
