import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { hasDebianPackages, unpackedAt, unpackedEnvironment, unpackPackage } from './debian-packages.ts';
import { foldersOfMachine } from './named-programs.ts';

/** A program that operators run beside the gateway, and the environment that its process needs. */
export interface Program {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
}

export type ProgramName = keyof typeof PROGRAMS;

/** For each program: its Debian package, its folder in `.cache`, and the arguments that show whether it runs. */
const PROGRAMS = {
  nginx: {
    from: 'nginx',
    folder: 'nginx',
    chosenBy: 'TOLLGATE_TEST_NGINX_BIN',
    unpacked: 'usr/sbin/nginx',
    version: '-v',
  },
  pgbouncer: {
    from: 'pgbouncer',
    folder: 'pgbouncer',
    chosenBy: 'TOLLGATE_TEST_PGBOUNCER_BIN',
    unpacked: 'usr/sbin/pgbouncer',
    version: '--version',
  },
  caddy: {
    from: 'caddy',
    folder: 'caddy',
    chosenBy: 'TOLLGATE_TEST_CADDY_BIN',
    unpacked: 'usr/bin/caddy',
    version: 'version',
  },
  promtool: {
    from: 'prometheus',
    folder: 'promtool',
    chosenBy: 'TOLLGATE_TEST_PROMTOOL_BIN',
    unpacked: 'usr/bin/promtool',
    version: '--version',
  },
  'systemd-analyze': {
    from: 'systemd',
    folder: 'systemd',
    chosenBy: 'TOLLGATE_TEST_SYSTEMD_ANALYZE_BIN',
    unpacked: 'usr/bin/systemd-analyze',
    version: '--version',
  },
  // It is in the same package, so in the same folder.
  prometheus: {
    from: 'prometheus',
    folder: 'promtool',
    chosenBy: 'TOLLGATE_TEST_PROMETHEUS_BIN',
    unpacked: 'usr/bin/prometheus',
    version: '--version',
  },
} as const;

/**
 * Finds a program: the file in its environment variable, on PATH, or in `.cache`. On Debian and its derivatives it is
 * downloaded to `.cache` if it is missing, but not installed. Throws with advice if this fails.
 */
export function findProgram(name: ProgramName): Program {
  const { from, folder, chosenBy, unpacked, version } = PROGRAMS[name];
  const runs = (file: string, env: NodeJS.ProcessEnv): Program | null =>
    existsSync(file) && spawnSync(file, [version], { env }).status === 0 ? { file, env } : null;
  const chosen = process.env[chosenBy];
  if (chosen !== undefined) {
    const found = runs(chosen, process.env);
    if (found) return found;
    throw new Error(`${chosenBy} is ${chosen}, which is no working ${name}.`);
  }
  for (const directory of foldersOfMachine()) {
    const found = runs(join(directory, name), process.env);
    if (found) return found;
  }
  const inCache = () => runs(join(unpackedAt(folder), unpacked), unpackedEnvironment(folder));
  const cached = inCache();
  if (cached) return cached;
  const help = `Install it (Debian: apt-get install ${from}; macOS: brew install ${from}), or set ${chosenBy} to its file.`;
  if (!hasDebianPackages()) throw new Error(`No ${name} to test with. ${help}`);
  process.stderr.write(`  downloading ${name} into .cache/${folder} (once)\n`);
  unpackPackage(folder, from);
  const downloaded = inCache();
  if (downloaded) return downloaded;
  throw new Error(`The package ${from} was downloaded, but does not run here. ${help}`);
}
