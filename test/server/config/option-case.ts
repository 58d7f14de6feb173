import type { Config } from '../../../src/server/config/config.ts';

/** An option of a section, as a file and a variable set it. */
export interface Case {
  /** As the file has it, and a value that it must refuse. */
  readonly toml: string;
  readonly wrong: string;
  /** Other lines of its section that it needs; default none. */
  readonly beside?: string;
  /** As a variable has it, where that is not the same without quotes. */
  readonly text?: string;
  readonly of: (config: Config) => unknown;
  readonly is: unknown;
  readonly fallback: unknown;
}
