import { Readable } from 'node:stream';
import type { FoundLocks, LockRecord, LocksQuery } from '#billing';
import { csvLine, csvUsd } from '../figures/csv.ts';
import type { CallView } from './generation-view.ts';
import { findGenerations, type GenerationsQuery } from './generations-page.ts';

/** Number of calls that are read at once. */
const PAGE = 500;

type Page = Awaited<ReturnType<typeof findGenerations>>;

const COLUMNS = [
  'id',
  'created_at',
  'resolved_at',
  'state',
  'outcome',
  'primitive',
  'model',
  'tool',
  'provider',
  'provider_name',
  'key',
  'prompt_tokens',
  'completion_tokens',
  'cost_usd',
  'cost_micro_usdc',
  'latency_ms',
  'duration_ms',
  'finish_reason',
  'error',
  'parent',
];

const lineOf = (call: CallView): string =>
  csvLine([
    call.id,
    call.created_at,
    call.resolved_at,
    call.state,
    call.outcome,
    call.primitive,
    call.model,
    call.tool,
    call.provider,
    call.provider_name,
    call.api_key,
    call.tokens_prompt,
    call.tokens_completion,
    csvUsd(BigInt(call.cost_micro_usdc)),
    call.cost_micro_usdc,
    call.latency,
    call.generation_time,
    call.finish_reason,
    call.error,
    call.parent,
  ]);

/**
 * Returns every matching call of an account as a CSV stream, newest first. The calls are read while the client
 * downloads. Throws GatewayError `invalid_request` before the first byte.
 */
export async function generationsCsv(
  find: (asked: LocksQuery) => Promise<FoundLocks>,
  view: (record: LockRecord) => CallView,
  account: string,
  query: GenerationsQuery,
): Promise<Readable> {
  const pageAt = (cursor?: string) =>
    findGenerations(find, view, account, { ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) });
  const first = await pageAt();
  return Readable.from(linesFrom(first, pageAt), { objectMode: false });
}

async function* linesFrom(first: Page, pageAt: (cursor: string) => Promise<Page>): AsyncGenerator<string> {
  yield csvLine(COLUMNS);
  for (let page = first; ;) {
    yield page.data.map(lineOf).join('');
    if (page.next_cursor === null) return;
    // oxlint-disable-next-line no-await-in-loop -- where the next page begins is told by the one before
    page = await pageAt(page.next_cursor);
  }
}
