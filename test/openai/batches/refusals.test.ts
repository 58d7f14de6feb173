import type OpenAI from 'openai';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MODEL, UNHURRIED } from '../../support/spine.ts';
import { begin, CHAT, chatLine, clientAt, ended, jsonl, resultsOf, until, upload } from './support/batch-client.ts';
import { spineOfFile } from '../../support/of-file.ts';

// Files and batches that are refused, those of others, and limits.

const PING = 'ping !tokens:5';
const FILE_BYTES = 20_000;
const LINES = 20;
const LIVE = 2;
/** Ahead of the clock of this machine, in milliseconds. */
let ahead = 0;
let client: OpenAI;
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}[batches]\nfile_bytes_max = ${FILE_BYTES}\naccount_count_max = 100\nlines_max = ${LINES}\nlive_max = ${LIVE}\n`,
  now: () => Date.now() + ahead,
  elapsed: () => performance.now(),
}));
beforeAll(() => {
  client = clientAt(`${spine.origin}/v1`, spine.key);
});
afterEach(() => {
  spine.provider.hold(null);
});

const at = (text: string) => clientAt(`${spine.origin}/v1`, text);
/** The faults of a batch that fails. */
async function faultsOf(content: string | Buffer, endpoint: string = CHAT) {
  const { id: file } = await upload(client, content);
  const { id } = await client.batches.create({
    input_file_id: file,
    endpoint: endpoint as '/v1/chat/completions',
    completion_window: '24h',
  });
  const batch = await ended(client, id);
  expect(batch).toMatchObject({ status: 'failed', output_file_id: null, error_file_id: null });
  expect(batch.failed_at).toEqual(expect.any(Number));
  return batch.errors!.data!;
}

describe('a batch whose lines are wrong fails before anything is called', () => {
  test('and says what is wrong with each', async () => {
    const good = chatLine('a', PING);
    const asked = spine.provider.log.length;
    const before = await spine.balance();
    const lines = [
      JSON.stringify(good),
      '{"custom_id": "b", ',
      '"a text"',
      '',
      JSON.stringify({ ...good, custom_id: '' }),
      JSON.stringify(good),
      JSON.stringify({ ...good, custom_id: 'c', method: 'GET' }),
      JSON.stringify({ ...good, custom_id: 'd', url: '/v1/embeddings' }),
      JSON.stringify({ ...good, custom_id: 'e', body: 'hello' }),
      JSON.stringify(chatLine('f', PING, { stream: true })),
      JSON.stringify(chatLine('g', PING, { model: 'no/model' })),
      JSON.stringify(chatLine('h', PING, { temperature: 'warm' })),
      JSON.stringify(chatLine('i', PING, { tools: [{ type: 'mcp', service: 'kit' }] })),
      JSON.stringify(chatLine('j', PING, { model: 'a2a/some/agent' })),
    ];
    expect(await faultsOf(lines.join('\n'))).toMatchObject([
      { line: 2, code: 'invalid_json_line' },
      { line: 3, code: 'invalid_json_line' },
      { line: 5, code: 'invalid_request', param: 'custom_id' },
      { line: 6, code: 'duplicate_custom_id', param: 'custom_id' },
      { line: 7, code: 'invalid_method', param: 'method' },
      { line: 8, code: 'mismatched_endpoint', param: 'url' },
      { line: 9, code: 'missing_required_parameter', param: 'body' },
      { line: 10, code: 'invalid_request', param: 'body.stream' },
      { line: 11, code: 'model_not_found', param: 'body.model', message: expect.stringContaining('no/model') },
      { line: 12, code: 'invalid_request', param: 'body.temperature' },
      { line: 13, code: expect.any(String) },
      { line: 14, code: 'model_not_found' },
    ]);
    expect(spine.provider.log).toHaveLength(asked);
    expect(await spine.balance()).toEqual(before);
  });

  test('also files that are no lines at all', async () => {
    expect(await faultsOf('')).toMatchObject([{ code: 'empty_file', line: null }]);
    expect(await faultsOf('\n \r\n\t\n')).toMatchObject([{ code: 'empty_file' }]);
    expect(await faultsOf(Buffer.from([0xff, 0xfe, 0x00, 0x0a, 0x80]))).toMatchObject([
      { code: 'invalid_json_line', line: 1 },
      { code: 'invalid_json_line', line: 2 },
    ]);
    expect(await faultsOf('['.repeat(10_000))).toMatchObject([{ code: 'invalid_json_line', line: 1 }]);
    expect(await faultsOf(jsonl(Array.from({ length: LINES + 1 }, (_, n) => chatLine(`l${n}`, 'x'))))).toMatchObject([
      { code: 'too_many_lines', line: LINES + 1 },
    ]);
  });

  test('and one that its account cannot pay names the sum', async () => {
    const { key } = await spine.tenant('poor', '0.0005');
    const poor = at(key);
    const { id } = await begin(poor, [chatLine('a', PING), chatLine('b', PING), chatLine('c', PING)]);
    const batch = await ended(poor, id);
    expect(batch).toMatchObject({ status: 'failed' });
    expect(batch.errors!.data).toMatchObject([
      { code: 'insufficient_balance', message: expect.stringMatching(/budget of this batch: 0\.000594 USDC/) },
    ]);
    // With a cap it runs, and each line finds what the one before gave back.
    const { id: capped } = await begin(poor, [chatLine('a', PING), chatLine('b', PING)], { max_cost: '0.0003' });
    expect(await ended(poor, capped)).toMatchObject({
      status: 'completed',
      request_counts: { total: 2, completed: 2, failed: 0 },
      tollgate: { locked_usd: '0.0003', max_cost: '0.0003' },
    });
    // A cap above what the lines may cost locks no more than they may.
    const { id: roomy } = await begin(poor, [chatLine('a', PING)], { max_cost: '1' });
    expect(await ended(poor, roomy)).toMatchObject({ status: 'completed', tollgate: { locked_usd: '0.000198' } });
  });

  test('a line for which max_cost is too small names max_cost', async () => {
    const { id } = await begin(client, [chatLine('a', PING)], { max_cost: '0.00001' });
    const { errors } = await resultsOf(client, await ended(client, id));
    expect(errors.map((line) => line.response)).toMatchObject([
      {
        status_code: 402,
        body: {
          error: {
            code: 'insufficient_balance',
            message:
              'The batch has 0.00001 USDC left of what it locked, too little for this line (estimated cost: 0.000198 USDC). A higher max_cost of the batch locks more',
          },
        },
      },
    ]);
  });

  test('a budget of a key counts it as one call', async () => {
    const { key } = await spine.tenant('limited', '1', { limit: 500n });
    const limited = at(key);
    const { id } = await begin(limited, [chatLine('a', PING), chatLine('b', PING), chatLine('c', PING)]);
    expect((await ended(limited, id)).errors!.data).toMatchObject([
      { code: 'insufficient_balance', message: expect.stringContaining('Spending limit of this API key') },
    ]);
  });
});

describe('files and batches of others', () => {
  test('do not exist, at every route', async () => {
    const { key } = await spine.tenant('other', '1');
    const other = at(key);
    const mine = await begin(client, [chatLine('a', PING)]);
    const batch = await ended(client, mine.id);
    const files = [batch.input_file_id, batch.output_file_id!];
    for (const id of files) {
      await expect(other.files.retrieve(id)).rejects.toMatchObject({ status: 404 });
      await expect(other.files.content(id)).rejects.toMatchObject({ status: 404 });
      await expect(other.files.delete(id)).rejects.toMatchObject({ status: 404 });
      const body = { input_file_id: id, endpoint: CHAT, completion_window: '24h' } as const;
      await expect(other.batches.create(body)).rejects.toMatchObject({ status: 404 });
    }
    await expect(other.batches.retrieve(batch.id)).rejects.toMatchObject({ status: 404 });
    await expect(other.batches.cancel(batch.id)).rejects.toMatchObject({ status: 404 });
    expect((await other.files.list()).data).toEqual([]);
    expect((await other.batches.list()).data).toEqual([]);
    await expect(other.files.list({ after: files[0]! })).rejects.toMatchObject({ status: 400 });
    await expect(other.batches.list({ after: batch.id })).rejects.toMatchObject({ status: 400 });
    await expect(at('svc-sk-nobody').files.list()).rejects.toMatchObject({ status: 401 });
    expect((await client.files.content(files[1]!)).status).toBe(200);
  });

  test('a restricted key sees what it made, and its lines call only what it may', async () => {
    const { key, account } = await spine.tenant('team', '1', { allowedServices: [MODEL] });
    const whole = (await spine.app.keys.create({ account, label: 'whole', kind: 'live' }))!.text;
    const narrow = at(key);
    const made = await begin(narrow, [chatLine('a', PING)]);
    const ofWhole = await begin(at(whole), [chatLine('a', PING)]);
    await ended(narrow, made.id);
    await ended(at(whole), ofWhole.id);
    await expect(narrow.batches.retrieve(ofWhole.id)).rejects.toMatchObject({ status: 404 });
    await expect(narrow.files.content(ofWhole.input_file_id)).rejects.toMatchObject({ status: 404 });
    expect((await at(whole).batches.list()).data.map(({ id }) => id)).toEqual([ofWhole.id, made.id]);
    expect((await narrow.batches.list()).data.map(({ id }) => id)).toEqual([made.id]);
    expect((await narrow.files.list()).data).toHaveLength(2);
    expect((await at(whole).files.list()).data).toHaveLength(4);
    const { key: none } = await spine.tenant('none', '1', { allowedServices: ['other/model'] });
    const { id } = await begin(at(none), [chatLine('a', PING)]);
    expect((await ended(at(none), id)).errors!.data).toMatchObject([{ line: 1, code: 'permission_denied' }]);
  });
});

describe('an upload', () => {
  const send = (body: FormData | string, headers: Record<string, string> = {}) =>
    fetch(`${spine.origin}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, ...headers },
      body,
    });
  const form = (fields: Readonly<Record<string, string | Blob>>) => {
    const made = new FormData();
    for (const [name, value] of Object.entries(fields))
      if (typeof value === 'string') made.append(name, value);
      else made.append(name, value, 'f.jsonl');
    return made;
  };
  const file = new Blob(['{}\n']);
  const refused = async (response: Response) => {
    const { error } = (await response.json()) as { error: { message: string; param: string | null } };
    return { status: response.status, param: error.param, message: error.message };
  };

  test('of another purpose, or without one, is refused, and nothing of it stays', async () => {
    const before = (await client.files.list({ limit: 10_000 })).data.length;
    for (const purpose of ['fine-tune', 'assistants', 'vision', 'user_data'])
      expect(await refused(await send(form({ purpose, file })))).toMatchObject({
        status: 400,
        param: 'purpose',
        message: expect.stringContaining('only for batches'),
      });
    // The file comes before its purpose.
    expect(await refused(await send(form({ file })))).toMatchObject({ status: 400, param: 'purpose' });
    expect(await refused(await send(form({ purpose: 'batch' })))).toMatchObject({ status: 400, param: 'file' });
    expect(await refused(await send(form({ other: file, purpose: 'batch' })))).toMatchObject({ param: 'other' });
    expect((await client.files.list({ limit: 10_000 })).data).toHaveLength(before);
  });

  test('that is no form, or breaks off, is refused', async () => {
    const type = 'multipart/form-data; boundary=x';
    const cut = '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nhal';
    expect(await refused(await send(cut, { 'content-type': type }))).toMatchObject({ status: 400 });
    expect(await refused(await send('{}', { 'content-type': 'multipart/form-data' }))).toMatchObject({ status: 400 });
    expect((await send('{}', { 'content-type': 'application/json' })).status).toBeGreaterThanOrEqual(400);
    expect(await refused(await send('nothing', { 'content-type': type }))).toMatchObject({ status: 400 });
  });

  test('that is too large is refused, whatever its length says', async () => {
    const large = new Blob(['x'.repeat(FILE_BYTES + 1)]);
    expect(await refused(await send(form({ file: large, purpose: 'batch' })))).toMatchObject({ status: 413 });
    const kept = await client.files.list({ limit: 10_000 });
    expect(kept.data.every(({ bytes }) => bytes <= FILE_BYTES)).toBe(true);
  });

  test('expires when its client says', async () => {
    const stored = async (seconds: string) =>
      (await (
        await send(
          form({ file, purpose: 'batch', 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': seconds }),
        )
      ).json()) as OpenAI.Files.FileObject & { error?: { param: string } };
    const made = await stored('3600');
    expect(made.expires_at! - made.created_at).toBe(3_600);
    expect((await stored('60')).error).toMatchObject({ param: 'expires_after.seconds' });
    ahead += 3_601_000;
    await expect(client.files.retrieve(made.id)).rejects.toMatchObject({ status: 404 });
  });
});

