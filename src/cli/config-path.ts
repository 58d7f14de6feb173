/**
 * Environment variables that name a command's file where no flag does, its own variable first. The other command's
 * is read too, so that one variable serves both.
 */
const NAMES = {
  serve: ['TOLLGATE_CONFIG', 'CONFIG_FILE_PATH'],
  provide: ['CONFIG_FILE_PATH', 'TOLLGATE_CONFIG'],
} as const;

/** Path of the configuration: of the flag, else of the environment; null where neither names one. */
export function configPath(
  flag: string | undefined,
  command: keyof typeof NAMES,
  env: NodeJS.ProcessEnv,
): string | null {
  if (flag !== undefined) return flag;
  const name = NAMES[command].find((one) => (env[one] ?? '') !== '');
  return name === undefined ? null : env[name]!;
}
