import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import { TransientMap } from '#maps';
import { listParam, loadStatements, type Step } from '#store';
import { OWN_TURN_BYTES, ownTurn } from '#wire';
import { GatewayError } from '#errors';
import { limitText, sees, type TaskOwner } from '#tasks';
import {
  type KeptResponse,
  type KeptResponses,
  type ReadContent,
  toKept,
  type KeptEvents,
  type RunningEnd,
  type RunningResponses,
  type RunState,
  type Stored,
} from './kept-response.ts';
import { createResponseRoom, type KeptResponsesOptions, type ResponseRoom } from './response-room.ts';

/** Most responses of one conversation. A longer one goes on without its beginning, which is an error. */
const LINEAGE_MAX = 10_000;
/** A use prolongs the time only after this part of it (1 / PART) is over, so that most uses write nothing. */
const PROLONGED_PART = 8;
/** The row of an expected response is renewed when this part of its time (1 / PART) is over. */
const RENEWED_PART = 4;
/** Bytes of a row without its content, and of the row of an item. */
const ROW_BYTES = 512;
const ITEM_BYTES = 128;
/** The time of expiry of a response that is shown to nobody: it was deleted, or is not put yet. */
const HIDDEN_AT = 0;

const SQL = loadStatements(import.meta.url, './sql/responses.sql', [
  'expectResponse',
  'putResponse',
  'findLineage',
  'findResponses',
  'findItems',
  'readResponses',
  'prolongResponses',
  'deleteEnded',
  'deleteRun',
  'sweepResponses',
  'putRunning',
  'countRunning',
  'noteBegun',
  'cancelRun',
  'statesOfRuns',
  'renewRuns',
  'addItems',
  'putEvents',
  'countEventBytes',
  'showCancelled',
  'removeResponse',
  'finishRun',
  'loseRun',
  'postponeResponse',
  'findLost',
  'findEvents',
  'lastEvent',
  'deleteItemsOfRun',
  'deleteEventsOfRun',
]);
/** Expected responses above this number that could not be removed are found as lost. */
const DROPPED_MAX = 10_000;
const DELETE_PARTS = [SQL.deleteItemsOfRun, SQL.deleteEventsOfRun];

const sizeOf = (sealed: readonly string[], items: number): number =>
  ROW_BYTES + sealed.reduce((sum, { length }) => sum + length, 0) + items * ITEM_BYTES;

