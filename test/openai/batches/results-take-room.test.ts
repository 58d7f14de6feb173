import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { chatLine, CHAT, clientAt, ended, jsonl, upload } from './support/batch-client.ts';
import { spineOfFile } from '../../support/of-file.ts';

// The files of results count, so a single file cannot be made into any number of them.

const spine = spineOfFile(() => ({ toml: `${UNHURRIED}[batches]\naccount_count_max = 2\n` }));

test('an account whose files have no room gets no further batch until it has deleted some', async () => {
  const client = clientAt(`${spine.origin}/v1`, spine.key);
  const { id: file } = await upload(client, jsonl([chatLine('a', 'ping !tokens:5')]));
  const create = () => client.batches.create({ input_file_id: file, endpoint: CHAT, completion_window: '24h' });
  const first = await ended(client, (await create()).id);
  expect(first).toMatchObject({ status: 'completed' });
  await expect(create()).rejects.toMatchObject({
    status: 429,
    message: expect.stringContaining('This account has 2 files, which is its limit'),
  });
  await client.files.delete(first.output_file_id!);
  expect(await ended(client, (await create()).id)).toMatchObject({ status: 'completed' });
});

test('batches that fail are kept with their errors and metadata, and these take room too', async () => {
  const small = await startSpine({ toml: `${UNHURRIED}[batches]\naccount_bytes_max = 40000\n` });
  onTestFinished(() => small.stop());
  const client = clientAt(`${small.origin}/v1`, small.key);
  const { id: file } = await upload(client, jsonl([{ ...chatLine('a', 'ping'), method: 'GET' }]));
  const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`name-${at}`, 'x'.repeat(512)]));
  const create = () =>
    client.batches.create({ input_file_id: file, endpoint: CHAT, completion_window: '24h', metadata });
  for (let count = 0; count < 4; count += 1)
    expect(await ended(client, (await create()).id)).toMatchObject({ status: 'failed', metadata });
  await expect(create()).rejects.toMatchObject({ status: 429, message: expect.stringContaining('40000 bytes') });
  expect(await small.faults()).toEqual([]);
});

test('the keys of an account share the number of its files and their bytes', async () => {
  const small = await startSpine({
    toml: `${UNHURRIED}[batches]\naccount_count_max = 4\naccount_bytes_max = 40000\n`,
  });
  onTestFinished(() => small.stop());
  const own = await small.tenant('own', '1', { limit: 1_000n });
  const keyOf = async (label: string) =>
    (await small.app.keys.create({ account: own.account, label, kind: 'live', limit: 1_000n }))!.text;
  const taken = async (key: string, content: string) => {
    for (let count = 0; ; count++)
      try {
        await upload(clientAt(`${small.origin}/v1`, key), content);
      } catch (error) {
        expect(error).toMatchObject({ status: 429, message: expect.stringContaining('This key') as string });
        return count;
      }
  };
  expect(await taken(own.key, 'x')).toBe(4);
  expect(await taken(await keyOf('second'), 'x')).toBe(2);
  expect(await taken(await keyOf('third'), 'x')).toBe(1);

  const large = await small.tenant('large', '1', { limit: 1_000n });
  // Random, so that it stays as large as it is.
  const half = () => randomBytes(13_000).toString('base64');
  const refused = { status: 429, message: expect.stringContaining('its share of 40000 bytes') as string };
  const greedy = clientAt(`${small.origin}/v1`, large.key);
  for (let count = 0; count < 2; count++) await upload(greedy, half());
  await expect(upload(greedy, half())).rejects.toMatchObject(refused);
  const { text } = (await small.app.keys.create({ account: large.account, label: 'b', kind: 'live', limit: 1n }))!;
  await upload(clientAt(`${small.origin}/v1`, text), half());
  expect(await small.faults()).toEqual([]);
});
