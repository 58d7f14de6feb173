import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { chatLine, CHAT, clientAt, ended, jsonl, upload } from './support/batch-client.ts';

// The files of results count, so a single file cannot be made into any number of them.

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({ toml: `${UNHURRIED}[batches]\naccount_count_max = 2\n` });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
  }
});

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
