import { CliError } from './cli-error.ts';

/**
 * Throws CliError if a gateway's address contains a user or a password. `by` is the option or variable that named the
 * address. `key` names the key that belongs there instead, with its option, such as `admin key goes in --admin-key`.
 * The message does not repeat the address, because terminals and logs keep it.
 */
export function refuseCredentials({ username, password }: URL, by: string, key: string): void {
  if (username === '' && password === '') return;
  throw new CliError(`${by} contains a user or a password.\nRemove them. The ${key}.`);
}
