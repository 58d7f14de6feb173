import { hash, randomBytes } from 'node:crypto';
import { inTurn } from '#accounts';
import { levelsOfPath, networkLevels } from '#security';
import { loadStatements, rowReader, type Database, type Row, type Step, type Value } from '#store';

/** A row of the authorization server's state, without the id that it was found by. */
interface StateRow {
  readonly payload: Readonly<Record<string, unknown>>;
  readonly grantKey: string | null;
  readonly consumedAt: number | null;
  readonly expiresAt: number;
}

/**
 * The state of the authorization server in the database, so that any gateway answers the next request of a sign-in. Ids
 * are codes and tokens, and only their SHA-256 is stored. Times are epoch milliseconds. All methods reject with the
 * database's error.
 */
export interface StateStore {
  put(row: NewRow): Promise<void>;
  /** False if a row has the id already. */
  add(row: NewRow): Promise<boolean>;
  /** null for a row that has expired. */
  find(kind: string, id: string): Promise<StateRow | null>;
  /** Marks a code or a token as used. Resolves with the payload of its first use; null if that was before `since`. */
  consume(kind: string, id: string, use: Use): Promise<StateRow['payload'] | null>;
  /**
   * Forgets the oldest rows of a grant, so that `max` of the kind that were used, or were not, are left. Resolves with
   * the latest end of those that it forgot; null for none.
   */
  keepNewest(kind: string, grantKey: string, which: 'used' | 'unused', max: number): Promise<number | null>;
  delete(kind: string, id: string): Promise<void>;
  deleteOfGrant(kind: string, grantKey: string): Promise<void>;
  /**
   * Stores what a stranger begins, and nobody has agreed to yet: a client that registers itself, a sign-in. If its
   * place, or all together, have too many of this kind, one of the network that has most makes way. False if that is
   * the stranger's own.
   */
  begin(row: NewRow, address: string): Promise<boolean>;
  /** Keeps a registered client until `until` at least, because somebody allowed it something. */
  keepClient(id: string, until: number): Promise<void>;
  /** Ends everything of a grant whose key is gone, and with its last grant the client, an hour later. */
  endGrant(key: string): Promise<void>;
  /** Deletes at most `limit` expired rows, whose number it resolves with, and those of grants whose keys are gone. */
  sweep(limit?: number): Promise<number>;
}

interface NewRow {
  readonly kind: string;
  readonly id: string;
  readonly payload: object;
  readonly grantKey: string | null;
  readonly expiresAt: number;
  /** The client of a grant. */
  readonly client?: string;
}

interface Use {
  /** Becomes the payload of the row at its first use. */
  readonly payload: object;
  /** The end of the row. */
  readonly until: number;
  readonly since: number;
}

/** The most of one kind that strangers have begun and nobody agreed to, of a place (/24 or /64) and of all. */
const BEGUN_OF_PLACE_MAX = 500;
const BEGUN_MAX = 10_000;
/** Of so many it is known who has most: they are all of a place, or some of all, whose count would take 10 ms. */
const SAMPLE = BEGUN_OF_PLACE_MAX;
/** Others may take what has made way. */
const ATTEMPTS = 3;

const SQL = loadStatements(import.meta.url, './sql/state.sql', [
  'putState',
  'addState',
  'findState',
  'consumeState',
  'keepNewestState',
  'deleteState',
  'deleteStateOfGrant',
  'beginState',
  'countBegun',
  'sampleBegun',
  'makeWay',
  'keepClient',
  'endGrant',
  'endClient',
  'findEndedGrants',
  'sweepState',
]);

/** A program whose user ended its last grant learns so at its next refresh, and may ask for another one. */
const ENDED_CLIENT_MS = 60 * 60_000;

