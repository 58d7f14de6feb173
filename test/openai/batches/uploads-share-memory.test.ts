import { request, type ClientRequest } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { until } from './support/batch-client.ts';

// A part of an upload is in memory until it is complete, so uploads count as bodies do.

const MIB = 1024 * 1024;
let spine: Spine;
beforeAll(async () => {
  // An account gets what the largest body takes: 4 MiB, as parsed JSON counts four times.
  const limits = `chat_body_bytes_max = ${MIB}\nbody_bytes_max = ${MIB}\nmedia_body_bytes_max = ${MIB}\n`;
  spine = await startSpine({ toml: `[limits]\n${limits}bodies_bytes_max = ${8 * MIB}\n` });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
  }
});

/** Begins an upload of one line that does not end. */
function upload(bytes: number): { readonly sent: ClientRequest; readonly answered: Promise<number> } {
  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n';
  const sent = request(`${spine.origin}/v1/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'multipart/form-data; boundary=b' },
  });
  const answered = new Promise<number>((resolve) => {
    sent.on('response', (response) => resolve(response.resume().statusCode!));
    sent.on('error', () => resolve(0));
  });
  sent.write(head);
  sent.write(Buffer.alloc(bytes, 'x'));
  return { sent, answered };
}

test('long lines of several uploads have a budget, and are given back', async () => {
  // Less than a part, so all of it is held, twice.
  const bytes = 0.9 * MIB;
  const held = [upload(bytes), upload(bytes)];
  await until(() => spine.app.server.requestBodies.heldBytes() >= 3.4 * MIB);
  const third = upload(bytes);
  expect(await third.answered).toBe(429);
  for (const { sent } of [third, ...held]) sent.destroy();
  await until(() => spine.app.server.requestBodies.heldBytes() === 0);
});
