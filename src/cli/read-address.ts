import { CliError } from './cli-error.ts';

/**
 * Reads the address of a gateway. `by` is the option or variable that named it. `key` names the key that belongs there
 * instead of a user and a password, with its option, such as `admin key goes in --admin-key`. Throws CliError for
 * another text. The message repeats no credentials, because terminals and logs keep it.
 */
export function readAddress(text: string, by: string, key: string): URL {
  const address = /^https?:\/\//.test(text) ? URL.parse(text) : null;
  const hasCredentials = address === null ? text.includes('@') : `${address.username}${address.password}` !== '';
  if (hasCredentials) throw new CliError(`${by} contains a user or a password.\nRemove them. The ${key}.`);
  if (address === null)
    throw new CliError(`${by} is not the address of a gateway: ${text}\nGive it as http://127.0.0.1:8402`);
  return address;
}
