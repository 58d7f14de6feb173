import { listParam, loadStatements, type Database, type Row, type Value } from '#store';
import {
  type Caller,
  type CallRules,
  callRulesOf,
  inTurn,
  type MinuteRates,
  patternsToText,
  USUAL_PERCENTAGES,
  type LimitsOf,
  createCarriedSums,
  carryingKey,
  carryingLimitsOf,
  tagsToText,
} from '#accounts';
import { LIMIT_RESETS, type SpendLimit } from '#accounts/names';
import { createKey, type KeyKind } from './api-key.ts';

/** The one who set the spending limit of a key: the operator, or the owner of the key's account. */
export type LimitSetter = 'operator' | 'account';

/** A stored API key. Times are epoch milliseconds. The key's text is not stored and cannot be recovered. */
export interface KeyRecord extends SpendLimit, MinuteRates, CallRules {
  /** SHA-256 of the key's first text in hex: the key's public identifier, which stays when it gets another text. */
  readonly hash: string;
  readonly account: string;
  readonly label: string;
  readonly development: boolean;
  readonly disabled: boolean;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  /** The member that the key belongs to. null: it belongs to the account itself. */
  readonly member: string | null;
  /** The last one who set the limit. null if there is no limit, or if that is unknown. */
  readonly limitBy: LimitSetter | null;
  /**
   * A notice is sent when these percentages of the limit are spent. null: no notices. A limit that becomes soft gets
   * USUAL_PERCENTAGES, unless percentages are given with the change or were set before.
   */
  readonly limitNotify: readonly number[] | null;
  /** Whether a stream that breaks off is gone on with, if its request does not say it. null: as the model says. */
  readonly continues: boolean | null;
  /**
   * The origin of the program that got this key by signing in through the gateway's authorization server, or
   * PLAYGROUND. Nobody has the text of such a key. null for a key that somebody has.
   */
  readonly client: string | null;
}

export interface KeyWithLimits extends KeyRecord {
  /** When the text that it was found by is refused. null: it is not replaced, or the key was not found by a text. */
  readonly secretEndsAt: number | null;
  readonly ofAccount: readonly LimitsOf[];
}

/** Changes of a key. Absent fields stay as they are. */
export type KeyChanges = Partial<
  Pick<
    KeyRecord,
    | 'label'
    | 'disabled'
    | 'expiresAt'
    | 'limitNotify'
    | 'continues'
    | Exclude<keyof SpendLimit, 'carried'>
    | keyof MinuteRates
    | keyof CallRules
  >
>;

export type NewKeyFields = {
  readonly account: string;
  readonly label: string;
  readonly kind: Exclude<KeyKind, 'admin'>;
  readonly member?: string | null;
  readonly client?: string | null;
  /** No key is made if the member has one of this client and kind, at any gateway. */
  readonly single?: boolean;
  /** Default `account`. */
  readonly limitBy?: LimitSetter;
  /** The most keys of the owner. Default KEYS_PER_ACCOUNT_MAX. */
  readonly most?: number;
  /** No key is made with a session or a key that has ended. Default: the gateway makes it. */
  readonly maker?: Pick<Caller, 'session' | 'key'> | undefined;
} & Omit<KeyChanges, 'label' | 'disabled'>;

/** The client of keys with which browsers of members call. No program can have this text, because it is no origin. */
export const PLAYGROUND = 'the playground of this gateway';

/** Of a member, or of the account itself, of twice as many of all, see limitText. */
export const KEYS_PER_ACCOUNT_MAX = 1_000;
/** The same of an account that never had money, because such accounts cost nothing. */
export const UNFUNDED_KEYS_MAX = 20;
/** A key is deleted so long after it has expired. Its name stays. */
const EXPIRED_KEPT_MS = 90 * 24 * 60 * 60_000;
/** Names of deleted keys that are kept for the figures of an account. */
const DELETED_NAMES_MAX = 5_000;
/** How long the text before may work beside a new one. */
export const GRACE_S_MAX = 7 * 24 * 60 * 60;

