import OpenAI, { toFile } from 'openai';
import { vi } from 'vitest';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { MODEL } from '../../../support/spine.ts';

/* A client of batches: OpenAI's SDK as it is on npm. */

const WAIT_MS = 60_000;

/** Resolves when `isSo` is true. */
export async function until(isSo: () => boolean | Promise<boolean>, waitMs: number = WAIT_MS): Promise<void> {
  await vi.waitUntil(isSo, { timeout: atThisLoad(waitMs), interval: 20 });
}

type Batch = OpenAI.Batches.Batch;

/** A line of a file of results. */
export interface ResultLine {
  readonly id: string;
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly request_id: string;
    readonly body: {
      readonly id?: string;
      readonly choices?: readonly { readonly message: { readonly content: string } }[];
      readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly cost?: number };
      readonly error?: { readonly code: string | number; readonly message: string };
    };
  } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface Results {
  readonly output: readonly ResultLine[];
  readonly errors: readonly ResultLine[];
}

export const CHAT = '/v1/chat/completions';

/** `url` with `/v1` or `/api/v1`. */
export const clientAt = (baseURL: string, apiKey: string) => new OpenAI({ baseURL, apiKey, maxRetries: 0 });

/** A line that asks the model of the tests. */
export const chatLine = (customId: string, content: string, more: object = {}) => ({
  custom_id: customId,
  method: 'POST',
  url: CHAT,
  body: { model: MODEL, messages: [{ role: 'user', content }], max_tokens: 50, ...more },
});

export const jsonl = (lines: readonly unknown[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

export async function upload(client: OpenAI, content: string | Buffer): Promise<OpenAI.Files.FileObject> {
  return client.files.create({ file: await toFile(Buffer.from(content), 'requests.jsonl'), purpose: 'batch' });
}

/** A batch with the members that this gateway adds. */
export type OwnBatch = Batch & {
  readonly tollgate: { readonly generation_id: string | null; readonly locked_usd: string | null };
};

/** Uploads lines and creates a batch of them. `more`: further members of the request. */
export async function begin(
  client: OpenAI,
  lines: readonly unknown[],
  more: object = {},
  options: object = {},
): Promise<OwnBatch> {
  const { id } = await upload(client, jsonl(lines));
  const body = { input_file_id: id, endpoint: CHAT, completion_window: '24h', ...more } as const;
  return (await client.batches.create(body, options)) as OwnBatch;
}

const ENDS: readonly Batch['status'][] = ['completed', 'failed', 'expired', 'cancelled'];

/** A batch at its end, as a client that polls sees it. */
export async function ended(client: OpenAI, id: string, waitMs: number = WAIT_MS): Promise<OwnBatch> {
  let shown: Batch | null = null;
  await until(async () => {
    // A gateway may be away for a moment.
    shown = await client.batches.retrieve(id).catch(() => shown);
    return shown !== null && ENDS.includes(shown.status);
  }, waitMs);
  return shown! as OwnBatch;
}

/** The lines of the files of results. */
export async function resultsOf(client: OpenAI, batch: Batch): Promise<Results> {
  const read = async (id: string | null | undefined) => {
    if (id === null || id === undefined) return [];
    const text = await (await client.files.content(id)).text();
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as ResultLine);
  };
  return { output: await read(batch.output_file_id), errors: await read(batch.error_file_id) };
}
