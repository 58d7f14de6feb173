import { loadStatements, numberOrNull, rowReader, type Database, type Row, type Value } from '#store';
import { GatewayError } from '#errors';
import { sees, type TaskOwner } from '#tasks';
import type { Batch, Batches, BatchFault, BatchTokens } from './batch.ts';
import { newFileId } from './create-files.ts';
import type { SealedContent } from './sealed-content.ts';

interface BatchesOptions {
  readonly database: Pick<Database, 'query'>;
  readonly content: SealedContent;
  /** Most batches of one account that are under way. */
  readonly liveMax: number;
  /** How long a batch can be read after its end, in milliseconds. */
  readonly keepMs: number;
  readonly now: () => number;
  readonly onCreated: () => void;
  readonly onCancelled: (id: string) => void;
}

const SQL = loadStatements(import.meta.url, './sql/batches.sql', [
  'cancelBatch',
  'findBatch',
  'listBatches',
  'putBatch',
  'sweepBatches',
]);

const FULL_RETRY_S = 60;

export function createBatches(options: BatchesOptions): Batches {
  const { database, content, liveMax, keepMs, now } = options;
  const toBatch = createToBatch(content);

  async function find(id: string, owner: TaskOwner): Promise<Batch | null> {
    const [row] = await database.query(SQL.findBatch, [id]);
    const found = row === undefined ? null : toBatch(row);
    return found !== null && found.account === owner.account && sees(found, owner) ? found : null;
  }

  return {
    find,

    async create(batch) {
      const { id, account, within, apiKey, request, dialect, endpoint, inputFile, maxCost, metadata } = batch;
      const at = now();
      const sealed = metadata === null ? null : content.sealText(account, JSON.stringify(metadata));
      const files = [newFileId(), newFileId()] as const;
      const named = [id, account, within, apiKey, dialect, endpoint, inputFile, ...files];
      const rest = [at, liveMax, at + batch.windowMs, request];
      const [put] = await database.query(SQL.putBatch, [...named, maxCost, batch.keepMs, sealed, ...rest]);
      const [row] = await database.query(SQL.findBatch, [id]);
      if (row === undefined)
        throw new GatewayError(
          'rate_limit_exceeded',
          `This account has ${liveMax} batches under way, which is its limit: wait until one has ended, or cancel one`,
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
      if (cancelled) options.onCancelled(id);
      return cancelled;
    },

    sweep: async (limit) => (await database.query(SQL.sweepBatches, [now() - keepMs, limit])).length,
  };
}

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

const read = rowReader<Omit<Batch, 'metadata' | 'errors' | 'usage' | 'status' | 'dialect'>>(
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

/** Makes the reader of rows. What was sealed by a gateway with another identity is left out. */
export function createToBatch(content: SealedContent): (row: Row) => Batch {
  return (row) => {
    const { account } = read(row);
    const opened = (value: Value | undefined): unknown => {
      const text = typeof value === 'string' ? content.openText(account, value) : null;
      return text === null ? null : JSON.parse(text);
    };
    const { usage, status, dialect } = row;
    return {
      ...read(row),
      status: status as Batch['status'],
      dialect: dialect as Batch['dialect'],
      metadata: opened(row['metadata']) as Batch['metadata'],
      errors: opened(row['errors']) as readonly BatchFault[] | null,
      usage: typeof usage === 'string' ? (JSON.parse(usage) as BatchTokens) : null,
    };
  };
}
