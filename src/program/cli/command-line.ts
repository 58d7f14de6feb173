import { basename, relative } from 'node:path';

/**
 * The name by which this program was called, for commands to paste. The commands never use `npx`: the name on the
 * registry is not ours, so without a local installation npx would run a package that somebody else published.
 */
export function ownName(program: string, cwd: string): string {
  // The program is linked into the search path.
  const linked = basename(program);
  if (linked === 'tollgate' || linked === 'tollgate-provide') return linked;
  const below = relative(cwd, program);
  return `node ${shellWord(below.startsWith('..') ? program : below)}`;
}

/** A text as one word of a shell command, quoted if needed. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

export const OWN_NAME = ownName(process.argv[1] ?? 'tollgate', process.cwd());

/** The command that starts the development gateway: npm in a checkout, the program's name in an installed package. */
export const START = import.meta.url.endsWith('.ts') ? 'npm start' : `${OWN_NAME} start`;
/** The same, for a command with options after it. */
export const START_WITH = START === 'npm start' ? 'npm start --' : START;

/**
 * Environment variables that name a command's file if no flag does, in order of precedence. Each command also reads the
 * variable of the other one, so that one variable can serve both.
 */
const NAMES = {
  serve: ['TOLLGATE_CONFIG', 'CONFIG_FILE_PATH'],
  provide: ['CONFIG_FILE_PATH', 'TOLLGATE_CONFIG'],
} as const;

/** Path of the configuration file: from the flag, else from the environment. Null if neither names one. */
export function configPath(
  flag: string | undefined,
  command: keyof typeof NAMES,
  env: NodeJS.ProcessEnv,
): string | null {
  if (flag !== undefined) return flag;
  const name = NAMES[command].find((one) => (env[one] ?? '') !== '');
  return name === undefined ? null : env[name]!;
}
