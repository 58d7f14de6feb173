import type { NativeWireName } from '#config';
import type { GatewayConnection } from './connection.ts';
import type { Setting } from './formats.ts';

/** The places on this machine where clients keep their settings. */
export interface Machine {
  readonly home: string;
  /** The folder in which the command runs, for settings of a project. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
}

export type FormatName = 'json' | 'toml' | 'yaml' | 'dotenv';

/** A file of a client, with the settings that it needs. */
export interface SettingsFile {
  readonly path: string;
  /** The file is in the folder of a project. Others hold for all projects of the user. */
  readonly ofProject?: true;
  readonly format: FormatName;
  readonly settings: readonly Setting[];
}

/** All that a client needs to use the gateway. */
export interface Setup {
  /** Written by `--write`. */
  readonly files: readonly SettingsFile[];
  /** Steps to do by hand, such as fields of a window. Printed unchanged. */
  readonly byHand?: string;
  /** A command, or a few lines of a program, that try the setup. */
  readonly tryIt?: string;
  readonly notes?: readonly string[];
}

/** A program or library that can use a gateway. */
export interface GatewayClient {
  /** The name that the command accepts, and the name of the client's page in docs/clients. */
  readonly name: string;
  /** Names of packages for which the command does the same. */
  readonly packages?: readonly string[];
  readonly title: string;
  /** The API with which it calls models or agents; null for a client that only calls tools. */
  readonly speaks: NativeWireName | 'chat' | 'a2a' | 'x402' | null;
  readonly models?: (connection: GatewayConnection, machine: Machine) => Setup;
  /** Sets the gateway up as an MCP server of the client. */
  readonly tools?: (connection: GatewayConnection, machine: Machine) => Setup;
  /** The same in files of one project, for `--project`. Absent if the client reads no such file. */
  readonly inProject?: {
    readonly models?: (connection: GatewayConnection, machine: Machine) => Setup;
    readonly tools?: (connection: GatewayConnection, machine: Machine) => Setup;
  };
}
