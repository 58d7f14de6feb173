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
