import { GatewayError } from '#wire';
import type { KeyChanges, KeyStore, LimitSetter, MemberStore, NewKeyFields } from '#auth/keys';
import { dataOf, listOf, objectOf } from '../answer-schemas.ts';
import { keySchema, parseKeyBody, viewKey, type KeyBody, type KeyView, type KeyViewDeps } from './key-view.ts';
import type { Page } from './page.ts';

/* What the operator and a caller can do with the keys of an account, and the schemas of the answers. */

export interface KeysDeps extends KeyViewDeps {
  /** Whether anything is offered under a name that a key may be limited to. */
  readonly offers: (service: string) => boolean;
  readonly keys: KeyStore;
  readonly members: Pick<MemberStore, 'find'>;
}

const hash = { type: 'string', description: 'The hash of the key.' } as const;

/** The path parameters of a key. `of` are those of its account. */
export const keyParams = (of: Readonly<Record<string, object>> = {}) => objectOf({ ...of, hash });

export const oneKeySchema = dataOf(keySchema);
export const keyListSchema = listOf(keySchema);
export const newKeySchema = objectOf(
  {
    key: { type: 'string', description: 'The key itself: shown in this answer and never again.' },
    data: keySchema,
    warnings: {
      type: 'array',
      items: { type: 'string' },
      description: 'Parts of the request that may be mistakes; left out without any.',
    },
  },
  ['warnings'],
);
export const deletedKeySchema = objectOf({
  deleted: { type: 'boolean' },
  data: objectOf({ hash: { type: 'string' }, deleted: { type: 'boolean' } }),
});

export async function listKeys(
  deps: Omit<KeysDeps, 'offers' | 'members'>,
  account: string,
  page: Page,
): Promise<{ readonly data: readonly KeyView[] }> {
  const records = await deps.keys.list(account, page);
  return { data: await Promise.all(records.map((record) => viewKey(record, deps))) };
}

/**
 * `member`: whose key it is; null for the account's. `by`: who makes it. Throws GatewayError `invalid_request`,
 * `unprocessable` when the account has too many keys, and `permission_denied` for who is no member any more, or a
 * viewer by now.
 */
export async function createKey(
  { keys, offers, members, ...deps }: KeysDeps,
  account: string,
  kind: NewKeyFields['kind'],
  body: KeyBody | null | undefined,
  { member, by: limitBy }: { readonly member: string | null; readonly by: LimitSetter },
): Promise<{ readonly key: string; readonly data: KeyView; readonly warnings?: readonly string[] }> {
  const fields = parseKeyBody(body ?? {}, deps.now());
  const made = await keys.create({ label: 'key', ...fields, account, kind, member, limitBy });
  if (!made) throw await whyNoKey(account, member, members);
  const missing = (made.record.allowedServices ?? []).filter((service) => !offers(service));
  const warnings = missing.map((service) => `Nothing is offered here as ${service} at the moment: check the name`);
  return { key: made.text, data: await viewKey(made.record, deps), ...(warnings.length > 0 ? { warnings } : {}) };
}

async function whyNoKey(account: string, member: string | null, members: KeysDeps['members']): Promise<GatewayError> {
  const role = member === null ? 'owner' : (await members.find(account, member))?.role;
  if (role === undefined) return new GatewayError('permission_denied', 'You are no member of this account any more');
  if (role === 'viewer')
    return new GatewayError('permission_denied', 'This needs the role member of the account: yours is viewer');
  return new GatewayError('unprocessable', 'This account has too many keys: delete those that are not used');
}

/** Throws GatewayError `not_found`. */
export async function changeKey(
  { keys, ...deps }: Omit<KeysDeps, 'offers' | 'members'>,
  account: string,
  hash: string,
  changes: KeyChanges,
  by: LimitSetter,
): Promise<{ readonly data: KeyView }> {
  const record = await keys.update(account, hash, changes, by);
  if (!record) throw keyNotFound();
  return { data: await viewKey(record, deps) };
}

/** Throws GatewayError `not_found`. */
export async function deleteKey(keys: Pick<KeyStore, 'delete'>, account: string, hash: string) {
  if (!(await keys.delete(account, hash))) throw keyNotFound();
  return { deleted: true, data: { hash, deleted: true } };
}

/** The same for a key that does not exist and for one of another account. */
export function keyNotFound(): GatewayError {
  return new GatewayError('not_found', 'Key not found', { param: 'hash' });
}