export interface KeyStore {
  /**
   * Creates a key. `text` is available only here. null if the owner has its share of `most` keys already, if `member`
   * is not a member of the account or is a viewer, if the credential of `maker` has ended, or if there is one already
   * of those that are `single`.
   */
  create(fields: NewKeyFields): Promise<{ readonly text: string; readonly record: KeyRecord } | null>;
  find(hash: string): Promise<KeyRecord | null>;
  /** The key of a member that a program has, or the playground of the member. */
  findOfClient(account: string, member: string, client: string, kind: NewKeyFields['kind']): Promise<KeyRecord | null>;
  /**
   * Also null for the key of a former member or of a viewer. `at` (epoch milliseconds, default now) selects the periods
   * whose carried sums are added to the limits.
   */
  findWithLimits(hash: string, at?: number): Promise<KeyWithLimits | null>;
  /** The same by the SHA-256 of a text of the key. null for a text that was replaced. */
  findBySecret(secret: string, at?: number): Promise<KeyWithLimits | null>;
  /** The names of keys of the account by their hashes, also of the newest deleted ones. */
  names(account: string): Promise<ReadonlyMap<string, string>>;
  /** Oldest first. */
  list(account: string, page: { readonly offset: number; readonly limit: number }): Promise<readonly KeyRecord[]>;
  /** The names of keys of any account by their hashes, also of deleted ones. */
  labels(hashes: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** null if the account has no such key. `setter`: who makes the change. Default: `account`. */
  update(account: string, hash: string, changes: KeyChanges, setter?: LimitSetter): Promise<KeyRecord | null>;
  /**
   * Gives a key another text. The one before it is good for `graceMs` more. Ends the sessions that the key began. null
   * if the account has no such key, or if it is one of a program, which has no text.
   */
  rotate(
    account: string,
    hash: string,
    graceMs: number,
  ): Promise<{ readonly text: string; readonly record: KeyRecord } | null>;
  /** False if the account has no such key. */
  delete(account: string, hash: string): Promise<boolean>;
  /**
   * Deletes the keys of a person: those of the person's own account, and those as a member of other accounts. The
   * person's sessions must have ended before, so that none makes another key.
   */
  deleteOfPerson(account: string): Promise<void>;
  /** Deletes keys that expired 90 days ago, at most `limit`; resolves with their number. */
  sweep(limit: number): Promise<number>;
  /** Notifies the listeners of a key whose member was removed or got another role. */
  memberChanged(hash: string): void;
  /**
   * Calls `listener` with the hash of every key that this store has changed or deleted, once the change is durable.
   * Also after a failed change, whose outcome is unknown. Returns a function that unsubscribes.
   */
  onChange(listener: (hash: string) => void): () => void;
}

const SQL = loadStatements(import.meta.url, './sql/keys.sql', [
  'insertKey',
  'findKey',
  'findKeyWithLimits',
  'touchMember',
  'listKeys',
  'findKeyLabels',
  'updateKey',
  'deleteKey',
  'sweepExpiredKeys',
  'deleteKeysOfPerson',
  'findKeyOfClient',
  'keepName',
  'dropOldNames',
  'listNames',
  'keepFirstSecret',
  'endSecrets',
  'dropOldSecrets',
  'endSessionsOfSecrets',
  'addSecret',
]);

/** A key gets another text, and sessions begin with its texts, one after the other. */
export const turnOfSecrets = (hash: string): string => `secrets of ${hash}`;
/** Keys of an account are made, and those of a person deleted, one after the other. */
const turnOf = (account: string): string => `keys of ${account}`;

/** API keys in the database. All methods reject with the database's error. */
export function createKeyStore(
  database: Database,
  { now, deletedNamesMax = DELETED_NAMES_MAX }: { readonly now: () => number; readonly deletedNamesMax?: number },
): KeyStore {
  const sums = createCarriedSums(database, now);
  const listeners = new Set<(hash: string) => void>();
  // Listeners are notified after a failure too: the commit may have happened although its response was lost.
  const changing = async <T>(hash: string, change: Promise<T>): Promise<T> => {
    try {
      return await change;
    } finally {
      for (const listener of listeners) listener(hash);
    }
  };

  /** A key, with the sum that is carried to its limit in the period of `at`. */
  const carrying = async (row: Row, at = now()): Promise<KeyRecord> => {
    const record = recordOf(row);
    const carried = record.limit === null ? null : await sums.useOf(carryingKey(row), at);
    return carried === null ? record : { ...record, carried };
  };

  /** Before a limit gets a new period, reads the sum that the limit will begin with. See CarriedSums.prepare. */
  const prepare = async (account: string, hash: string, { limit, limitReset }: KeyChanges): Promise<void> => {
    if (limit === undefined && limitReset === undefined) return;
    const [row] = await database.query(SQL.findKey, [hash]);
    if (!row || row['account'] !== account) return;
    const before = recordOf(row);
    const after = {
      limit: limit === undefined ? before.limit : limit,
      limitReset: limitReset === undefined ? before.limitReset : limitReset,
    };
    const hadIt = before.limit !== null && before.limitReset === after.limitReset;
    if (after.limit !== null && !hadIt) await sums.prepare({ ...carryingKey(row), limitReset: after.limitReset });
  };

  const withLimits = async (id: string, at: number, isSecret: boolean): Promise<KeyWithLimits | null> => {
    const rows = await database.query(SQL.findKeyWithLimits, [id, isSecret ? 1 : 0, at]);
    if (rows.length === 0) return null;
    const account = rows[0]!['account'] as string;
    const ofAccount = rows
      .filter((row) => row['subject'] !== null)
      .map((row) => ({
        ...row,
        requests_per_minute: row['account_requests']!,
        tokens_per_minute: row['account_tokens']!,
        allowed_services: row['account_services']!,
        ask_above: row['account_ask_above']!,
        tags: row['account_tags']!,
      }))
      .map((row) => carryingLimitsOf(account, row, sums, at));
    const secretEndsAt = numberOf(rows[0]!['secret_ends_at']!);
    return { ...(await carrying(rows[0]!, at)), secretEndsAt, ofAccount: await Promise.all(ofAccount) };
  };

  return {
    async create({ account, label, kind, expiresAt = null, limit = null, limitReset = null, ...others }) {
      const { text, hash } = createKey(kind);
      const fields: Value[] = [
        hash,
        account,
        label,
        kind === 'development' ? 1 : 0,
        now(),
        expiresAt,
        limit,
        limitReset,
        patternsToText(others.allowedServices ?? null),
        others.askAbove ?? null,
        others.limitSoft ? 1 : 0,
        textOf(others.limitNotify ?? (becomesSoft(others) ? USUAL_PERCENTAGES : null)),
        others.requestsPerMinute ?? null,
        others.tokensPerMinute ?? null,
        others.member ?? null,
        others.limitBy ?? 'account',
        others.client ?? null,
        tagsToText(others.tags ?? null),
        flagOf(others.continues ?? null),
      ];
      const { session, key } = others.maker ?? {};
      const single = others.single === true ? 1 : 0;
      const params = [...fields, others.most ?? KEYS_PER_ACCOUNT_MAX, session?.id ?? null, key?.hash ?? null, single];
      const insert = { statement: SQL.insertKey, params };
      // This update and a removal of the member wait for each other, so that no key outlives its member.
      const touch = { statement: SQL.touchMember, params: [account, others.member ?? ''] };
      const [row] = await inTurn(database, turnOf(account), others.member ? [touch, insert] : [insert]);
      if (!row) return null;
      await database.batch([
        { statement: SQL.keepName, params: [hash, account] },
        { statement: SQL.dropOldNames, params: [account, deletedNamesMax] },
      ]);
      return { text, record: recordOf(row) };
    },

    async find(hash) {
      const [row] = await database.query(SQL.findKey, [hash]);
      return row ? carrying(row) : null;
    },

    async findOfClient(account, member, client, kind) {
      const params = [account, member, client, kind === 'development' ? 1 : 0];
      const [row] = await database.query(SQL.findKeyOfClient, params);
      return row ? carrying(row) : null;
    },

    findWithLimits: (hash, at = now()) => withLimits(hash, at, false),
    findBySecret: (secret, at = now()) => withLimits(secret, at, true),

    async names(account) {
      const rows = await database.query(SQL.listNames, [account]);
      return new Map(rows.map(({ hash, label }) => [hash as string, label as string]));
    },

    async list(account, { offset, limit }) {
      const rows = await database.query(SQL.listKeys, [account, limit, offset]);
      return Promise.all(rows.map((row) => carrying(row)));
    },

    async labels(hashes) {
      const rows = await database.query(SQL.findKeyLabels, [listParam(hashes)]);
      return new Map(rows.map((row) => [row['hash'] as string, row['label'] as string]));
    },

    async update(account, hash, changes, setter = 'account') {
      const params = [
        ...set(changes.label, ''),
        ...set(changes.disabled === undefined ? undefined : Number(changes.disabled), 0),
        ...set(changes.expiresAt, null),
        ...set(changes.limit, null),
        ...set(changes.limitReset, null),
        ...set(changes.allowedServices === undefined ? undefined : patternsToText(changes.allowedServices), null),
        ...set(changes.askAbove, null),
        ...set(changes.limitSoft === undefined ? undefined : Number(changes.limitSoft), 0),
        ...notifyParams(changes),
        ...set(changes.requestsPerMinute, null),
        ...set(changes.tokensPerMinute, null),
        setter,
        now(),
        ...set(changes.tags === undefined ? undefined : tagsToText(changes.tags), null),
        ...set(changes.continues === undefined ? undefined : flagOf(changes.continues), null),
      ];
      await prepare(account, hash, changes);
      const update = { statement: SQL.updateKey, params: [hash, account, ...params] };
      const keepName = { statement: SQL.keepName, params: [hash, account] };
      const [updated] = await changing(hash, database.batch([update, keepName]));
      const [row] = updated!;
      return row ? carrying(row) : null;
    },

    async rotate(account, hash, graceMs) {
      const [row] = await database.query(SQL.findKey, [hash]);
      if (!row || row['account'] !== account || row['client'] !== null) return null;
      const { text, hash: secret } = createKey(row['development'] === 1n ? 'development' : 'live');
      const at = now();
      const steps = [
        { statement: SQL.keepFirstSecret, params: [hash] },
        { statement: SQL.endSecrets, params: [hash, at + graceMs, at] },
        { statement: SQL.dropOldSecrets, params: [hash, at] },
        { statement: SQL.endSessionsOfSecrets, params: [hash] },
        { statement: SQL.addSecret, params: [hash, secret] },
      ];
      const added = await changing(hash, inTurn(database, turnOfSecrets(hash), steps));
      return added.length > 0 ? { text, record: await carrying(row) } : null;
    },

    async delete(account, hash) {
      return (await changing(hash, database.query(SQL.deleteKey, [hash, account]))).length > 0;
    },

    async deleteOfPerson(account) {
      // After the keys that are being made: those that are made later lack their maker, see insertKey.
      const steps = [{ statement: SQL.deleteKeysOfPerson, params: [account] }];
      for (const { hash } of await inTurn(database, turnOf(account), steps))
        for (const listener of listeners) listener(hash as string);
    },

    async sweep(limit) {
      return (await database.query(SQL.sweepExpiredKeys, [now() - EXPIRED_KEPT_MS, limit])).length;
    },

    memberChanged(hash) {
      for (const listener of listeners) listener(hash);
    },

    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/**
 * Whether a key has a spending limit, a rate, an expiry, a list of services, tags or a price above which a person is
 * asked, or belongs to a member of the account or to a program that signed in. So a program stays without full rights,
 * whatever its owner changes.
 */
export const hasRestriction = (record: KeyRecord): boolean => {
  const { limit, requestsPerMinute, tokensPerMinute, expiresAt, allowedServices, askAbove, tags, member, client } =
    record;
  const parts = [limit, requestsPerMinute, tokensPerMinute, expiresAt, allowedServices, askAbove, tags, member, client];
  return parts.some((part) => part !== null);
};

/** Whether a change makes a limit soft and names no percentages. The limit may have been soft before. */
const becomesSoft = ({ limitSoft, limitNotify }: KeyChanges): boolean =>
  limitSoft === true && limitNotify === undefined;

const set = (value: Value | undefined, none: Value): Value[] => (value === undefined ? [0, none] : [1, value]);

/** The parameters of the percentages. The statement `updateKey` explains the switch 2. */
const notifyParams = (changes: KeyChanges): Value[] =>
  becomesSoft(changes) ? [2, textOf(USUAL_PERCENTAGES)] : set(changes.limitNotify && textOf(changes.limitNotify), null);

const textOf = (list: readonly number[] | null): string | null => (list === null ? null : JSON.stringify(list));

const flagOf = (flag: boolean | null): Value => (flag === null ? null : Number(flag));

const numberOf = (value: Value): number | null => (value === null ? null : Number(value));

function recordOf(row: Row): KeyRecord {
  const reset = row['limit_reset'];
  return {
    hash: row['hash'] as string,
    account: row['account'] as string,
    label: row['label'] as string,
    member: row['member'] as string | null,
    client: row['client'] as string | null,
    development: row['development'] === 1n,
    disabled: row['disabled'] !== 0n,
    createdAt: Number(row['created_at']),
    expiresAt: numberOf(row['expires_at']!),
    limit: row['spend_limit'] === null ? null : (row['spend_limit'] as bigint),
    limitReset: LIMIT_RESETS.find((known) => known === reset) ?? null,
    limitSoft: row['limit_soft'] === 1n,
    limitBy: row['spend_limit'] === null ? null : (row['limit_by'] as LimitSetter | null),
    limitNotify: row['limit_notify'] === null ? null : (JSON.parse(row['limit_notify'] as string) as number[]),
    requestsPerMinute: numberOf(row['requests_per_minute']!),
    tokensPerMinute: numberOf(row['tokens_per_minute']!),
    continues: row['continues'] === null ? null : row['continues'] === 1n,
    ...callRulesOf(row),
  };
}
