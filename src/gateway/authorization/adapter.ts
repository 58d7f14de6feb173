import { createHmac } from 'node:crypto';
import type { Adapter, AdapterPayload } from 'oidc-provider';
import type { KeyStore } from '#auth';
import type { StateStore } from './state-store.ts';

/** Keys of 32 bytes that all gateways have, from which secrets of registered clients are derived. */
export interface ClientSecretKeys {
  /** Id of the key for new clients. It is stored with them. */
  readonly id: string;
  /** null: of clients that were registered without an id. */
  key(id: string | null): Uint8Array;
}

interface AdapterDeps {
  readonly state: StateStore;
  readonly keys: Pick<KeyStore, 'find' | 'delete'>;
  readonly clientSecrets: ClientSecretKeys;
  /** Stores a sign-in that begins. False if too many are open. */
  readonly begin: (row: Parameters<StateStore['begin']>[0]) => Promise<boolean>;
  /** Makes the error of the library for a sign-in beyond those that may be open. */
  readonly tooMany: () => Error;
  /**
   * Throws the error of the library if the request that is about to use this code or token asks for a resource that it
   * is not for.
   */
  readonly checkResource: (payload: AdapterPayload) => void;
  /** Makes the error of the library for a code or token that another request has just used. */
  readonly usedBefore: () => Error;
  readonly now: () => number;
}

/**
 * How long a used code is kept, because its second use shows that somebody stole it. A refresh token is kept until it
 * would have ended: a thief may use it long before its program, which is not used every week.
 */
const USED_CODE_MS = 7 * 24 * 60 * 60_000;
/** The library forgets a proof when it is as old as it may be, although it accepts one that is as much ahead. */
const PROOF_AHEAD_MS = 5 * 60_000;
const LONGEST_S = 400 * 24 * 60 * 60;

/**
 * The library's access to its state, for one kind of it. A grant is an API key: it ends with the key, and the key with
 * it. Sessions of the library are not kept, because each sign-in asks the person anew.
 */
export function createAdapter(kind: string, deps: AdapterDeps): Adapter {
  const { state, keys, now } = deps;
  if (kind === 'Session') return NO_SESSIONS;
  const endGrant = async (key: string): Promise<void> => {
    const record = await keys.find(key);
    if (record?.client !== null && record !== null) await keys.delete(record.account, key);
  };
  return {
    ...NO_SESSIONS,
    async upsert(id, { jti: _jti, ...payload }, expiresInS = LONGEST_S) {
      const grantKey = kind === 'Grant' ? id : (payload.grantId ?? null);
      const more = kind === 'ReplayDetection' ? PROOF_AHEAD_MS : 0;
      const row = { kind, id, payload, grantKey, expiresAt: now() + expiresInS * 1_000 + more };
      // A sign-in that has its answer is there already.
      if (kind === 'Interaction' && payload.result === undefined) {
        if (!(await deps.begin(row))) throw deps.tooMany();
      } else if (kind !== 'ReplayDetection') await state.put(row);
      else if (!(await state.add(row))) throw deps.usedBefore();
    },
    async find(id) {
      const row = await state.find(kind, id);
      if (row === null) return undefined;
      if (kind === 'Client') return withSecret(row.payload, id, deps.clientSecrets);
      if (kind === 'Grant' && !(await isUsable(keys, id, now()))) return undefined;
      return { ...row.payload, jti: id, ...(row.consumedAt === null ? {} : { consumed: row.consumedAt }) };
    },
    async consume(id) {
      const row = await state.find(kind, id);
      if (row !== null) deps.checkResource(row.payload);
      const keptMs = kind === 'RefreshToken' ? LONGEST_S * 1_000 : USED_CODE_MS;
      if (await state.consume(kind, id, now() + keptMs)) return;
      // Two requests used it at the same time, so one of them may be a thief's.
      if (row !== null && row.grantKey !== null) await endGrant(row.grantKey);
      throw deps.usedBefore();
    },
    async destroy(id) {
      if (kind === 'Grant') await endGrant(id);
      await state.delete(kind, id);
    },
    revokeByGrantId: (grantKey) => state.deleteOfGrant(kind, grantKey),
  };
}

const NO_SESSIONS: Adapter = {
  upsert: async () => {},
  find: async () => undefined,
  findByUid: async () => undefined,
  findByUserCode: async () => undefined,
  consume: async () => {},
  destroy: async () => {},
  revokeByGrantId: async () => {},
};

async function isUsable(keys: Pick<KeyStore, 'find'>, hash: string, at: number): Promise<boolean> {
  const key = await keys.find(hash);
  return key !== null && !key.disabled && (key.expiresAt === null || key.expiresAt > at);
}

/** The member of a stored client that has the id of the key of its secret. The library does not see it. */
export const SECRET_KEY = 'secret_key';

/** The secret of a client is not stored: it follows from its id. */
function withSecret(stored: AdapterPayload, id: string, keys: ClientSecretKeys): AdapterPayload {
  const { [SECRET_KEY]: key, ...payload } = stored;
  const { token_endpoint_auth_method: method } = payload;
  return typeof method === 'string' && method.startsWith('client_secret_')
    ? { ...payload, client_secret: clientSecretOf(id, keys.key(typeof key === 'string' ? key : null)) }
    : payload;
}

export const clientSecretOf = (id: string, secret: Uint8Array): string =>
  createHmac('sha256', secret).update(id).digest('base64url');
