import { loadStatement } from '#store';
import { OWN_TURN_BYTES, ownTurn } from '#wire';
import { sees } from '../task-rows.ts';
import type { TaskOwner } from '../task.ts';
import { createRunningResponses } from './create-running-responses.ts';
import type { KeptResponses, ReadContent } from './kept-response.ts';
import { toKept } from './kept-rows.ts';
import { createResponseRoom, type KeptResponsesOptions } from './response-room.ts';

/** Most responses of one conversation. A longer one goes on without its beginning, which is an error. */
const LINEAGE_MAX = 10_000;
/** A use prolongs the time only after this part of it (1 / PART) is over, so that most uses write nothing. */
const PROLONGED_PART = 8;
/** Bytes of a row without its content, and of the row of an item. */
const ROW_BYTES = 512;
const ITEM_BYTES = 128;
/** The time of expiry of a deleted response, which is shown to nobody. */
const DELETED_AT = 0;

const PUT = loadStatement(import.meta.url, './sql/put-response.sql');
const PUT_ITEMS = {
  sqlite: loadStatement(import.meta.url, './sql/put-items.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-put-items.sql'),
} as const;
const LINEAGE = loadStatement(import.meta.url, './sql/find-lineage.sql');
const FIND = {
  sqlite: loadStatement(import.meta.url, './sql/find-responses.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-find-responses.sql'),
} as const;
const OF_ITEMS = {
  sqlite: loadStatement(import.meta.url, './sql/find-items.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-find-items.sql'),
} as const;
const READ = {
  sqlite: loadStatement(import.meta.url, './sql/read-responses.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-read-responses.sql'),
} as const;
const PROLONG = {
  sqlite: loadStatement(import.meta.url, './sql/prolong-responses.sql'),
  postgres: loadStatement(import.meta.url, './sql/pg-prolong-responses.sql'),
} as const;
const DELETE_ENDED = loadStatement(import.meta.url, './sql/delete-ended.sql');
const DELETE_RUN = loadStatement(import.meta.url, './sql/delete-run.sql');
const DELETE_PARTS = [
  loadStatement(import.meta.url, './sql/delete-items-of-run.sql'),
  loadStatement(import.meta.url, './sql/delete-events-of-run.sql'),
];
const SWEEP = loadStatement(import.meta.url, './sql/sweep-responses.sql');

/** The bytes that a response takes with its items. */
const sizeOf = (sealed: readonly string[], items: number): number =>
  ROW_BYTES + sealed.reduce((sum, { length }) => sum + length, 0) + items * ITEM_BYTES;

export function createKeptResponses(options: KeptResponsesOptions): KeptResponses {
  const { database, limits, now } = options;
  const { engine } = database;
  const { keepMs } = limits;
  const room = createResponseRoom(options);

  const findAll = async (ids: readonly string[], owner: TaskOwner) =>
    ids.length === 0
      ? []
      : (await database.query(FIND[engine], [JSON.stringify(ids), owner.account, now()]))
          .map(toKept)
          .filter((one) => sees(one, owner));

  return {
    running: createRunningResponses(options, room, sizeOf),

    async put({ id, account, within, service, previous, input, response, items }) {
      const sealed = [room.seal(account, input), room.seal(account, response)] as const;
      const bytes = sizeOf(sealed, items.length);
      if (!(await room.fits(account, bytes))) return false;
      const at = now();
      const row = [id, account, within, service, previous, ...sealed, bytes, at, at + keepMs];
      await database.batch([
        { statement: PUT, params: row },
        ...(items.length === 0 ? [] : [{ statement: PUT_ITEMS[engine], params: [id, account, JSON.stringify(items)] }]),
      ]);
      await room.added(account, bytes);
      return true;
    },

    findAll,
    find: async (id, owner) => (await findAll([id], owner))[0] ?? null,

    async lineage(id, owner) {
      const rows = await database.query(LINEAGE, [id, owner.account, now(), LINEAGE_MAX]);
      const found = rows.map(toKept);
      const hidden = found.findIndex((one) => !sees(one, owner));
      return (hidden === -1 ? found : found.slice(0, hidden)).toReversed();
    },

    async ofItems(ids, owner) {
      if (ids.length === 0) return new Map();
      const rows = await database.query(OF_ITEMS[engine], [JSON.stringify(ids), owner.account, now()]);
      return new Map(
        rows.flatMap(({ item, ...row }) => {
          const kept = toKept(row);
          return sees(kept, owner) ? [[item as string, kept] as const] : [];
        }),
      );
    },

    async read(responses) {
      const found = new Map<string, ReadContent>();
      const [first] = responses;
      if (first === undefined) return found;
      const { account } = first;
      const ids = JSON.stringify(responses.map(({ id }) => id));
      for (const { id, input, response, run } of await database.query(READ[engine], [ids, account])) {
        // oxlint-disable-next-line no-await-in-loop -- one turn of the event loop after the other
        if ((input as string).length + (response as string).length > OWN_TURN_BYTES) await ownTurn();
        const [openedInput, openedResponse] = [input, response].map((sealed) => room.open(account, sealed as string));
        // A text that cannot be opened was sealed by a gateway with another identity.
        if (openedInput == null || openedResponse == null) continue;
        found.set(id as string, {
          input: openedInput,
          response: openedResponse,
          run: run as ReadContent['run'],
        });
      }
      return found;
    },

    async use(responses) {
      const until = now() + keepMs;
      const due = responses.filter(({ expiresAt }) => expiresAt < until - keepMs / PROLONGED_PART);
      if (due.length > 0) await database.query(PROLONG[engine], [JSON.stringify(due.map(({ id }) => id)), until]);
    },

    async delete({ id, account }) {
      await database.batch([
        { statement: DELETE_RUN, params: [id, account, DELETED_AT, ROW_BYTES] },
        ...DELETE_PARTS.map((statement) => ({ statement, params: [id] })),
        { statement: DELETE_ENDED, params: [id, account] },
      ]);
    },

    sweep: async (limit) => (await database.query(SWEEP, [now(), limit])).length,
  };
}
