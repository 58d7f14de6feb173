import { BOUNDS, isObject, readForeign } from '#wire';
import type { Batch, BatchTokens, LineReply } from './batch.ts';

export interface LineResult {
  readonly state: 'completed' | 'failed';
  readonly text: string;
  readonly tokens: BatchTokens;
}

const NO_TOKENS: BatchTokens = { prompt: 0, cached: 0, completion: 0, reasoning: 0 };
const LINE_ENDS = /[\r\n]+/g;
const OK = 200;
const REDIRECT = 300;

export async function answeredLine(batch: Batch, n: number, customId: string, reply: LineReply): Promise<LineResult> {
  const { status, requestId } = reply;
  // A line end in JSON is white space: those in texts are escaped.
  const body = reply.body.replace(LINE_ENDS, ' ');
  const isDone = status >= OK && status < REDIRECT;
  const response = `{"status_code":${status},"request_id":${JSON.stringify(requestId)},"body":${body}}`;
  return {
    state: isDone ? 'completed' : 'failed',
    text: `{"id":"${idOf(batch, n)}","custom_id":${JSON.stringify(customId)},"response":${response},"error":null}\n`,
    tokens: isDone ? await tokensOf(body) : NO_TOKENS,
  };
}

export function unansweredLine(
  batch: Batch,
  n: number,
  customId: string,
  error: { readonly code: string; readonly message: string },
): LineResult {
  const line = { id: idOf(batch, n), custom_id: customId, response: null, error };
  return { state: 'failed', text: `${JSON.stringify(line)}\n`, tokens: NO_TOKENS };
}

const idOf = ({ id }: Batch, n: number): string => `batch_req_${id.replace(/^batch_/, '')}_${n}`;

const NAMES = {
  prompt: ['prompt_tokens', 'input_tokens'],
  completion: ['completion_tokens', 'output_tokens'],
} as const;

/** The tokens in the usage of an answer, of chat and embeddings or of responses. */
async function tokensOf(body: string): Promise<BatchTokens> {
  const answer = await readForeign(body, BOUNDS.batchAnswer).catch(() => null);
  const usage = isObject(answer) ? answer['usage'] : null;
  if (!isObject(usage)) return NO_TOKENS;
  const part = (whole: keyof typeof NAMES, name: string): number =>
    Math.max(
      ...NAMES[whole].map((tokens) => {
        const details = usage[`${tokens}_details`];
        return countOf(isObject(details) ? details[name] : 0);
      }),
    );
  return {
    prompt: Math.max(...NAMES.prompt.map((name) => countOf(usage[name]))),
    cached: part('prompt', 'cached_tokens'),
    completion: Math.max(...NAMES.completion.map((name) => countOf(usage[name]))),
    reasoning: part('completion', 'reasoning_tokens'),
  };
}

const countOf = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, value as number) : 0);
