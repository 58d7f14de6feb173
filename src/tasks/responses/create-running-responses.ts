import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import { type Database, loadStatement, type Step } from '#store';
import { GatewayError } from '#wire';
import { toKept } from './kept-rows.ts';
import type { KeptResponsesOptions, ResponseRoom } from './response-room.ts';
import type { KeptEvents, RunningEnd, RunningResponses, RunState, Stored } from './running-response.ts';

/** How long a gateway counts as being there after it last said so. Clocks of gateways may differ by most of it. */
const ALIVE_MS = 60_000;
/** A response that was made in the background is not deleted for lack of room for this long, so a client can get it. */
const HELD_MS = 600_000;
/** Seconds after which an account with the most responses under way may try again. */
const FULL_RETRY_S = 5;
const EVENTS_ROW_BYTES = 128;
const ANY_TIME = Number.MAX_SAFE_INTEGER;

const PUT = loadStatement(import.meta.url, './sql/put-running.sql');
const COUNT = loadStatement(import.meta.url, './sql/count-running.sql');
const NOTE_BEGUN = loadStatement(import.meta.url, './sql/note-begun.sql');
const CANCEL = loadStatement(import.meta.url, './sql/cancel-run.sql');
const STATES = {
  sqlite: loadStatement(import.meta.url, './sql/states-of-runs.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-states-of-runs.sql'),
} as const;
const RENEW = {
  sqlite: loadStatement(import.meta.url, './sql/renew-runs.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-renew-runs.sql'),
} as const;
const ADD_ITEMS = {
  sqlite: loadStatement(import.meta.url, './sql/add-items.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-add-items.sql'),
} as const;
const PUT_EVENTS = loadStatement(import.meta.url, './sql/put-events.sql');
const COUNT_EVENTS = loadStatement(import.meta.url, './sql/count-event-bytes.sql');
const SHOW_CANCELLED = loadStatement(import.meta.url, './sql/show-cancelled.sql');
const REMOVE = loadStatement(import.meta.url, './sql/remove-response.sql');
const FINISH = loadStatement(import.meta.url, './sql/finish-run.sql');
const LOSE = loadStatement(import.meta.url, './sql/lose-run.sql');
const FIND_LOST = loadStatement(import.meta.url, './sql/find-lost.sql');
const FIND_EVENTS = loadStatement(import.meta.url, './sql/find-events.sql');
const LAST_EVENT = loadStatement(import.meta.url, './sql/last-event.sql');

// In other threads: the last event repeats the whole response, which may be large.
const pack = promisify<Buffer, Buffer>(deflateRaw);
const unpack = promisify<Buffer, Buffer>(inflateRaw);

/** Steps of transactions that store events and items. */
function createSteps(engine: Database['engine'], room: ResponseRoom) {
  /** `until`: only if the gateway of the response is there at most until then. */
  async function ofEvents(
    { id, account }: Pick<RunningEnd, 'id' | 'account'>,
    parts: readonly KeptEvents[],
    until = ANY_TIME,
  ): Promise<readonly Step[]> {
    // The events of a stream repeat each other: without compression they would take ten times the room.
    const packed = await Promise.all(parts.map(({ text }) => pack(Buffer.from(text))));
    return parts.flatMap(({ first, last }, at) => {
      const sealed = room.seal(account, packed[at]!.toString('base64'));
      return [
        { statement: PUT_EVENTS, params: [id, first, last, sealed, until] },
        { statement: COUNT_EVENTS, params: [id, sealed.length + EVENTS_ROW_BYTES, until] },
      ];
    });
  }

  const ofItems = (id: string, items: readonly string[]): readonly Step[] =>
    items.length === 0 ? [] : [{ statement: ADD_ITEMS[engine], params: [id, JSON.stringify(items)] }];

  return {
    ofEvents,
    ofItems,
    ofEnd: async (end: RunningEnd, until?: number) => [
      ...(await ofEvents(end, end.events, until)),
      ...ofItems(end.id, end.items),
    ],
  };
}

/** `sizeOf`: the bytes that a response takes with its items. */
export function createRunningResponses(
  { database, limits, now }: KeptResponsesOptions,
  room: ResponseRoom,
  sizeOf: (sealed: readonly string[], items: number) => number,
): RunningResponses {
  const { engine } = database;
  const { keepMs, accountBytesMax, backgroundCountMax } = limits;

  const full = () =>
    new GatewayError(
      'rate_limit_exceeded',
      `This account has ${backgroundCountMax} responses under way in the background, which is its limit: wait until one has ended. One that is cancelled or deleted counts until its call is settled`,
      { retryAfterS: FULL_RETRY_S },
    );

  const steps = createSteps(engine, room);
  async function store(end: RunningEnd, setResponse: (sealed: string) => Step): Promise<Stored> {
    const sealed = room.seal(end.account, end.response);
    if (sizeOf([sealed], end.items.length) > accountBytesMax) return 'too_large';
    const results = await database.batch([...(await steps.ofEnd(end)), setResponse(sealed)]);
    if (results.at(-1)!.length === 0) return 'gone';
    await room.fits(end.account, sealed.length);
    await room.added(end.account, sealed.length);
    return 'kept';
  }

  return {
    async admit(account) {
      const [row] = await database.query(COUNT, [account]);
      if (Number(row!['running']) >= backgroundCountMax) throw full();
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
        { statement: PUT, params: [...row, backgroundCountMax] },
        ...steps.ofItems(id, items),
        ...(await steps.ofEvents({ id, account }, events === null ? [] : [events])),
      ]);
      if (put!.length === 0) throw full();
      await room.fits(account, bytes);
      await room.added(account, bytes);
    },

    async noteBegun(id) {
      await database.query(NOTE_BEGUN, [id]);
    },

    cancel: async (id) => (await database.query(CANCEL, [id])).length > 0,

    async statesOf(ids) {
      const rows = await database.query(STATES[engine], [JSON.stringify(ids)]);
      return new Map(rows.map(({ id, run }) => [id as string, run as RunState | null]));
    },

    async renew(ids) {
      const until = now() + ALIVE_MS;
      await database.query(RENEW[engine], [JSON.stringify(ids), until, until + keepMs]);
    },

    async addEvents(response, events) {
      await database.batch(await steps.ofEvents(response, [events]));
    },

    showCancelled: (end) => store(end, (sealed) => ({ statement: SHOW_CANCELLED, params: [end.id, sealed] })),

    async remove({ id, account }) {
      await database.query(REMOVE, [id, account]);
    },

    finish(end) {
      const at = now();
      return store(end, (sealed) => ({ statement: FINISH, params: [end.id, sealed, at + keepMs, at + HELD_MS] }));
    },

    lost: async (limit, all = false) => (await database.query(FIND_LOST, [all ? ANY_TIME : now(), limit])).map(toKept),

    isLost: ({ run, runUntil }) => run !== null && run !== 'lost' && (runUntil ?? 0) <= now(),

    async lose(end, isSure = false) {
      const at = now();
      const until = isSure ? ANY_TIME : at;
      const sealed = room.seal(end.account, end.response);
      await database.batch([
        ...(await steps.ofEnd(end, until)),
        { statement: LOSE, params: [end.id, sealed, at + keepMs, at + HELD_MS, until] },
      ]);
    },

    async lastEvent(id) {
      const [row] = await database.query(LAST_EVENT, [id]);
      const last = row?.['last'] ?? null;
      return last === null ? null : Number(last);
    },

    async events({ id, account }, after, limit) {
      const rows = await database.query(FIND_EVENTS, [id, after, limit]);
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
