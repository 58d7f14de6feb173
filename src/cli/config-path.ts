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
