import type { Connection } from './connection.ts';
import type { Setting } from './settings.ts';

/** The places of this machine where clients keep their settings. */
export interface Machine {
  readonly home: string;
  /** The folder that the command runs in, for settings of a project. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
}

export type FormatName = 'json' | 'toml' | 'yaml' | 'dotenv';

/** A file of a client, and what it has to say. */
export interface SettingsFile {
  readonly path: string;
  readonly format: FormatName;
  readonly settings: readonly Setting[];
}

/** All that a client needs to use the gateway. */
export interface Setup {
  /** Written by `--write`. */
  readonly files: readonly SettingsFile[];
  /** To be done by hand, such as fields of a window: printed as it is. */
  readonly byHand?: string;
  /** A command, or a few lines of a program, that use it. */
  readonly tryIt?: string;
  /** Facts that are worth knowing before the first call. */
  readonly notes?: readonly string[];
}

/** A program or library that can use a gateway. */
export interface Client {
  /** As the command takes it. Also the name of its page in docs/clients. */
  readonly name: string;
  readonly title: string;
  /** The API by which it calls models or agents; null for a client of tools alone. */
  readonly speaks: 'messages' | 'responses' | 'chat' | 'a2a' | 'x402' | null;
  readonly models?: (connection: Connection, machine: Machine) => Setup;
  /** The gateway as its MCP server. */
  readonly tools?: (connection: Connection, machine: Machine) => Setup;
}
