import { DEVELOPMENT_ACCOUNT, hashKey, parseKey } from '#auth/accounts';
import type { App } from '#app';
import { CliError } from './cli-error.ts';
import { readDevFile } from './discovery.ts';

/** The key of the last start if it still works on this database, else a new key. */
export async function developmentKey(app: Pick<App, 'keys'>, dataDir: string): Promise<string> {
  const stored = readDevFile(dataDir)?.api_key ?? null;
  if (stored !== null && parseKey(stored)?.kind === 'development') {
    const record = await app.keys.find(hashKey(stored));
    const expired = record !== null && record.expiresAt !== null && record.expiresAt <= Date.now();
    if (record && record.account === DEVELOPMENT_ACCOUNT && !record.disabled && !expired) return stored;
  }
  const made = await app.keys.create({ account: DEVELOPMENT_ACCOUNT, label: 'development', kind: 'development' });
  if (!made)
    throw new CliError(
      `${DEVELOPMENT_ACCOUNT} has as many keys as an account may have.\nDelete some: tollgate key list dev, then tollgate key delete …`,
    );
  return made.text;
}
