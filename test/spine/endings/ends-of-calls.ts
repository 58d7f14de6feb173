import type { CallEnding } from '../../../src/gateway/call/endings.ts';
import type { Spine } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import type { Kind } from './kinds.ts';
import type { Vendor } from './vendor.ts';

/** How a call of a kind can end here, with the row that it belongs to. */
export const ROWS: readonly (readonly [script: string, row: CallEnding, applies: (kind: Kind) => boolean])[] = [
  ['complete', 'complete', () => true],
  ['empty', 'empty', (kind) => kind.words === true || kind.name === 'transcription'],
  ['thought', 'empty', ({ thinks }) => thinks !== undefined],
  ['left', 'left', () => true],
  ['left_midway', 'left_midway', ({ begin, beginsEmpty }) => begin !== undefined && !beginsEmpty],
  ['left_midway', 'left', ({ beginsEmpty }) => beginsEmpty === true],
  ['over_cap', 'over_cap', ({ words }) => words === true],
  ['too_large', 'too_large', ({ padded, words }) => padded !== undefined && !words],
  ['mute', 'too_large', ({ padded, words, type }) => padded !== undefined && words === true && type.includes('json')],
  [
    'too_large_midway',
    'too_large_midway',
    ({ padded, words, type }) => padded !== undefined && words === true && type.includes('json'),
  ],
  // Sound and embeddings are not parsed.
  [
    'deep',
    'too_large',
    ({ words, type, name }) => type.includes('event') || (!words && !['embeddings', 'speech'].includes(name)),
  ],
  [
    'deep_midway',
    'too_large_midway',
    ({ begin, beginsEmpty, type }) => begin !== undefined && !beginsEmpty && type.includes('event'),
  ],
  ['deep', 'too_large_midway', ({ words, type }) => words === true && type.includes('json')],
  ['refused', 'refused', () => true],
  ['failed', 'failed', () => true],
  // Sound that is no sound cannot be told from any other.
  ['malformed', 'failed', ({ name }) => name !== 'speech'],
  ['lost', 'failed', () => true],
];

interface Asked {
  readonly spine: Spine;
  readonly vendor: Vendor;
  readonly kind: Kind;
  readonly model: string;
  /** How it ends, see ROWS. */
  readonly script: string;
  /** The vendor reports its usage. */
  readonly reported: boolean;
  /** The id of the request. */
  readonly id: string;
  /** The rest of its text. */
  readonly more?: string;
  /** Gets the id of a response in the background. */
  readonly onBegun?: (responseId: string) => void;
}

/** Makes a call that ends in this way. */
export async function ask({
  spine,
  vendor,
  kind,
  model,
  script,
  reported,
  id,
  more = '',
  onBegun,
}: Asked): Promise<void> {
  const leaving = new AbortController();
  const text = `!k:${kind.name} !e:${script} !u:${reported ? 1 : 0} !n:${id}${more}`;
  const { path, body } = kind.ask(model, text);
  const isForm = body instanceof FormData;
  const asked = fetch(spine.origin + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'x-request-id': id,
      ...(isForm ? {} : { 'content-type': 'application/json' }),
    },
    body: isForm ? body : JSON.stringify(body),
    signal: leaving.signal,
  });
  try {
    if (script === 'left') asked.catch(() => {});
    if (script.startsWith('left')) await vendor.arrived(id);
    if (kind.inBackground) {
      const { id: responseId } = (await (await asked).json()) as Begun;
      onBegun?.(responseId);
      return await untilEnded(spine, responseId, {
        cancels: script.startsWith('left'),
        begun: script === 'left_midway',
      });
    }
    if (script === 'left') leaving.abort();
    const response = await asked;
    if (script === 'left_midway') {
      const reader = response.body!.getReader();
      await reader.read();
      leaving.abort();
    }
    await response.arrayBuffer();
  } catch {
    // The client has left, or the reply broke off.
  }
}

interface Begun {
  readonly id: string;
  readonly status?: string;
}

/** Waits for the end of a response in the background. `cancels`: cancels it before, if `begun` once it has begun. */
async function untilEnded(
  spine: Spine,
  id: string,
  { cancels, begun }: { readonly cancels: boolean; readonly begun: boolean },
): Promise<void> {
  const status = async () => ((await (await spine.get(`/responses/${id}`)).json()) as Begun).status!;
  if (begun) await until(async () => (await status()) !== 'queued');
  if (cancels) await spine.post(`/responses/${id}/cancel`, {});
  await until(async () => !['queued', 'in_progress'].includes(await status()));
}

/** The record of a call. */
export interface CallRecord {
  readonly request_id: string;
  readonly cost_micro_usdc: number;
  readonly estimated: boolean;
  readonly tokens_completion: number;
  readonly flags: readonly string[];
  readonly outcome: string;
}

/** The records of all calls, by the id of their request. */
export async function records(spine: Spine): Promise<ReadonlyMap<string, CallRecord>> {
  const all = new Map<string, CallRecord>();
  for (let cursor: string | null = ''; cursor !== null;) {
    const page = await (await spine.get(`/generations?limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`)).json();
    const { data, next_cursor: next } = page as { readonly data: CallRecord[]; readonly next_cursor: string | null };
    for (const record of data) all.set(record.request_id, record);
    cursor = next;
  }
  return all;
}