describe('limits', () => {
  test('an account has so many batches under way, and the file of one cannot be deleted', async () => {
    const gate = Promise.withResolvers<void>();
    spine.provider.hold(gate.promise);
    const { key } = await spine.tenant('busy', '1');
    const busy = at(key);
    const made = [];
    for (let n = 0; n < LIVE; n++) made.push(await begin(busy, [chatLine('a', PING)]));
    await expect(begin(busy, [chatLine('a', PING)])).rejects.toMatchObject({ status: 429 });
    await expect(busy.files.delete(made[0]!.input_file_id)).rejects.toMatchObject({ status: 400 });
    gate.resolve();
    for (const { id } of made) expect(await ended(busy, id)).toMatchObject({ status: 'completed' });
    expect(await busy.files.delete(made[0]!.input_file_id)).toMatchObject({ deleted: true });
  });

  test('a repeat with the same idempotency key gets the same batch', async () => {
    const { id: file } = await upload(client, jsonl([chatLine('a', PING)]));
    const body = { input_file_id: file, endpoint: CHAT, completion_window: '24h' } as const;
    const headers = { 'idempotency-key': 'nightly-1' };
    const first = await client.batches.create(body, { headers });
    expect((await client.batches.create(body, { headers })).id).toBe(first.id);
    const others: readonly object[] = [
      { endpoint: '/v1/responses' },
      { input_file_id: (await upload(client, jsonl([chatLine('a', PING)]))).id },
      { metadata: { a: 'b' } },
      { max_cost: '0.50' },
      { callback_url: 'https://example.com/told' },
      { output_expires_after: { anchor: 'created_at', seconds: 3_600 } },
    ];
    const conflict = { status: 409, param: 'Idempotency-Key', type: 'idempotency_conflict' };
    for (const other of others)
      await expect(client.batches.create({ ...body, ...other }, { headers })).rejects.toMatchObject(conflict);
    const capped = { headers: { ...headers, 'x-max-cost': '0.50' } };
    await expect(client.batches.create(body, capped)).rejects.toMatchObject(conflict);
    const own = clientAt(`${spine.origin}/api/v1`, spine.key);
    await expect(own.batches.create(body, { headers })).rejects.toMatchObject({ status: 409 });
    await ended(client, first.id);
    // Also when it has ended, and its file is gone.
    await client.files.delete(file);
    expect((await client.batches.create(body, { headers })).id).toBe(first.id);
  });

  test('a batch that is not done in a day expires, and keeps what has ended', async () => {
    const gate = Promise.withResolvers<void>();
    const { key } = await spine.tenant('slow', '1');
    const slow = at(key);
    spine.provider.hold(gate.promise);
    const asked = spine.provider.log.length;
    const { id } = await begin(
      slow,
      Array.from({ length: LINES }, (_, n) => chatLine(`line-${n}`, PING)),
    );
    await until(() => spine.provider.log.length > asked);
    await new Promise((resolve) => setImmediate(resolve));
    ahead += 24 * 3_600_000;
    gate.resolve();
    const batch = await ended(slow, id);
    expect(batch.status).toBe('expired');
    const { output, errors } = await resultsOf(slow, batch);
    expect(output.length + errors.length).toBe(LINES);
    expect(errors.length).toBeGreaterThan(0);
    for (const { response, error } of errors) {
      expect(response).toBeNull();
      expect(error!.code).toBe('batch_expired');
    }
    expect(batch.request_counts).toEqual({ total: LINES, completed: output.length, failed: errors.length });
  });

  test('an account that is frozen calls no line, of a new batch or of one under way', async () => {
    const { key, account } = await spine.tenant('frozen', '1');
    const frozen = at(key);
    const gate = Promise.withResolvers<void>();
    spine.provider.hold(gate.promise);
    const asked = spine.provider.log.length;
    const { id } = await begin(
      frozen,
      Array.from({ length: LINES }, (_, n) => chatLine(`line-${n}`, PING)),
    );
    await until(() => spine.provider.log.length > asked);
    const response = await fetch(`${spine.origin}/admin/v1/accounts/${encodeURIComponent(account)}/freeze`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ reason: 'stolen key' }),
    });
    expect(response.status).toBe(200);
    const { id: later } = await begin(frozen, [chatLine('a', PING)]);
    gate.resolve();
    const batch = await ended(frozen, id);
    const { output, errors } = await resultsOf(frozen, batch);
    expect(output.length + errors.length).toBe(LINES);
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.map((line) => line.response!.status_code)).toEqual(errors.map(() => 403));
    expect((await ended(frozen, later)).errors!.data).toMatchObject([{ code: 'permission_denied' }]);
  });

  test('a key that is deleted ends its batch', async () => {
    const { key, hash, account } = await spine.tenant('leaver', '1');
    const other = (await spine.app.keys.create({ account, label: 'other', kind: 'live' }))!.text;
    const gate = Promise.withResolvers<void>();
    spine.provider.hold(gate.promise);
    const asked = spine.provider.log.length;
    const { id } = await begin(
      at(key),
      Array.from({ length: LINES }, (_, n) => chatLine(`line-${n}`, PING)),
    );
    await until(() => spine.provider.log.length > asked);
    await spine.app.keys.delete(account, hash);
    gate.resolve();
    const batch = await ended(at(other), id);
    const { output, errors } = await resultsOf(at(other), batch);
    expect(output.length).toBeLessThan(LINES);
    expect(errors.map(({ response }) => response!.status_code)).toEqual(errors.map(() => 401));
    expect(output.length + errors.length).toBe(LINES);
  });
});