export function createKeptResponses(options: KeptResponsesOptions): KeptResponses {
  const { database, limits, longestLockMs, now } = options;
  const { keepMs } = limits;
  const room = createResponseRoom(options);
  const running = createRunningResponses(options, room);
  /** Responses that were not put, whose rows could not be removed. */
  const dropped = new TransientMap<string, Pick<KeptResponse, 'id' | 'account'>>();
  /** Responses that this gateway answers now, and until when their rows are not lost. A client may read slowly. */
  const expected = new TransientMap<string, number>();
  const renew = async () => {
    const until = now() + longestLockMs;
    for (const [id, before] of expected) {
      if (until - before < longestLockMs / RENEWED_PART) continue;
      await running.postpone(id, until);
      if (expected.has(id)) expected.set(id, until);
    }
  };
  let renewing: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  /** Renews without `sweep`, which may come seldom. If the database fails, the next turn tries again. */
  const keepRenewed = () => {
    const turn = () => {
      if (expected.size === 0 && timer !== null) {
        clearInterval(timer);
        timer = null;
      }
      renewing ??= renew()
        .catch(() => {})
        .finally(() => (renewing = null));
    };
    timer ??= setInterval(turn, longestLockMs / (2 * RENEWED_PART)).unref();
  };
  const drop = async (response: Pick<KeptResponse, 'id' | 'account'>) => {
    await database.query(SQL.removeResponse, [response.id, response.account]);
    dropped.delete(response.id);
  };

  const findAll = async (ids: readonly string[], owner: TaskOwner) =>
    ids.length === 0
      ? []
      : (await database.query(SQL.findResponses, [listParam(ids), owner.account, now()]))
          .map(toKept)
          .filter((one) => sees(one, owner));

  return {
    running,

    async expect({ id, account, within, service }) {
      const at = now();
      const until = at + longestLockMs;
      await database.query(SQL.expectResponse, [id, account, within, service, ROW_BYTES, at, HIDDEN_AT, until]);
      expected.set(id, until);
      keepRenewed();
    },

    async drop(response) {
      expected.delete(response.id);
      if (dropped.size < DROPPED_MAX) dropped.set(response.id, response);
      await drop(response);
    },

    async put({ id, account, within, service, previous, input, response, items }) {
      const sealed = [room.seal(account, input), room.seal(account, response)] as const;
      const bytes = sizeOf(sealed, items.length);
      if (!(await room.fits(account, bytes))) return false;
      const at = now();
      const row = [id, account, within, service, previous, ...sealed, bytes, at, at + keepMs];
      await database.batch([
        { statement: SQL.putResponse, params: row },
        ...(items.length === 0 ? [] : [{ statement: SQL.addItems, params: [id, listParam(items)] }]),
      ]);
      expected.delete(id);
      await room.added(account, bytes);
      return true;
    },

    findAll,
    find: async (id, owner) => (await findAll([id], owner))[0] ?? null,

    async lineage(id, owner) {
      const rows = await database.query(SQL.findLineage, [id, owner.account, now(), LINEAGE_MAX]);
      const responses = rows.map(toKept);
      const hidden = responses.findIndex((one) => !sees(one, owner));
      return (hidden === -1 ? responses : responses.slice(0, hidden)).toReversed();
    },

    async ofItems(ids, owner) {
      if (ids.length === 0) return new Map();
      const rows = await database.query(SQL.findItems, [listParam(ids), owner.account, now()]);
      return new Map(
        rows.flatMap(({ item, ...row }) => {
          const keptResponse = toKept(row);
          return sees(keptResponse, owner) ? [[item as string, keptResponse] as const] : [];
        }),
      );
    },

    async read(responses) {
      const contents = new Map<string, ReadContent>();
      const [first] = responses;
      if (first === undefined) return contents;
      const { account } = first;
      const ids = listParam(responses.map(({ id }) => id));
      for (const { id, input, response, run } of await database.query(SQL.readResponses, [ids, account])) {
        if ((input as string).length + (response as string).length > OWN_TURN_BYTES) await ownTurn();
        const [openedInput, openedResponse] = [input, response].map((sealed) => room.open(account, sealed as string));
        // A text that cannot be opened was sealed by a gateway with another identity.
        if (openedInput == null || openedResponse == null) continue;
        contents.set(id as string, {
          input: openedInput,
          response: openedResponse,
          run: run as ReadContent['run'],
        });
      }
      return contents;
    },

    async use(responses) {
      const until = now() + keepMs;
      const due = responses.filter(({ expiresAt }) => expiresAt < until - keepMs / PROLONGED_PART);
      if (due.length > 0) await database.query(SQL.prolongResponses, [listParam(due.map(({ id }) => id)), until]);
    },

    async delete({ id, account }) {
      await database.batch([
        { statement: SQL.deleteRun, params: [id, account, HIDDEN_AT, ROW_BYTES] },
        ...DELETE_PARTS.map((statement) => ({ statement, params: [id] })),
        { statement: SQL.deleteEnded, params: [id, account] },
      ]);
    },

    async sweep(limit) {
      for (const response of dropped.values()) await drop(response);
      return (await database.query(SQL.sweepResponses, [now(), limit])).length;
    },
  };
}

/** How long a gateway counts as being there after it last said so. Clocks of gateways may differ by most of it. */
const ALIVE_MS = 60_000;
/** A response that was made in the background is not deleted for lack of room for this long, so a client can get it. */
const HELD_MS = 600_000;
/** Seconds after which an account with the most responses under way may try again. */
const FULL_RETRY_S = 5;
const EVENTS_ROW_BYTES = 128;
const ANY_TIME = Number.MAX_SAFE_INTEGER;

// In other threads: the last event repeats the whole response, which may be large.
const pack = promisify<Buffer, Buffer>(deflateRaw);
const unpack = promisify<Buffer, Buffer>(inflateRaw);

