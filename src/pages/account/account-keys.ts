import { GatewayError } from '#wire';
import type { KeyChanges, KeyStore, LimitSetter, MemberStore, NewKeyFields } from '#auth/keys';
import { dataOf, listOf, objectOf, titled } from '../answer-schemas.ts';
import { keySchema, parseKeyBody, viewKey, type KeyBody, type KeyView, type KeyViewDeps } from './key-view.ts';
import type { Page } from './page.ts';

/* Functions for the keys of an account, with the schemas of their answers. The operator and the account itself use
   them. */

export interface KeysDeps extends KeyViewDeps {
  /** Whether a service of this name is offered. A key can be limited to services. */
  readonly offers: (service: string) => boolean;
  readonly keys: KeyStore;
  readonly members: Pick<MemberStore, 'find'>;
}

const hash = { type: 'string', description: 'The hash of the key.' } as const;

/** Schema of the path parameters of a key. `of` are the parameters of its account. */
export const keyParams = (of: Readonly<Record<string, object>> = {}) => objectOf({ ...of, hash });

export const oneKeySchema = dataOf(keySchema);
export const keyListSchema = listOf(keySchema);
export const newKeySchema = titled(
  'NewKey',
  objectOf(
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
  ),
);
export const deletedKeySchema = titled(
  'DeletedKey',
  objectOf({
    deleted: { type: 'boolean' },
    data: objectOf({ hash: { type: 'string' }, deleted: { type: 'boolean' } }),
  }),
);

export async function listKeys(
  deps: Omit<KeysDeps, 'offers' | 'members'>,
  account: string,
  page: Page,
): Promise<{ readonly data: readonly KeyView[] }> {
  const records = await deps.keys.list(account, page);
  return { data: await Promise.all(records.map((record) => viewKey(record, deps))) };
}

/**
 * Creates a key. `member` is the member that owns it, or null for a key of the account itself. `by` is who creates it.
 * Throws GatewayError `invalid_request`, `unprocessable` if the account has too many keys, and `permission_denied` if
 * the member was removed or is a viewer.
 */
export async function createKey(
  { keys, offers, members, ...deps }: KeysDeps,
  account: string,
  kind: NewKeyFields['kind'],
  body: KeyBody,
  { member, by: limitBy }: { readonly member: string | null; readonly by: LimitSetter },
): Promise<{ readonly key: string; readonly data: KeyView; readonly warnings?: readonly string[] }> {
  const fields = parseKeyBody(body, deps.now());
  const made = await keys.create({ label: 'key', ...fields, account, kind, member, limitBy });
  if (!made) throw await whyNoKey(account, member, members);
  const missing = (made.record.allowedServices ?? []).filter((service) => !offers(service));
  const warnings = missing.map((service) => `No service has the name ${service} at the moment. Check the name`);
  return { key: made.text, data: await viewKey(made.record, deps), ...(warnings.length > 0 ? { warnings } : {}) };
}

async function whyNoKey(account: string, member: string | null, members: KeysDeps['members']): Promise<GatewayError> {
  const role = member === null ? 'owner' : (await members.find(account, member))?.role;
  if (role === undefined) return new GatewayError('permission_denied', 'You are no longer a member of this account');
  if (role === 'viewer')
    return new GatewayError('permission_denied', 'This needs the role member of the account, but your role is viewer');
  return new GatewayError('unprocessable', 'This account has too many keys. Delete unused keys');
}

/** Changes a key. Throws GatewayError `not_found`. */
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

/** The same error for a key that doesn't exist and for a key of another account. */
export function keyNotFound(): GatewayError {
  return new GatewayError('not_found', 'Key not found', { param: 'hash' });
}
