import type OpenAI from 'openai';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MODEL, UNHURRIED } from '../../support/spine.ts';
import { begin, chatLine, clientAt, ended, jsonl, resultsOf, until, upload } from './support/batch-client.ts';
import { spineOfFile } from '../../support/of-file.ts';

// Batches from the upload to the results, with OpenAI's SDK as it is on npm.

/** A call of this text has 11 prompt tokens and 5 completion tokens. At 1 and 2 USD per 1M it costs 21 micro-USD. */
const PING = 'ping !tokens:5';
const PING_COST = 21n;
const ROOM = 3;
let client: OpenAI;
const spine = spineOfFile(() => ({ toml: `${UNHURRIED}[batches]\naccount_lines_at_once = ${ROOM}\n` }));
beforeAll(() => {
  client = clientAt(`${spine.origin}/v1`, spine.key);
});
beforeEach(() => {
  spine.provider.log.length = 0;
});
afterEach(() => {
  spine.provider.hold(null);
});

describe('a batch', () => {
  test('calls each line once, charges each, and gives the rest of the money back', async () => {
    const before = await spine.balance();
    const begun = await begin(client, [chatLine('a', PING), chatLine('b', PING), chatLine('c', PING)], {
      metadata: { job: 'nightly' },
    });
    expect(begun).toMatchObject({ object: 'batch', status: 'validating', metadata: { job: 'nightly' }, errors: null });
    const batch = await ended(client, begun.id);
    expect(batch).toMatchObject({
      status: 'completed',
      endpoint: '/v1/chat/completions',
      model: MODEL,
      request_counts: { total: 3, completed: 3, failed: 0 },
      usage: { input_tokens: 33, output_tokens: 15, total_tokens: 48 },
      error_file_id: null,
      metadata: { job: 'nightly' },
    });
    const { output, errors } = await resultsOf(client, batch);
    expect(errors).toEqual([]);
    expect(output.map((line) => line.custom_id)).toEqual(['a', 'b', 'c']);
    for (const { response, error } of output) {
      expect(error).toBeNull();
      expect(response).toMatchObject({
        status_code: 200,
        body: { object: 'chat.completion', usage: { prompt_tokens: 11, completion_tokens: 5 } },
      });
    }
    const { generation_id: lock, locked_usd: locked } = batch.tollgate;
    expect(await spine.balance()).toEqual({ available: before.available - 3n * PING_COST, locked: 0n });
    const record = (await spine.generation(lock)) as unknown as Record<string, unknown>;
    expect(record).toMatchObject({ state: 'released', cost_micro_usdc: 0 });
    expect(record['children']).toHaveLength(3);
    // Each line: 18 bytes of texts, 64 for the call and 16 for the message at 1, 50 completion tokens at 2.
    expect(locked).toBe('0.000594');
    expect(spine.provider.log).toHaveLength(3);
  });

  test('has no more lines under way than its account may have, and counts them while it runs', async () => {
    const gate = Promise.withResolvers<void>();
    spine.provider.hold(gate.promise);
    const lines = Array.from({ length: 8 }, (_, at) => chatLine(`line-${at}`, PING));
    const { id } = await begin(client, lines);
    await until(() => spine.provider.log.length === ROOM);
    expect(await client.batches.retrieve(id)).toMatchObject({
      status: 'in_progress',
      request_counts: { total: 8, completed: 0, failed: 0 },
      output_file_id: null,
    });
    expect((await spine.balance()).locked).toBe(8n * 198n);
    gate.resolve();
    expect((await ended(client, id)).request_counts).toEqual({ total: 8, completed: 8, failed: 0 });
    expect(spine.provider.log).toHaveLength(8);
  });

  test('puts requests that fail into the file of errors, and charges nothing for them', async () => {
    const before = await spine.balance();
    const { id } = await begin(client, [chatLine('good', PING), chatLine('bad', 'no !status:400')]);
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 2, completed: 1, failed: 1 } });
    const { output, errors } = await resultsOf(client, batch);
    expect(output.map((line) => line.custom_id)).toEqual(['good']);
    expect(errors).toMatchObject([
      {
        custom_id: 'bad',
        error: null,
        response: { status_code: 400, body: { error: { message: expect.any(String) } } },
      },
    ]);
    expect((await spine.balance()).available).toBe(before.available - PING_COST);
  });

  test('is listed with its metadata, page by page', async () => {
    const ids: string[] = [];
    for (const name of ['one', 'two', 'three'])
      ids.unshift((await begin(client, [chatLine(name, PING)], { metadata: { name } })).id);
    for (const id of ids) await ended(client, id);
    const first = await client.batches.list({ limit: 2 });
    expect(first.data.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(first.hasNextPage()).toBe(true);
    const second = await first.getNextPage();
    expect(second.data[0]).toMatchObject({ id: ids[2], metadata: { name: 'one' } });
  });

  test('that is cancelled ends its running lines, calls no other, and keeps what has ended', async () => {
    const before = await spine.balance();
    const gate = Promise.withResolvers<void>();
    spine.provider.hold(gate.promise);
    const { id } = await begin(
      client,
      Array.from({ length: 9 }, (_, at) => chatLine(`line-${at}`, PING)),
    );
    await until(() => spine.provider.log.length === ROOM);
    expect(await client.batches.cancel(id)).toMatchObject({ id, status: 'cancelling' });
    gate.resolve();
    const batch = await ended(client, id);
    expect(batch).toMatchObject({ status: 'cancelled', request_counts: { total: 9, completed: ROOM, failed: 0 } });
    expect((await resultsOf(client, batch)).output).toHaveLength(ROOM);
    expect(await spine.balance()).toEqual({ available: before.available - BigInt(ROOM) * PING_COST, locked: 0n });
    expect(spine.provider.log).toHaveLength(ROOM);
    await expect(client.batches.cancel(id)).rejects.toMatchObject({ status: 400 });
  });
});

describe('a file', () => {
  test('is stored, shown, listed, read and deleted', async () => {
    const text = jsonl([chatLine('a', PING), chatLine('b', 'größer 🚧')]);
    const file = await upload(client, text);
    expect(file).toMatchObject({
      object: 'file',
      bytes: Buffer.byteLength(text),
      filename: 'requests.jsonl',
      purpose: 'batch',
    });
    expect(file.expires_at! - file.created_at).toBe(30 * 24 * 3_600);
    expect(await client.files.retrieve(file.id)).toEqual(file);
    expect(await (await client.files.content(file.id)).text()).toBe(text);
    expect((await client.files.list({ purpose: 'batch', limit: 1 })).data).toEqual([file]);
    expect(await client.files.delete(file.id)).toEqual({ id: file.id, object: 'file', deleted: true });
    await expect(client.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 });
    await expect(client.files.content(file.id)).rejects.toMatchObject({ status: 404 });
  });
});