function createRunningResponses({ database, limits, now }: KeptResponsesOptions, room: ResponseRoom): RunningResponses {
  const { keepMs, accountBytesMax, backgroundCountMax } = limits;

  const full = (part: string | null) =>
    new GatewayError(
      'rate_limit_exceeded',
      `${limitText(part, backgroundCountMax, 'responses under way in the background')}: wait until one has ended. One that is cancelled or deleted counts until its call is settled`,
      { retryAfterS: FULL_RETRY_S },
    );

  /**
   * Steps that store events. `until`: they store nothing if the gateway that makes the response has said that it is
   * there for longer.
   */
  async function stepsOfEvents(
    { id, account }: Pick<RunningEnd, 'id' | 'account'>,
    parts: readonly KeptEvents[],
    until = ANY_TIME,
  ): Promise<readonly Step[]> {
    // The events of a stream repeat each other: without compression they would take ten times the room.
    const packed = await Promise.all(parts.map(({ text }) => pack(Buffer.from(text))));
    return parts.flatMap(({ first, last }, at) => {
      const sealed = room.seal(account, packed[at]!.toString('base64'));
      return [
        { statement: SQL.putEvents, params: [id, first, last, sealed, until] },
        { statement: SQL.countEventBytes, params: [id, sealed.length + EVENTS_ROW_BYTES, until] },
      ];
    });
  }

  const stepsOfItems = (id: string, items: readonly string[]): readonly Step[] =>
    items.length === 0 ? [] : [{ statement: SQL.addItems, params: [id, listParam(items)] }];

  const stepsOfEnd = async (end: RunningEnd, until?: number): Promise<readonly Step[]> => [
    ...(await stepsOfEvents(end, end.events, until)),
    ...stepsOfItems(end.id, end.items),
  ];

  /** Stores an end together with its events and items, and then makes room for it. */
  async function store(end: RunningEnd, setResponse: (sealed: string) => Step): Promise<Stored> {
    const sealed = room.seal(end.account, end.response);
    if (sizeOf([sealed], end.items.length) > accountBytesMax) return 'too_large';
    const results = await database.batch([...(await stepsOfEnd(end)), setResponse(sealed)]);
    if (results.at(-1)!.length === 0) return 'gone';
    await room.fits(end.account, sealed.length);
    await room.added(end.account, sealed.length);
    return 'kept';
  }

  return {
    async admit({ account, within }) {
      const [row] = await database.query(SQL.countRunning, [account, within]);
      if (Number(row!['running']) >= 2 * backgroundCountMax) throw full(within);
    },

    async begin({ id, account, within, service, previous, input, response, items }, events) {
      const sealed = [room.seal(account, input), room.seal(account, response)] as const;
      const bytes = sizeOf(sealed, items.length);
      if (bytes > accountBytesMax)
        throw new GatewayError(
          'payload_too_large',
          `The input is larger than the ${accountBytesMax} bytes that an account may keep, so no response can be made of it in the background. Send the request without background`,
          { param: 'input' },
        );
      const at = now();
      const row = [id, account, within, service, previous, ...sealed, bytes, at, at + ALIVE_MS + keepMs, at + ALIVE_MS];
      const [put] = await database.batch([
        { statement: SQL.putRunning, params: [...row, backgroundCountMax] },
        ...stepsOfItems(id, items),
        ...(await stepsOfEvents({ id, account }, events === null ? [] : [events])),
      ]);
      if (put!.length === 0) throw full(within);
      await room.fits(account, bytes);
      await room.added(account, bytes);
    },

    async noteBegun(id) {
      await database.query(SQL.noteBegun, [id]);
    },

    cancel: async (id) => (await database.query(SQL.cancelRun, [id])).length > 0,

    async statesOf(ids) {
      const rows = await database.query(SQL.statesOfRuns, [listParam(ids)]);
      return new Map(rows.map(({ id, run }) => [id as string, run as RunState | null]));
    },

    async renew(ids) {
      const until = now() + ALIVE_MS;
      await database.query(SQL.renewRuns, [listParam(ids), until, until + keepMs]);
    },

    async addEvents(response, events) {
      await database.batch(await stepsOfEvents(response, [events]));
    },

    showCancelled: (end) => store(end, (sealed) => ({ statement: SQL.showCancelled, params: [end.id, sealed] })),

    async remove({ id, account }) {
      await database.query(SQL.removeResponse, [id, account]);
    },

    finish(end) {
      const at = now();
      return store(end, (sealed) => ({
        statement: SQL.finishRun,
        params: [end.id, sealed, at + keepMs, at + HELD_MS],
      }));
    },

    lost: async (limit, all = false) =>
      (await database.query(SQL.findLost, [all ? ANY_TIME : now(), limit])).map(toKept),

    isLost: ({ run, runUntil }) => run !== null && run !== 'lost' && (runUntil ?? 0) <= now(),

    async lose(end, openUntil, isSure = false) {
      const at = now();
      const until = isSure ? ANY_TIME : at;
      const sealed = room.seal(end.account, end.response);
      await database.batch([
        ...(await stepsOfEnd(end, until)),
        { statement: SQL.loseRun, params: [end.id, sealed, at + keepMs, at + HELD_MS, until, openUntil] },
      ]);
    },

    async postpone(id, until) {
      await database.query(SQL.postponeResponse, [id, until]);
    },

    async lastEvent(id) {
      const [row] = await database.query(SQL.lastEvent, [id]);
      const last = row?.['last'] ?? null;
      return last === null ? null : Number(last);
    },

    async events({ id, account }, after, limit) {
      const rows = await database.query(SQL.findEvents, [id, after, limit]);
      const parts = rows.map(async ({ last, events }) => {
        const packed = room.open(account, events as string);
        // Events that cannot be opened were sealed by a gateway with another identity.
        if (packed === null) return [];
        return [{ last: Number(last), text: (await unpack(Buffer.from(packed, 'base64'))).toString() }];
      });
      return (await Promise.all(parts)).flat();
    },
  };
}