export function createStateStore(database: Pick<Database, 'query' | 'batch'>, now: () => number): StateStore {
  const endGrant = async (key: string): Promise<void> => {
    const gone = await database.query(SQL.endGrant, [key]);
    for (const { client } of gone)
      if (client !== null) await database.query(SQL.endClient, [client!, now() + ENDED_CLIENT_MS]);
  };
  const sampleOf = async (kind: string, place: string, at: number): Promise<readonly Begun[]> => {
    const from = randomBytes(32).toString('hex');
    const after = await database.query(SQL.sampleBegun, [kind, from, place, at, SAMPLE]);
    const rest = SAMPLE - after.length;
    const before = rest === 0 ? [] : await database.query(SQL.sampleBegun, [kind, '', place, at, rest]);
    return [...after, ...before].map(toBegun);
  };
  const valuesOf = ({ kind, id, payload, grantKey, expiresAt }: NewRow): Value[] => [
    kind,
    digestOf(id),
    JSON.stringify(payload),
    grantKey,
    expiresAt,
  ];
  return {
    async put(row) {
      const { client } = row;
      await database.query(SQL.putState, [...valuesOf(row), client === undefined ? null : digestOf(client)]);
    },
    async add(row) {
      return (await database.query(SQL.addState, valuesOf(row))).length > 0;
    },
    async find(kind, id) {
      const [row] = await database.query(SQL.findState, [kind, digestOf(id), now()]);
      if (!row) return null;
      const { grant_key: grantKey, consumed_at: consumedAt, expires_at: expiresAt } = row;
      return {
        payload: payloadOf(row),
        grantKey: grantKey as string | null,
        consumedAt: consumedAt === null ? null : Number(consumedAt),
        expiresAt: Number(expiresAt),
      };
    },
    async consume(kind, id, { payload, until, since }) {
      const params = [kind, digestOf(id), JSON.stringify(payload), now(), until, since];
      const [row] = await database.query(SQL.consumeState, params);
      return row === undefined ? null : payloadOf(row);
    },
    async keepNewest(kind, grantKey, which, max) {
      const params = [kind, grantKey, which === 'used' ? 1 : 0, max - 1];
      const ends = (await database.query(SQL.keepNewestState, params)).map((row) => Number(row['expires_at']));
      return ends.length === 0 ? null : Math.max(...ends);
    },
    async delete(kind, id) {
      await database.query(SQL.deleteState, [kind, digestOf(id)]);
    },
    async deleteOfGrant(kind, grantKey) {
      await database.query(SQL.deleteStateOfGrant, [kind, grantKey]);
    },
    async begin({ kind, id, payload, expiresAt }, address) {
      const levels = networkLevels(address);
      const place = levels[levels.length === 2 ? 0 : levels.length - 1]!;
      const at = now();
      const own = [kind, digestOf(id), JSON.stringify(payload), levels.at(-1)!, expiresAt];
      const insert = { statement: SQL.beginState, params: [...own, at, place, BEGUN_OF_PLACE_MAX, BEGUN_MAX] };
      const steps: Step[] = [insert];
      for (let attempt = 1; ; attempt++) {
        if ((await inTurn(database, `authorization ${kind}`, steps)).length > 0) return true;
        const [count] = await database.query(SQL.countBegun, [kind, place, at]);
        const full = Number(count!['begun']) < BEGUN_OF_PLACE_MAX ? '' : place;
        const victim = attempt === ATTEMPTS ? null : whoMakesWay(await sampleOf(kind, full, at), levels);
        if (victim === null) return false;
        steps.splice(0, steps.length, { statement: SQL.makeWay, params: [kind, victim.id] }, insert);
      }
    },
    async keepClient(id, until) {
      await database.query(SQL.keepClient, [digestOf(id), until]);
    },
    endGrant,
    async sweep(limit = 1_000) {
      // The gateway that deleted the key may have stopped before it could end the grant.
      for (const row of await database.query(SQL.findEndedGrants, [limit])) await endGrant(row['grant_key'] as string);
      return (await database.query(SQL.sweepState, [now(), limit])).length;
    },
  };
}

interface Begun {
  readonly id: string;
  readonly network: string;
  readonly expiresAt: number;
}

const toBegun = rowReader<Begun>({ expiresAt: Number });

/**
 * Which of those that were begun makes way for one of a network with these levels: the oldest one of whoever has most,
 * first among the widest networks, then among those in its own. Where nobody has two, chance decides. null if no other
 * network has more than one more than its own, which has some.
 */
function whoMakesWay(sample: readonly Begun[], levels: readonly string[]): Begun | null {
  let crowd = sample;
  for (const [depth, level] of levels.entries()) {
    const parties = Map.groupBy(crowd, ({ network }) => levelsOfPath(network)[depth] ?? network);
    const own = parties.get(level) ?? [];
    const most = [...parties.values()].reduce((one, other) => (other.length > one.length ? other : one), []);
    if (own.length === 0 || own.length + 1 < most.length)
      return most.length === 1
        ? crowd[0]!
        : most.reduce((one, other) => (other.expiresAt < one.expiresAt ? other : one));
    crowd = own;
  }
  return null;
}

const payloadOf = ({ payload }: Row): StateRow['payload'] => JSON.parse(payload as string) as StateRow['payload'];

const digestOf = (id: string): string => hash('sha256', id);
