import { localAccount } from '#accounts/names';
import { CliError, onScreen } from '../terminal.ts';
import { OWN_NAME } from '../command-line.ts';
import { type AdminClient, listAll, RefusedRequest } from './admin-client.ts';

/* How a command finds the account, the provider or the key that it is to act on: by an id, or by a name that only one
   of them has. */

/** The argument of each command about an account. */
export const ACCOUNT = ['<account>', 'its name, id or label'] as const;
/**
 * The argument of a command that moves money. Accounts choose their labels, so a stranger may have the expected one.
 */
export const PAID_ACCOUNT = ['<account>', 'its name or id'] as const;
/** The argument of each command about a provider. */
export const PROVIDER = ['<provider>', 'its name, public key, wallet or account'] as const;

interface Candidate {
  /** A word that names it alone. */
  readonly id: string;
  readonly more: string;
}

/** The only candidate, null for none. Throws CliError, which lists them, if there are several. */
function only(candidates: readonly Candidate[], what: string): Candidate | null {
  const all = [...new Map(candidates.map((each) => [each.id, each])).values()];
  if (all.length <= 1) return all[0] ?? null;
  throw new CliError(
    `${all.length} ${what}. Name one by its id:\n${all.map(({ id, more }) => `  ${id}${more === '' ? '' : `  ${onScreen(more)}`}`).join('\n')}`,
  );
}

/** The id of an account. Rejects with CliError if no account or several accounts have this name or label. */
export async function findAccountId(admin: AdminClient, name: string): Promise<string> {
  if (name.includes(':')) return name;
  // A label such as "Acme Ltd" can be no name, so it is the path of no account.
  const missing = await admin.request('GET', `/accounts/${encodeURIComponent(localOr(name))}`).then(
    () => null,
    (error: unknown) => {
      if (error instanceof RefusedRequest && error.status === 404) return error;
      throw error;
    },
  );
  const labelled = await listAll<{ readonly id: string; readonly label: string }>(admin, '/accounts', { label: name });
  const match = only(
    [
      ...(missing === null ? [{ id: localOr(name), more: 'by its name' }] : []),
      ...labelled.map(({ id, label }) => ({ id, more: label })),
    ],
    `accounts have the name or label ${name}`,
  );
  if (match === null) throw missing!;
  return match.id;
}

/** The path of an account, see findAccountId. */
export const findAccountPath = async (admin: AdminClient, name: string): Promise<string> =>
  `/accounts/${encodeURIComponent(await findAccountId(admin, name))}`;

/** The path of an account by its name or id. Throws CliError for a text that is neither. */
export function accountPath(name: string): string {
  try {
    return `/accounts/${encodeURIComponent(name.includes(':') ? name : localAccount(name))}`;
  } catch (error) {
    throw new CliError(
      `${(error as Error).message}. ${JSON.stringify(name)} does not. If it is a label: ${OWN_NAME} account show ${JSON.stringify(name)} says which account has it`,
      { cause: error },
    );
  }
}

/** A local account by its short name; another text as it is. */
function localOr(name: string): string {
  try {
    return localAccount(name);
  } catch {
    return name;
  }
}

const PUBLIC_KEY = /^(?:0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/;

interface ListedProvider {
  readonly provider: string;
  readonly account: string | null;
  readonly name: string | null;
}
interface ListedOffer {
  readonly provider: string | null;
  readonly provider_name: string | null;
}

/**
 * The path of a provider: by its public key, its account, or its name in any case of letters. Rejects with CliError if
 * no provider or several providers have this name. Those of the configuration have names if a gateway runs. A local
 * account may be named that is in no list, unless `isListed`: what is done to a mistyped name must not look done.
 */
export async function findProviderPath(
  admin: AdminClient,
  name: string,
  { isListed = false }: { readonly isListed?: boolean } = {},
): Promise<string> {
  const pathOf = (id: string) => `/providers/${encodeURIComponent(id)}`;
  if (name.includes(':') || PUBLIC_KEY.test(name)) return pathOf(name);
  const isNamed = (other: string | null) => other?.toLowerCase() === name.toLowerCase();
  const account = localOr(name);
  const listed = await listAll<ListedProvider>(admin, '/providers');
  const offers = await ownOffers(admin);
  const match = only(
    [
      ...listed
        .filter((each) => isNamed(each.name) || each.account === account)
        .map((each) => ({
          id: each.provider,
          more: [each.name, each.account].filter((one) => one !== null).join(', '),
        })),
      ...offers.flatMap(({ provider, provider_name: other }) =>
        provider !== null && isNamed(other) ? [{ id: provider, more: `${other}` }] : [],
      ),
    ],
    `providers have the name ${name}`,
  );
  if (match !== null) return pathOf(match.id);
  // The account of a provider that is not in the lists, or of none: the gateway says which.
  if (account !== name && !isListed) return pathOf(account);
  const never = account === name ? '' : ` One that has never connected is named by its account, ${account}.`;
  throw new CliError(`No provider has the name ${onScreen(name)}.${never}\nSee them: ${OWN_NAME} provider list`);
}

/** The offers of a running gateway, those of its configuration too. None if no gateway runs. */
const ownOffers = (admin: AdminClient): Promise<readonly ListedOffer[]> =>
  admin.request('GET', '/services?range=24h').then(
    ({ data }) => data as readonly ListedOffer[],
    (error: unknown) => {
      if (error instanceof CliError) return [];
      throw error;
    },
  );

/** A key of an account by the beginning of its hash, or by its name. Rejects with CliError if none or several match. */
export async function findKey<K extends { readonly hash: string; readonly name: string }>(
  admin: AdminClient,
  { path, account, key }: { readonly path: string; readonly account: string; readonly key: string },
): Promise<K> {
  const keys = await listAll<K>(admin, `${path}/keys`);
  const matches = keys.filter(({ hash, name }) => hash.startsWith(key.toLowerCase()) || name === key);
  const match = only(
    matches.map(({ hash, name }) => ({ id: hash, more: name })),
    `keys of ${account} have the name ${key} or a hash that begins so`,
  );
  if (match !== null) return keys.find(({ hash }) => hash === match.id)!;
  throw new CliError(
    `${account} has no key with the name ${onScreen(key)}, and none whose hash begins so.\nSee them: ${OWN_NAME} key list ${account}`,
  );
}
