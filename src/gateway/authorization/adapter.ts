import { createHmac } from 'node:crypto';
import type { Adapter, AdapterPayload } from 'oidc-provider';
import type { KeyStore } from '#auth';
import type { SealedTexts } from '#security';
import type { StateStore } from './state-store.ts';

/** Keys of 32 bytes that all gateways have, from which secrets of registered clients are derived. */
export interface ClientSecretKeys {
  /** Id of the key for new clients. It is stored with them. */
  readonly id: string;
  /** null: of clients that were registered without an id. */
  key(id: string | null): Uint8Array;
}

export interface AdapterDeps {
  readonly state: StateStore;
  readonly keys: Pick<KeyStore, 'find' | 'delete'>;
  readonly clientSecrets: ClientSecretKeys;
  /** Seals what a refresh token says of itself. */
  readonly refreshTexts: Pick<SealedTexts, 'seal' | 'open'>;
  /** Stores a sign-in that begins. False if too many are open. */
  readonly begin: (row: Parameters<StateStore['begin']>[0]) => Promise<boolean>;
  /** Makes the error of the library for a sign-in beyond those that may be open. */
  readonly tooMany: () => Error;
  /**
   * Throws the error of the library if the request that is about to use this code or token asks for a resource that it
   * is not for.
   */
  readonly checkResource: (payload: AdapterPayload) => void;
  /** Names the DPoP key of the request that is about to use a code; empty for none. */
  readonly proofKey: () => string;
  /** Makes the error of the library for a code or token that another request has just used. */
  readonly usedBefore: () => Error;
  readonly now: () => number;
}

/**
 * A code or token that comes again within this time of its first use is the same act: honest programs refresh in
 * parallel, and send again what got no answer.
 */
const REPEAT_MS = 60_000;
/**
 * How long a used code is kept, because a later use shows that somebody stole it. A refresh token is kept until it
 * would have ended: a thief may use it long before its program, which is not used every week.
 */
const USED_CODE_MS = 24 * 60 * 60_000;
/** The library forgets a proof when it is as old as it may be, although it accepts one that is as much ahead. */
const PROOF_AHEAD_MS = 5 * 60_000;
const LONGEST_S = 400 * 24 * 60 * 60;
/**
 * Repeats leave refresh tokens that nobody uses. Of a grant this many are good; the oldest are forgotten. A program
 * that works in several processes has one for each. As many used ones are kept.
 */
const REFRESH_TOKENS_MAX = 32;
/**
 * One row of a grant says until when the refresh tokens end that were forgotten. A token says itself which grant it is
 * of and when it ends, so one that comes back later than that is known although it has no row, and ends the grant.
 */
const FORGOTTEN = 'ForgottenTokens';
const PURPOSE = 'refresh token';

/** The text of a refresh token. */
export const refreshTextOf = (texts: Pick<SealedTexts, 'seal'>, grantKey: string, endsAt: number): string =>
  texts.seal(PURPOSE, JSON.stringify([grantKey, endsAt]));

/**
 * The library's access to its state, for one kind of it. A grant is an API key: it ends with the key, and the key with
 * it. Sessions of the library are not kept, because each sign-in asks the person anew.
 */
export function createAdapter(kind: string, deps: AdapterDeps): Adapter {
  const { state, keys, refreshTexts, now } = deps;
  if (kind === 'Session') return NO_SESSIONS;
  const endGrant = async (key: string): Promise<void> => {
    const record = await keys.find(key);
    if (record?.client !== null && record !== null) await keys.delete(record.account, key);
  };
  const forget = async (grantKey: string): Promise<void> => {
    await state.keepNewest(kind, grantKey, 'unused', REFRESH_TOKENS_MAX);
    const end = await state.keepNewest(kind, grantKey, 'used', REFRESH_TOKENS_MAX);
    if (end === null) return;
    const before = await state.find(FORGOTTEN, grantKey);
    const until = Math.max(end, Number(before?.payload['until'] ?? 0));
    await state.put({ kind: FORGOTTEN, id: grantKey, payload: { until }, grantKey, expiresAt: until });
  };
  /** Ends the grant of a refresh token that was forgotten. */
  const endForgotten = async (text: string): Promise<void> => {
    const content = refreshTexts.open(PURPOSE, text);
    if (content === null) return;
    const [grantKey, endsAt] = JSON.parse(content) as [string, number];
    const mark = endsAt > now() ? await state.find(FORGOTTEN, grantKey) : null;
    if (mark !== null && endsAt <= Number(mark.payload['until'])) await endGrant(grantKey);
  };
  return {
    ...NO_SESSIONS,
    async upsert(id, { jti: _jti, ...payload }, expiresInS = LONGEST_S) {
      const grantKey = kind === 'Grant' ? id : (payload.grantId ?? null);
      const more = kind === 'ReplayDetection' ? PROOF_AHEAD_MS : 0;
      const client = kind === 'Grant' && payload.clientId !== undefined ? { client: payload.clientId } : {};
      const row = { kind, id, payload, grantKey, expiresAt: now() + expiresInS * 1_000 + more, ...client };
      // A sign-in that has its answer is there already.
      if (kind === 'Interaction' && payload.result === undefined) {
        if (!(await deps.begin(row))) throw deps.tooMany();
      } else if (kind !== 'ReplayDetection') await state.put(row);
      else if (!(await state.add(row))) throw deps.usedBefore();
      if (kind === 'RefreshToken' && grantKey !== null) await forget(grantKey);
    },
    async find(id) {
      const row = await state.find(kind, id);
      if (row === null && kind === 'RefreshToken') await endForgotten(id);
      if (row === null) return undefined;
      if (kind === 'Client') return withSecret(row.payload, id, deps.clientSecrets);
      if (kind === 'Grant' && !(await isUsable(keys, id, now()))) return undefined;
      const { payload, consumedAt, expiresAt } = row;
      if (consumedAt === null) return { ...payload, jti: id };
      const isRepeat = consumedAt > now() - REPEAT_MS;
      // A used code is kept longer than it was good, and the library calls one that has expired nothing worse.
      return { ...payload, jti: id, exp: Math.ceil(expiresAt / 1_000), ...(isRepeat ? {} : { consumed: consumedAt }) };
    },
    async consume(id) {
      const row = await state.find(kind, id);
      if (row === null) throw deps.usedBefore();
      deps.checkResource(row.payload);
      const isCode = kind === 'AuthorizationCode';
      const used = await state.consume(kind, id, {
        payload: isCode ? { ...row.payload, [USED_WITH]: deps.proofKey() } : row.payload,
        until: isCode ? now() + USED_CODE_MS : row.expiresAt,
        since: now() - REPEAT_MS,
      });
      if (used !== null && (!isCode || used[USED_WITH] === deps.proofKey())) return;
      if (row.grantKey !== null) await endGrant(row.grantKey);
      throw deps.usedBefore();
    },
    async destroy(id) {
      if (kind === 'Grant') await endGrant(id);
      await state.delete(kind, id);
    },
    revokeByGrantId: (grantKey) => state.deleteOfGrant(kind, grantKey),
  };
}

/**
 * The member of a used code that names the DPoP key of its first use. A repeat has the same one: a thief of the code
 * and its verifier has another. Refresh tokens have their key from the beginning.
 */
const USED_WITH = 'used_with';

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
