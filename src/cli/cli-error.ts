/** A failure whose message says what to do. It is printed without a stack. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;
  constructor(message: string, options: { readonly exitCode?: number; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = options.exitCode ?? 1;
  }
}

/** Exit code of a wrong command line. Other codes are 0 and 1. */
export const USAGE_EXIT = 2;
