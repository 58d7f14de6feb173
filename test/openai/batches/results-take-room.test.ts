import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
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

test('an account without money has room for a megabyte of files, and for more once it has money', async () => {
  const { account, key } = await spine.tenant('poor', '0');
  const client = clientAt(`${spine.origin}/v1`, key);
  const large = randomBytes(3 * 1024 * 1024);
  const refused = { status: 429, message: expect.stringContaining('account without money may take 1048576 bytes') };
  const { id } = await upload(client, randomBytes(800_000));
  await expect(upload(client, large)).rejects.toMatchObject(refused);
  expect((await client.files.list()).data.map((file) => file.id)).toEqual([id]);
  await expect(upload(client, randomBytes(400_000))).rejects.toMatchObject(refused);
  const to = escrowOf(account);
  await spine.app.ledger.transfer({ id: 'some', from: treasuryOf('operator'), to, amount: 1n, memo: '' });
  await upload(client, large);
});
