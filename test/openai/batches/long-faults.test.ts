import { expect, onTestFinished, test } from 'vitest';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { CHAT, chatLine, clientAt, ended, jsonl, upload } from './support/batch-client.ts';

test('faults with long messages are fewer, and a page of batches with many of them ends early', async () => {
  const spine = await startSpine({ toml: UNHURRIED });
  onTestFinished(() => spine.stop());
  const client = clientAt(`${spine.origin}/v1`, spine.key);
  const lines = Array.from({ length: 200 }, (_, index) => chatLine(`${index}`, 'x', { model: 'x'.repeat(500) }));
  const { id: file } = await upload(client, jsonl(lines));
  const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`key-${index}`, 'v'.repeat(512)]));
  const ids: string[] = [];
  for (let index = 0; index < 20; index++) {
    const body = { input_file_id: file, endpoint: CHAT, completion_window: '24h', metadata } as const;
    const { id } = await client.batches.create(body);
    ids.unshift(id);
    const { errors } = await ended(client, id);
    expect(errors!.data!.length).toBeGreaterThan(10);
    expect(errors!.data!.length).toBeLessThan(100);
  }
  const first = await client.batches.list({ limit: 100 });
  expect(first.data.length).toBeLessThan(20);
  expect(first.has_more).toBe(true);
  const listed: string[] = [];
  for await (const { id } of client.batches.list({ limit: 100 })) listed.push(id);
  expect(listed).toEqual(ids);
  expect(await spine.faults()).toEqual([]);
});
