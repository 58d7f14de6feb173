import { loadStatements, numberOrNull, rowReader, type Database, type Row, type Value } from '#store';
import { GatewayError } from '#errors';
import { limitText, sees, type TaskOwner } from '#tasks';
import type { Batch, Batches, BatchFault, BatchTokens } from './batch.ts';
import { newFileId } from './create-files.ts';
import type { SealedContent } from './sealed-content.ts';

interface BatchesOptions {
  readonly database: Pick<Database, 'query'>;
  readonly content: SealedContent;
  readonly liveMax: number;
  /** How long a batch can be read after its end, in milliseconds. */
  readonly keepMs: number;
  readonly now: () => number;
  readonly onCreated: () => void;
  readonly onCancelled: (id: string, ended: BatchFault | null) => void;
}

const SQL = loadStatements(import.meta.url, './sql/batches.sql', [
  'cancelBatch',
  'findBatch',
  'listBatches',
  'operatorEndsBatch',
  'putBatch',
  'sweepBatches',
]);

const FULL_RETRY_S = 60;

export function createBatches(options: BatchesOptions): Batches {
  const { database, content, liveMax, keepMs, now } = options;
  const toBatch = createToBatch(content);

  async function find(id: string, owner: TaskOwner): Promise<Batch | null> {
    const [row] = await database.query(SQL.findBatch, [id]);
    const batch = row === undefined ? null : toBatch(row);
    return batch !== null && batch.account === owner.account && sees(batch, owner) ? batch : null;
  }

  return {
    find,

    async create(batch) {
      const { id, account, within, apiKey, request, dialect, endpoint, inputFile, maxCost, metadata, tags } = batch;
      const at = now();
      const sealed = metadata === null ? null : content.sealText(account, JSON.stringify(metadata));
      const files = [newFileId(), newFileId()] as const;
      const parameters = [id, account, within, apiKey, dialect, endpoint, inputFile, ...files];
      const rest = [at, liveMax, at + batch.windowMs, request, tags === null ? null : JSON.stringify(tags)];
      const [put] = await database.query(SQL.putBatch, [...parameters, maxCost, batch.keepMs, sealed, ...rest]);
      const [row] = await database.query(SQL.findBatch, [id]);
      if (row === undefined)
        throw new GatewayError(
          'rate_limit_exceeded',
          `${limitText(within, liveMax, 'batches under way')}: wait until one has ended, or cancel one`,
          { retryAfterS: FULL_RETRY_S },
        );
      if (put !== undefined) options.onCreated();
      return toBatch(row);
    },

    async list(owner, { after, limit }) {
      const before = after === null ? null : await find(after, owner);
      if (after !== null && before === null) return null;
      const place = [before?.createdAt ?? 0, before?.id ?? null];
      const rows = await database.query(SQL.listBatches, [owner.account, owner.within, ...place, limit + 1]);
      const entries = onOnePage(rows).slice(0, limit);
      return { entries: entries.map(toBatch), hasMore: rows.length > entries.length };
    },

    async cancel({ id, account }) {
      const cancelled = (await database.query(SQL.cancelBatch, [id, account, now()])).length > 0;
      if (cancelled) options.onCancelled(id, null);
      return cancelled;
    },

    async end({ id, account, lockId }, why) {
      const errors = content.sealText(account, JSON.stringify([endedFault(why)]));
      const ended = (await database.query(SQL.operatorEndsBatch, [id, lockId, now(), errors])).length > 0;
      if (ended) options.onCancelled(id, endedFault(why));
      return ended;
    },

    wasEnded: (id, why) => options.onCancelled(id, endedFault(why)),

    sweep: async (limit) => (await database.query(SQL.sweepBatches, [now() - keepMs, limit])).length,
  };
}

const endedFault = (message: string): BatchFault => ({ code: 'call_ended', message, line: null, param: null });

/** Characters of what is sealed in the batches of a page, which are unsealed and written in one turn. */
const PAGE_CHARS_MAX = 256 * 1024;

/** The first rows, at least one, whose metadata and errors fit on one page. */
function onOnePage(rows: readonly Row[]): readonly Row[] {
  let chars = 0;
  const end = rows.findIndex(({ metadata, errors }, index) => {
    for (const sealed of [metadata, errors]) chars += typeof sealed === 'string' ? sealed.length : 0;
    return index > 0 && chars > PAGE_CHARS_MAX;
  });
  return end === -1 ? rows : rows.slice(0, end);
}

const read = rowReader<Omit<Batch, 'metadata' | 'tags' | 'errors' | 'usage' | 'status' | 'dialect'>>(
  {
    keepMs: Number,
    total: Number,
    completed: Number,
    failed: Number,
    createdAt: Number,
    expiresAt: Number,
    inProgressAt: numberOrNull,
    cancellingAt: numberOrNull,
    finalizingAt: numberOrNull,
    endedAt: numberOrNull,
  },
  { part: 'within' },
);

/** Reads what is sealed in a row; null if there is nothing, or if a gateway with another identity has sealed it. */
function readSealed(content: SealedContent, account: string, value: Value | undefined): unknown {
  const text = typeof value === 'string' ? content.openText(account, value) : null;
  return text === null ? null : JSON.parse(text);
}

export const readFaults = (content: SealedContent, account: string, errors: Value | undefined) =>
  readSealed(content, account, errors) as readonly BatchFault[] | null;

/** Makes the reader of rows. What was sealed by a gateway with another identity is left out. */
export function createToBatch(content: SealedContent): (row: Row) => Batch {
  return (row) => {
    const { account } = read(row);
    const { usage, status, dialect } = row;
    return {
      ...read(row),
      status: status as Batch['status'],
      dialect: dialect as Batch['dialect'],
      metadata: readSealed(content, account, row['metadata']) as Batch['metadata'],
      tags: JSON.parse((row['tags'] as string | null) ?? 'null') as Batch['tags'],
      errors: readFaults(content, account, row['errors']),
      usage: typeof usage === 'string' ? (JSON.parse(usage) as BatchTokens) : null,
    };
  };
}
